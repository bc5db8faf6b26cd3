"""`prodsc report`: a finished run's page made again, with images, texts, columns and another fit beside it."""

import csv
import shutil

import numpy as np
import pytest
from PIL import Image
from test_fit import QUICK, prodsc, sentence

from prodsc.manifest import replaced


@pytest.fixture(scope="module")
def run(tmp_path_factory, blobs):
    """A run on named rows, and another fit of the same rows whose first five labels differ."""
    folder = tmp_path_factory.mktemp("reported")
    X, y = blobs
    names = [f"{i:03}.png" for i in range(len(X))]
    np.savez(
        folder / "data.npz",
        X=X,
        y=y,
        ids=np.array(names),
        classes=np.array(["ant", "bee", "cow"]),
        age=np.arange(len(X)),
    )
    (folder / "images").mkdir()
    for i, name in enumerate(names):
        Image.new("L", (9, 9), i).save(folder / "images" / name)
    (folder / "texts.txt").write_text("".join(f"text of {name}\n" for name in names))
    done = prodsc("fit", folder / "data.npz", "-k", 3, "--out", folder / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    shutil.copytree(folder / "run", folder / "other")
    lines = (folder / "other" / "labels.csv").read_text().splitlines()
    rows = list(csv.reader(lines[1:]))
    for row in rows[:5]:
        row[2] = str((int(row[2]) + 1) % 3)
    with replaced(folder / "other") as path_of:  # with its digest, as a changed file is refused
        path_of("labels.csv").write_text("\n".join([lines[0], *(",".join(row) for row in rows)]) + "\n")
    return folder


def test_the_page_is_made_again_with_more_to_look_at(run):
    first = (run / "run" / "report.html").read_text()
    assert "000.png" in first  # the names of rows are known without asking
    assert '"classes":["ant","bee","cow"]' in first
    assert "To repeat it" in first
    done = prodsc(
        "report", run / "run", "--images", run / "images", "--texts", run / "texts.txt", "--columns", "3,age",
        "--compare", run / "other",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "report.html: 0." in done.stdout  # megabytes
    page = (run / "run" / "report.html").read_text()
    assert "text of 000.png" in page
    assert "image/png" in page
    assert '"name":"age"' in page
    assert "5 of 150 move" in page
    assert "moved or not" in page
    assert "moved or not" not in first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--columns", "agee"], "no column 'agee'"),
        (["--images", "{}/texts.txt"], "holds texts"),
        (["--texts", "{}/nothing.txt"], "does not exist"),
        (["--compare", "{}/images"], "holds no finished run"),
        (["--data", "{}/more.npz"], "fingerprints differ"),
    ],
    ids=["column", "kind", "no file", "no run", "other data"],
)
def test_what_cannot_be_is_one_sentence(run, words, said):
    np.savez(run / "more.npz", X=np.load(run / "data.npz")["X"] + 1)
    assert said in sentence(prodsc("report", run / "run", *(word.format(run) for word in words)))


def test_fits_of_other_rows_are_not_compared(run):
    shutil.copytree(run / "run", run / "stranger", dirs_exist_ok=True)
    result = (run / "stranger" / "result.json").read_text().replace('"fingerprint": "', '"fingerprint": "0')
    with replaced(run / "stranger") as path_of:
        path_of("result.json").write_text(result)
    assert "was fitted on other rows" in sentence(prodsc("report", run / "run", "--compare", run / "stranger"))
