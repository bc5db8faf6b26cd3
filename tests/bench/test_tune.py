"""The search: by a score without labels, resumed without loss, ending with a recipe that fit reads."""

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import prodsc.bench.tune as module
from prodsc import files
from prodsc.bench.label_free import BY_LABELS, BY_NEIGHBOURS
from prodsc.bench.trials import Status, _record, read_outcome
from prodsc.bench.tune import SEARCHED, settings, tune
from prodsc.cli import cli
from prodsc.core.theory import gamma_safe
from prodsc.errors import InputError, MissingExtraError, ParameterError
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.runs.recipes import load_recipe

BEST_ETA = 0.1


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(120) % 3
    return (rng.standard_normal((3, 8))[y] + 0.1 * rng.standard_normal((120, 8))).astype(np.float32), y


@pytest.fixture
def ran(monkeypatch, blobs):
    """Trials that need no training: the nearer eta is to the best one, the more rows get their right label."""
    done, stop_at = [], []

    def run(trials, folder, *, budget_seconds=None):
        (trial,) = trials
        folder.mkdir(exist_ok=True)
        if outcome := read_outcome(trial, folder):
            return [outcome]
        if stop_at and len(done) == stop_at[0]:
            stop_at.clear()
            raise KeyboardInterrupt
        done.append(trial)
        off = abs(np.log(trial.parameters.get("eta", 0.25) / BEST_ETA))
        rng = np.random.default_rng(0)
        labels = np.where(rng.random(120) < off, rng.integers(0, 3, 120), blobs[1])
        if trial.parameters.get("eta", 0.25) > 0.28:
            _record(trial, folder, status=Status.FAILED, reason="out of time at 1 s")
        else:
            np.savez(arrays := folder / f"{trial.key}.npz", labels=labels)
            _record(trial, folder, {"ACC": 100 - off, "seconds": 1.0}, arrays=files.sha256(arrays))
        return [read_outcome(trial, folder)]

    monkeypatch.setattr(module, "run_trials", run)
    return done, stop_at


def test_the_search_finds_a_good_setting_without_labels(ran, blobs) -> None:
    found = tune(blobs[0], n_clusters=3, trials=15)
    first, *others = found.trials
    assert (first.number, first.point) == (0, {})
    assert first.outcome.trial.parameters == {"n_clusters": 3}, "the first trial is the defaults"
    assert all(tuple(sorted(one.point)) == tuple(sorted(SEARCHED)) for one in others)
    assert found.best.score > first.score
    assert found.by == BY_NEIGHBOURS
    assert len({one.outcome.trial.key for one in found.trials}) == 15, "no setting is tried twice"


def test_stopped_and_gone_on_it_is_the_same_search(ran, blobs, tmp_path: Path) -> None:
    done, stop_at = ran
    whole = tune(blobs[0], n_clusters=3, trials=6, out=tmp_path / "whole")
    done.clear()
    stop_at.append(3)
    with pytest.raises(KeyboardInterrupt):
        tune(blobs[0], n_clusters=3, trials=6, out=tmp_path / "cut")
    assert len(done) == 3
    again = tune(blobs[0], n_clusters=3, trials=6, out=tmp_path / "cut")
    assert [one.point for one in again.trials] == [one.point for one in whole.trials]
    assert len(done) == 6, "what was done is not done again"
    more = tune(blobs[0], n_clusters=3, trials=8, out=tmp_path / "cut")
    assert [one.point for one in more.trials][:6] == [one.point for one in whole.trials]
    other = tune(blobs[0], n_clusters=4, trials=2, out=tmp_path / "cut")
    assert len(other.trials) == 2, "another question is another search"


def test_gamma_is_a_share_of_the_safe_bound() -> None:
    place = {"gamma_share": 0.5, "n_components": 64, "eta": 0.1}
    found = settings(place, {"n_clusters": 3}, (5000, 9))
    eps = PRODSC().flat_params()["eps"]
    assert found == {"n_components": 64, "eta": 0.1, "gamma": pytest.approx(0.5 * gamma_safe(1024, 64, eps))}
    assert settings(place, {"n_clusters": 3, "n_components": 32}, (5000, 9))["gamma"] == pytest.approx(
        0.5 * gamma_safe(1024, 32, eps)
    )
    assert settings({}, {}, (100, 9)) == {}


def test_true_labels_only_when_they_are_asked_for(ran, blobs) -> None:
    X, y = blobs
    told = tune(X, y, n_clusters=3, trials=5, with_labels=True)
    assert told.by == BY_LABELS
    assert told.best.score == max(one.outcome.numbers.get("ACC", 0) for one in told.trials)
    with pytest.raises(InputError, match="needs labels"):
        tune(X, n_clusters=3, trials=1, with_labels=True)


def test_wrong_words_speak_before_anything_runs(ran, blobs, monkeypatch) -> None:
    with pytest.raises(ParameterError, match="eta must be"):
        tune(blobs[0], n_clusters=3, parameters={"eta": -1})
    with pytest.raises(ParameterError, match="whole number of at least 2"):
        tune(blobs[0], n_clusters="auto")
    assert not ran[0]
    monkeypatch.setattr("importlib.import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    with pytest.raises(MissingExtraError, match=r"prodsc\[tune\]"):
        tune(blobs[0], n_clusters=3)


def test_the_command_leaves_a_recipe_a_table_and_a_page(ran, blobs, tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", X=blobs[0], y=blobs[1])
    words = ["tune", str(tmp_path / "data.npz"), "-k", "3", "--trials", "6", "--set", "beta=300", "--out"]
    done = CliRunner().invoke(cli, [*words, str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "[6/6]" in done.output
    recipe = load_recipe(str(tmp_path / "out" / "recipe.toml")).parameters
    assert (recipe["n_clusters"], recipe["beta"]) == (3, 300)
    PRODSC.from_flat(**recipe).check(blobs[0])
    with (tmp_path / "out" / "table.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 6
    assert float(lines[0]["score"]) == max(float(line["score"]) for line in lines if line["score"])
    assert "with the true labels" not in (tmp_path / "out" / "table.md").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Score by trial" in page or "How the search went" in page
    assert "Where it was good" in page
