"""Every method meets every command and every export: each works, or one sentence says why not.

What a method declares (`capabilities`) decides which of the two it must be.
"""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import prodsc
from conftest import RIVAL_LIBRARIES, union_of_subspaces
from prodsc import export
from prodsc.cli import main
from prodsc.errors import ProdscError
from prodsc.estimators.capabilities import METHOD_OF, Capability, can
from prodsc.export.pictures import FIGURES
from prodsc.registry import METHODS, load, make

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

K, N, SIDE = 3, 60, 4  # clusters, rows, and pixels of a row seen as a square image
NETWORK = {"hidden_size": 16, "n_components": 8, "epochs": 3, "warmup_steps": 2, "n_init": 2}
QUICK: dict[str, dict] = {
    "sedsc": NETWORK,
    "pro-dsc": NETWORK,
    "cpp": NETWORK,
    "mlc": {"head_hidden_size": 8, "epochs": 3, "warmup_steps": 2, "n_init": 2},
    "temi": {"n_heads": 2, "hidden_size": 8, "n_components": 4, "warmup_epochs": 0, "epochs": 3, "n_neighbors": 10},
    "scan": {"n_heads": 2, "n_neighbors": 10, "epochs": 3, "self_label_epochs": 1},
    "turtle": {"inner_steps": 2, "steps": 5},
    "senet": {"hidden_sizes": (16,), "n_components": 16, "steps": 5, "n_neighbors": 5, "n_init": 2},
    "dsc-net": {"hidden_size": 8, "n_components": 4, "pretrain_epochs": 3, "epochs": 3, "subspace_dim": 2, "n_init": 2},
    "edesc": {"hidden_sizes": (16,), "pretrain_epochs": 3, "steps": 3, "subspace_dim": 2, "n_init": 2},
    "umap-k-means": {"n_components": 2, "n_neighbors": 10, "n_init": 2},
    "umap-gmm": {"n_components": 2, "n_neighbors": 10},
    "umap-hdbscan": {"n_components": 2, "n_neighbors": 10, "min_samples": 5},
    "evoc": {"n_neighbors": 10},
}
MISSING = {name: library for name, library in RIVAL_LIBRARIES.items() if find_spec(library) is None}
INSTALLED = [name for name in METHODS if name not in MISSING]
ALL = [
    *INSTALLED,
    *(pytest.param(n, marks=pytest.mark.skip(reason=f"{library} is not installed")) for n, library in MISSING.items()),
]


