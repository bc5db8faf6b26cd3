"""`prodsc export` and `prodsc figure` on a real run: tables, folders, cards and every figure of one fit."""

import contextlib
import csv
import io
import json
import re
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet
import pytest
from PIL import Image

from prodsc import PRODSC, export
from prodsc.cli import main
from prodsc.errors import InputError, ModelFileError, OutputError, ParameterError
from prodsc.export.cards import code
from prodsc.export.images import image_array
from prodsc.export.pictures import FIGURES
from prodsc.paper.plans import EXPERIMENTS
from prodsc.runs.past_run import open_run

QUICK = ["--hidden-size", "32", "--n-components", "16", "--warmup-steps", "10", "--epochs", "20", "--n-init", "3"]


def prodsc(*words):
    """The command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        main([*map(str, words)])
    return SimpleNamespace(returncode=end.value.code, stdout=out.getvalue(), stderr=err.getvalue())


def sentence(done, code=1):
    """The last line that a refused command says."""
    assert done.returncode == code, done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def run(tmp_path_factory, blobs):
    """A quick fit of 150 rows with names and known classes."""
    folder = tmp_path_factory.mktemp("export")
    X, y = blobs
    np.savez(folder / "data.npz", X=X.astype(np.float32), y=y, ids=np.array([f"id {i}" for i in range(len(X))]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prodsc.runs.run.write_report", lambda *_, **__: None, raising=False)  # no export reads it
        done = prodsc("fit", folder / "data.npz", "-k", 3, "--out", folder / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def past(run):
    return open_run(run)


def test_everything_at_once(run, tmp_path, blobs):
    X, y = blobs
    np.save(tmp_path / "images.npy", np.zeros((150, 3, 4), dtype=np.uint8))
    targets = tmp_path / "t.csv", tmp_path / "f", tmp_path / "MODEL.md"
    words = ["--table", targets[0], "--folders", targets[1], "--images", tmp_path / "images.npy", "--card", targets[2]]
    done = prodsc("export", run, *words, "--licence", "CC BY 4.0")
    assert done.returncode == 0, done.stderr
    with (run / "labels.csv").open() as file:
        known = list(csv.DictReader(file))
    with targets[0].open() as file:
        rows = list(csv.DictReader(file))
    assert [row["cluster"] for row in rows] == [row["label"] for row in known]
    assert [row["id"] for row in rows] == [f"id {i}" for i in range(150)]
    assert [int(row["y"]) for row in rows] == y.tolist()
    np.testing.assert_array_equal(np.float32([row["f3"] for row in rows]), X[:, 3].astype(np.float32))
    assert len(list(targets[1].rglob("*.png"))) == 150
    again = prodsc("export", run, *words)
    assert re.search(r"t\.csv exists.*--force", sentence(again))
    targets[0].unlink()
    before = targets[2].read_text()
    again = prodsc("export", run, *words)
    assert "not empty" in sentence(again)
    assert not targets[0].exists()  # all targets are looked at before the first is written
    done = prodsc("export", run, *words, "--force")
    assert done.returncode == 0, done.stderr
    assert "not stated" in targets[2].read_text() != before


def test_a_map_for_embedding_atlas(run, tmp_path, past):
    done = prodsc("export", run, "--atlas", tmp_path / "map.parquet")
    assert done.returncode == 0, done.stderr
    table = pyarrow.parquet.read_table(tmp_path / "map.parquet")
    assert table.column_names == ["row", "id", "y", "x", "y_", "cluster", "confidence", "neighbors"]
    assert table["cluster"].to_pylist() == [f"cluster {c}" for c in past.labels]
    assert "exists" in sentence(prodsc("export", run, "--atlas", tmp_path / "map.parquet"))


def test_what_to_export_must_be_said(run, tmp_path):
    assert "say what to export" in sentence(prodsc("export", run), code=2)
    assert "go with --folders" in sentence(prodsc("export", run, "--copy", "--card", tmp_path / "a.md"), code=2)
    assert "rows, not images" in sentence(prodsc("export", run, "--folders", tmp_path / "f"))
    assert "no finished run" in sentence(prodsc("export", tmp_path, "--card", tmp_path / "a.md"))
    assert not any(tmp_path.iterdir())


def test_a_run_with_known_labels_in_a_column_of_text(tmp_path, blobs):
    X, y = blobs
    lines = [",".join([*(f"{v:.3f}" for v in x), f"kind {c}"]) for x, c in zip(X, y, strict=True)]
    (tmp_path / "in.csv").write_text(",".join([*(f"c{j}" for j in range(12)), "kind"]) + "\n" + "\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("prodsc.runs.run.write_report", lambda *_, **__: None, raising=False)
        words = ["-k", 3, "--labels", "kind", "--out", tmp_path / "run", *QUICK, "--epochs", 1]
        assert prodsc("fit", tmp_path / "in.csv", *words).returncode == 0
    done = prodsc("export", tmp_path / "run", "--table", tmp_path / "out.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "out.csv").open() as file:
        assert [row["kind"] for row in csv.DictReader(file)] == [f"kind {c}" for c in y]


def test_rows_that_were_moved_or_changed(run, past, tmp_path):
    moved = tmp_path / "moved.npz"
    moved.write_bytes(past.request.file.read_bytes())
    assert open_run(run, moved).ids[0] == "id 0"
    with np.load(moved) as arrays:
        np.savez(tmp_path / "other.npz", X=arrays["X"][::-1])
    done = prodsc("export", run, "--table", tmp_path / "t.csv", "--data", tmp_path / "other.npz")
    assert "fingerprints differ" in sentence(done)
    done = prodsc("export", run, "--table", tmp_path / "t.csv", "--data", tmp_path / "nowhere.npz")
    assert "give --data FILE" in sentence(done)
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.csv", "row,label,confidence\n0,../../x,1\n"),
        ("labels.csv", ""),
        ("run.json", "[]"),
        ("result.json", "{}"),
    ],
    ids=["hostile-label", "no-labels", "run", "result"],
)
def test_a_damaged_run_is_one_sentence(run, tmp_path, name, content):
    for part in ("labels.csv", "run.json", "result.json"):
        (tmp_path / part).write_bytes((run / part).read_bytes())
    (tmp_path / name).write_text(content)
    with pytest.raises(ModelFileError, match="is damaged"):
        open_run(tmp_path)


def test_an_unfinished_run_says_how_to_go_on(run, tmp_path):
    (tmp_path / "run.json").write_bytes((run / "run.json").read_bytes())
    with pytest.raises(ModelFileError, match=r"prodsc fit --resume"):
        open_run(tmp_path)


# ---- the card --------------------------------------------------------------------------------------------------------


def test_the_card_says_what_a_reader_needs(run, past, tmp_path):
    done = prodsc("export", run, "--card", tmp_path / "MODEL.md", "--licence", "CC BY 4.0")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "MODEL.md").read_text()
    about = json.loads((run / "result.json").read_text())
    for fact in (
        about["data"]["fingerprint"], about["command"], "CC BY 4.0", "150 x 12", "calibrated without", "n_components",
        "`16`", f"ACC {about['scores']['ACC']:.4f}", "no-collapse margin", "prodsc predict",
    ):  # fmt: skip
        assert fact in text
    assert re.search(r"- Representation: (healthy|collapsing|collapsed)\.", text)
    assert "<" not in re.sub(r"`[^`]*`|\\<", "", text)  # no markup but what stands in code
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    exec(block, {"X_new": past.data.X[:3]})  # the card's own words work


def test_the_card_says_when_labels_are_not_exact(tmp_path, blobs):
    few = {"hidden_size": 16, "n_components": 8, "epochs": 2}
    model = PRODSC.from_flat(3, max_landmarks=75, **few).fit(blobs[0])
    assert "affinities of all 150 rows with 75 of them" in export.card(tmp_path / "m.md", model, blobs[0]).read_text()
    exact = PRODSC.from_flat(3, **few).fit(blobs[0])
    assert "Labels use the affinities" not in export.card(tmp_path / "e.md", exact, blobs[0]).read_text()


def test_the_card_of_other_methods_and_without_classes(tmp_path, blobs):
    from prodsc import make

    model = make("k-means", n_clusters=3).fit(blobs[0])
    text = export.card(tmp_path / "k.md", model, blobs[0]).read_text()
    assert "Not measured" in text
    assert "No classes are known" in text
    assert "KMeansClusterer" in text
    digits = {"data": {"file": "digits", "fingerprint": "f"}}
    text = export.card(tmp_path / "d.md", model, blobs[0], about=digits).read_text()
    assert "CC BY 4.0 (UCI)" in text  # what is known of a named set
    with pytest.raises(OutputError, match="exists"):
        export.card(tmp_path / "k.md", model, blobs[0])


@pytest.mark.parametrize("text", ["a`b", "`", "``x", "a|b\nc", "<script>alert(1)</script>", "", "[x](http://e)"])
def test_untrusted_text_is_one_code_span(text):
    span = code(text)
    fence = re.match("`+", span)[0]
    assert span.endswith(fence)
    assert fence not in span[len(fence) : -len(fence)]
    assert "\n" not in span
    assert "|" not in span.replace("\\|", "")


# ---- figures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(FIGURES) - {"subspaces", "k"}))
def test_every_figure_of_one_fit_is_drawn(past, tmp_path, name):
    with_classes = None if name == "tsne" else past.data.y
    path = tmp_path / f"{name}.png"
    drawn = export.figure(name, past.model, past.data.X, path, with_classes)
    assert drawn.get_label().endswith(".")
    with Image.open(path) as image:
        assert image.width == 1440  # one width for all
    if name in ("orthogonal", "singular-values", "csc"):
        assert "class" in drawn.get_supxlabel()
    if name == "tsne":
        assert "cluster" in drawn.get_supxlabel()


def test_measured_figures_train_the_same_model_again(past):
    drawn = export.figure("csc", past.model, past.data.X)
    labels = np.unique(past.labels)
    assert len(labels) == 3
    assert drawn.axes[0].lines[1].get_xdata()[-1] == 20  # the epochs of the run
    assert past.model.history_["step"][-1] > 0  # and the run's model is as it was


def test_subspaces_need_images(past, tmp_path):
    with pytest.raises(InputError, match=r"--images"):
        export.figure("subspaces", past.model, past.data.X, tmp_path / "s.svg")
    images = np.zeros((150, 2, 2))
    drawn = export.figure("subspaces", past.model, past.data.X, tmp_path / "s.svg", images=images)
    assert [axes.get_title() for axes in drawn.axes] == ["cluster 0", "cluster 1", "cluster 2"]
    images = np.broadcast_to(np.arange(150, dtype=np.uint8)[:, None, None], (150, 2, 2))
    block = export.figure("subspaces", past.model, past.data.X, images=images).axes[0].images[0].get_array()
    assert block.shape == (8 * 3, 8 * 3)  # two pixels and a white line for each image
    assert (block[2::3] == 1).all()
    rows = np.flatnonzero(past.labels == 0)
    Z = past.model.transform(past.data.X)[rows]
    strongest = np.linalg.svd(Z, full_matrices=False)[2][0]
    best = rows[np.argmax(np.abs(Z @ strongest))]
    assert round(255 * block[0, 0]) == best


def test_formats_by_their_endings_and_the_same_bytes_twice(run, past, tmp_path):
    first = [tmp_path / f"a.{suffix}" for suffix in ("png", "svg", "pdf")]
    done = prodsc("figure", "spectrum", run, *(word for path in first for word in ("-o", path)))
    assert done.returncode == 0, done.stderr
    export.figure("spectrum", past.model, past.data.X, [path.with_stem("b") for path in first])
    for path, head in zip(first, (b"\x89PNG", b"<?xml", b"%PDF"), strict=True):
        assert path.read_bytes().startswith(head)
        assert path.read_bytes() == path.with_stem("b").read_bytes()
    assert "effective rank" in first[1].read_text()  # the alternative text travels in the file
    assert "exists" in sentence(prodsc("figure", "spectrum", run, "-o", first[0]))
    assert "must end in" in sentence(prodsc("figure", "spectrum", run, "-o", tmp_path / "c.gif"))


def test_names(run, tmp_path):
    listed = prodsc("figure")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(FIGURES)
    many = [e.name for e in EXPERIMENTS if e.kind == "figure" and e.name not in FIGURES]
    assert sorted(many) == [
        "phase",
        "sensitivity",
        "synthetic",
    ]  # every other figure of the paper can be drawn of one fit
    for name in many:
        assert f"prodsc reproduce {name}" in sentence(prodsc("figure", name, run, "-o", tmp_path / "a.png"))
    assert "did you mean 'spectrum'?" in sentence(prodsc("figure", "spectrun", run, "-o", tmp_path / "a.png"))
    assert "ablation is a table of the paper" in sentence(prodsc("figure", "ablation", run, "-o", tmp_path / "a.png"))
    with pytest.raises(ParameterError, match="there is no figure 'ablation'"):
        export.figure("ablation", None, None)
    assert "figure needs -o" in sentence(prodsc("figure", "spectrum", run), code=2)


def test_figures_refuse_other_rows_and_other_methods(past):
    with pytest.raises(InputError, match="fitted on 150"):
        export.figure("spectrum", past.model, past.data.X[:10])
    from prodsc import make

    model = make("k-means", n_clusters=3).fit(past.data.X)
    with pytest.raises(ParameterError, match="can give a learned representation; KMeansClusterer cannot"):
        export.figure("spectrum", model, past.data.X)
    assert isinstance(past.model, PRODSC)


def test_flat_rows_of_a_known_set_are_images():
    assert image_array("digits").shape == (1797, 8, 8)
