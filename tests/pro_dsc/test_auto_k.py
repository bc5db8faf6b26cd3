"""n_clusters="auto" through the estimator, the command line and the files."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from prodsc import PRODSC, estimate_k, export, load, make
from prodsc.cli import main
from prodsc.errors import InputError, ParameterError
from prodsc.export.cards import card_text

SMALL = {"hidden_size": 16, "n_components": 8, "epochs": 2, "warmup_steps": 2, "batch_size": 100}


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    return (rng.standard_normal((5, 12))[np.arange(300) % 5] + 0.2 * rng.standard_normal((300, 12))).astype(np.float32)


def test_auto_is_estimated_kept_and_saved(X: np.ndarray, tmp_path: Path) -> None:
    model = PRODSC.from_flat("auto", **SMALL).fit(X)
    assert (model.n_clusters, model.n_clusters_) == ("auto", 5)
    assert model.k_curve_ is not None
    assert set(model.labels_) == set(range(5))
    assert model.predict_proba(X).shape == (300, 5)
    model.save(tmp_path)
    again = load(tmp_path)
    assert (again.n_clusters, again.n_clusters_, again.k_curve_) == ("auto", 5, model.k_curve_)
    np.testing.assert_array_equal(again.predict(X), model.labels_)
    drawn = export.figure("k", again, X, tmp_path / "k.png")
    assert "k = 5" in drawn.get_suptitle().lower()
    assert "estimated from the data" in card_text(again, X)


def test_a_given_number_has_no_curve(X: np.ndarray) -> None:
    model = PRODSC.from_flat(3, **SMALL).fit(X)
    assert (model.n_clusters_, model.k_curve_) == (3, None)
    with pytest.raises(InputError, match="-k auto"):
        export.figure("k", model, X)


def test_no_clear_k_is_said_with_candidates() -> None:
    noise = np.random.default_rng(0).standard_normal((300, 6))
    with pytest.raises(InputError, match=r"no clear k: .* Give a number, for example \d+"):
        PRODSC.from_flat("auto", **SMALL).fit(noise)


@pytest.mark.parametrize("name", ["k-means", "cpp", "spectral"])
def test_other_methods_need_a_number(name: str, X: np.ndarray) -> None:
    with pytest.raises(ParameterError, match="prodsc k FILE"):
        make(name, n_clusters="auto").fit(X)


def test_estimate_k_is_checked(X: np.ndarray) -> None:
    assert estimate_k(X, at_least=4, at_most=12).candidates == [*range(4, 13)]
    with pytest.raises(InputError, match="at least 40"):
        estimate_k(X[:20])
    with pytest.raises(ParameterError, match="at_most above it"):
        estimate_k(X, at_least=5, at_most=5)
    with pytest.raises(ParameterError, match="fewer than 8"):
        estimate_k(X, at_least=100)


def test_command_k_and_fit_auto(X: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(SystemExit) as ended:
        main(["k", str(tmp_path / "x.npy"), "--at-most", "10", "--out", str(tmp_path / "k"), "--quiet"])
    assert not ended.value.code
    assert "k = 5:" in capsys.readouterr().out
    with (tmp_path / "k" / "k.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [int(line["k"]) for line in lines] == list(range(2, 11))
    assert max(lines, key=lambda line: float(line["score"]))["k"] == "5"
    assert (tmp_path / "k" / "k.png").stat().st_size > 10_000
    options = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    with pytest.raises(SystemExit) as ended:
        main(["fit", str(tmp_path / "x.npy"), "-k", "auto", "--out", str(tmp_path / "run"), "--quiet", *options])
    assert not ended.value.code
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["parameters"]["n_clusters"], result["used"]["n_clusters"]) == ("auto", 5)
    assert "How k was chosen" in (tmp_path / "run" / "report.html").read_text()
    assert "k = 5" in capsys.readouterr().out
