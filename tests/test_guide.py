"""The Python of the site's first pages and of the guide runs as it is written, page by page (`make docs` runs this)."""

from pathlib import Path

import pytest

from test_documents import ROOT, document_id, fenced_blocks

PAGES = [ROOT / "docs" / "index.md", ROOT / "docs" / "start.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


def given() -> dict[str, object]:
    """What the text before a block speaks of: rows and a model, and rows to label."""
    from sklearn.datasets import load_digits

    import prodsc

    X = load_digits().data[:300]
    return {"X": X, "X_new": X[:5], "model": prodsc.make("walk", n_clusters=10, random_state=0).fit(X)}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of other libraries; a reader sees them too
@pytest.mark.parametrize("page", PAGES, ids=document_id)
def test_the_python_of_a_page_runs(page: Path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = given() if page.name == "index.md" else {}
    for block in fenced_blocks(page.read_text(encoding="utf-8"), "python"):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.slow
def test_an_exported_model_labels_as_the_page_on_sharing_says(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    monkeypatch.chdir(tmp_path)
    names = given()
    blocks = fenced_blocks((ROOT / "docs" / "sharing.md").read_text(encoding="utf-8"), "python")
    exec("from prodsc import export", names)
    for block in blocks[1:]:  # the first one needs the Hub; tests/export/test_hub.py runs its calls
        exec(compile(block, "sharing.md", "exec"), names)
    assert (names["labels"] == names["model"].predict(names["X_new"])).all()