@pytest.fixture(scope="module")
def rows():
    X, y = union_of_subspaces(n_per_class=N // K, n_classes=K, ambient=SIDE * SIDE)
    return X.astype(np.float32), y


@pytest.fixture(scope="module")
def folder(tmp_path_factory, rows) -> Path:
    """A folder with the rows as a file."""
    path = tmp_path_factory.mktemp("commands")
    np.save(path / "rows.npy", rows[0])
    return path


@pytest.fixture(scope="module")
def models(folder, rows):
    """method -> fitted model; saved in folder / method."""
    fitted = {}
    for name in INSTALLED:
        fitted[name] = make(name, n_clusters=K, device="cpu", **QUICK.get(name, {"n_init": 2})).fit(rows[0])
        fitted[name].save(folder / name)
    return fitted


@pytest.fixture(scope="module")
def run(folder) -> Path:
    """The folder of a finished `prodsc fit`."""
    path = folder / "run"
    words = ["fit", str(folder / "rows.npy"), "-k", str(K), "--out", str(path), "--quiet", "--device", "cpu"]
    for name, value in NETWORK.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert exit_.value.code == 0
    return path


def one_sentence(message: str, *names: object) -> None:
    """A message a person can act on: one paragraph with a full stop that names the method or the file."""
    assert "\n" not in message, message
    assert message.endswith("."), message
    assert any(str(name) in message for name in names), f"{message!r} names none of {names}"


def works_or_says(works: bool, call, *names: object):
    """Call; where it cannot work, expect one of our errors in one sentence."""
    if works:
        return call()
    with pytest.raises(ProdscError) as error:
        call()
    return one_sentence(str(error.value), *names)


def command(capfd, works: bool, words: list[object], *names: object) -> str:
    """Run a command in this process: exit code 0, or one sentence and 1; its standard output."""
    capfd.readouterr()
    with pytest.raises(SystemExit) as exit_:
        main([str(word) for word in words])
    out, err = capfd.readouterr()
    assert exit_.value.code == (0 if works else 1), err
    if not works:
        first, last = err.find("prodsc: "), err.strip()
        assert first == 0, err
        one_sentence(last, *names)
    return out


def test_methods_are_declared(models):
    for name, model in models.items():
        declared = {capability for capability in METHOD_OF if can(model, capability)}
        present = {capability for capability, method in METHOD_OF.items() if hasattr(model, method)}
        assert declared == present, name
        assert can(model, Capability.HISTORY) == hasattr(model, "history_"), name
        assert can(model, Capability.K_CURVE) == hasattr(model, "k_curve_"), name


@pytest.mark.parametrize("name", ALL)
def test_estimator(name, models, rows, folder):
    X, model = rows[0], models[name]
    again = load(folder / name)
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    shapes = {"predict": (N,), "predict_proba": (N, K), "outlier_score": (N,), "affinity": (N, N)}
    for capability, method in METHOD_OF.items():
        if can(model, capability):
            result = getattr(again, method)(X)
            assert result.shape == shapes.get(method, result.shape), method
            assert result.shape[0] == N, method
    chunks = works_or_says(can(model, Capability.PREDICT), lambda: list(again.labelled(X)), type(model).__name__)
    if can(model, Capability.PREDICT):
        np.testing.assert_array_equal(np.concatenate([chunk[0] for chunk in chunks]), again.predict(X))
        assert all((len(chunk) > 1) == can(model, Capability.PROBABILITIES) for chunk in chunks)


@pytest.mark.parametrize("name", ALL)
def test_diagnose_and_exports(name, models, rows, tmp_path):
    (X, y), model = rows, models[name]
    kind = type(model).__name__
    diagnosis = works_or_says(can(model, Capability.DIAGNOSE), lambda: prodsc.diagnose(model, X), kind)
    assert diagnosis is None or diagnosis.representation
    assert export.table(tmp_path / "t.csv", X, model.labels_).read_text(encoding="utf-8").count("\n") == N + 1
    images = X.reshape(N, SIDE, SIDE)
    assert (export.folders(tmp_path / "by-cluster", images, model.labels_) / "index.csv").is_file()
    card = export.card(tmp_path / "card.md", model, X, y).read_text(encoding="utf-8")
    assert ("predict_proba" in card) == can(model, Capability.PROBABILITIES)
    assert ("model.predict(" in card) == can(model, Capability.PREDICT)


@pytest.mark.parametrize("name", ALL)
def test_figures(name, models, rows):
    X, model = rows[0], models[name]
    for figure, drawing in FIGURES.items():
        works = all(can(model, needed) for needed in drawing.needs)
        works &= figure != "k"  # k was given
        works &= (name, figure) != ("sedsc", "water-filling")  # a theorem about the coding rate, which SEDSC has not
        images = X.reshape(N, SIDE, SIDE) if figure == "subspaces" else None
        works_or_says(works, lambda f=figure, i=images: export.figure(f, model, X, images=i), type(model).__name__, "k")


@pytest.mark.parametrize("name", ALL)
def test_commands_on_a_saved_model(name, models, folder, tmp_path, capfd):
    """`report`, `export` and `figure` need the folder of a run, and a saved model is not one."""
    model, saved, file = models[name], folder / name, folder / "rows.npy"
    kind = type(model).__name__
    out = command(capfd, can(model, Capability.PREDICT), ["predict", saved, file], kind)
    assert out.count("\n") == (N + 1 if can(model, Capability.PREDICT) else 0)
    command(capfd, can(model, Capability.DIAGNOSE), ["diagnose", saved, file], kind)
    for words in (
        ["report", saved],
        ["export", saved, "--table", tmp_path / "t.csv"],
        ["export", saved, "--card", tmp_path / "c.md"],
        ["export", saved, "--folders", tmp_path / "f"],
        ["figure", "map", saved, "-o", tmp_path / "m.png"],
        ["fit", "--resume", saved],
    ):
        command(capfd, False, words, saved)
    assert not list(tmp_path.iterdir())


def test_commands_on_a_run(run, folder, tmp_path, capfd):
    file = folder / "rows.npy"
    assert command(capfd, True, ["predict", run, file]).count("\n") == N + 1
    for words in (
        ["diagnose", run, file],
        ["report", run],
        ["export", run, "--table", tmp_path / "t.csv", "--card", tmp_path / "c.md"],
    ):
        command(capfd, True, words)
    np.save(folder / "images.npy", np.load(file).reshape(N, SIDE, SIDE))
    command(capfd, True, ["export", run, "--folders", tmp_path / "f", "--images", folder / "images.npy"])
    command(capfd, False, ["export", run, "--folders", tmp_path / "g"], file)
    command(capfd, False, ["fit", "--resume", run], run)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_a_run(name, run, folder, tmp_path, capfd):
    np.save(folder / "images.npy", np.load(folder / "rows.npy").reshape(N, SIDE, SIDE))
    images = ["--images", folder / "images.npy"] if name == "subspaces" else []
    command(capfd, name != "k", ["figure", name, run, "-o", tmp_path / "f.png", *images], "k")
    assert (tmp_path / "f.png").is_file() == (name != "k")
