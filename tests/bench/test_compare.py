"""Comparisons: what is averaged, what is shown without labels, tuning, and the command. Fits are replaced by labels."""

import itertools

import numpy as np
import pytest
from click.testing import CliRunner

from prodsc.bench import compare as module
from prodsc.bench.compare import agreement, compare, grid_of
from prodsc.bench.trials import Limits, Outcome, Status, Trial
from prodsc.cli import cli
from prodsc.core.metrics import ari, scores
from prodsc.errors import InputError, ParameterError
from prodsc.estimators.parameters import check_parameters
from prodsc.estimators.scoring import LabelFreeScorer
from prodsc.registry import make


def wrong_labels(y, seed):
    """The truth with some labels replaced, more of them for a higher seed."""
    labels = y.copy()
    labels[np.random.default_rng(seed).choice(len(y), 20 + 5 * seed, replace=False)] = 0
    return labels


@pytest.fixture
def stand_in(monkeypatch, blobs):
    """Trials that answer at once: k-means finds the truth, others err with the seed; gamma=300 is best to tune to."""
    y = blobs[1]
    asked = []

    def run(trials, folder, *, on_trial=lambda *_: None, **_):
        found = []
        for number, trial in enumerate(trials):
            asked.append(trial)
            right = trial.method == "k-means" or trial.parameters.get("gamma") == 300.0
            labels = y.copy() if right else wrong_labels(y, trial.seed)
            numbers = {name: 100 * value for name, value in scores(y, labels).items()}
            outcome = Outcome(trial, numbers | {"seconds": 1.0, "peak_memory_mb": 100.0})
            outcome.__dict__["arrays"] = {"labels": labels}
            if trial.method == "sedsc" and trial.seed == 1:
                outcome = Outcome(trial, status=Status.FAILED, reason="out of memory at 9.6 GB")
            on_trial(number, trial, outcome)
            found.append(outcome)
        return found

    monkeypatch.setattr(module, "run_trials", run)
    return asked


def test_a_line_per_method_with_failures_shown(stand_in, blobs):
    X, y = blobs
    table = compare(X, y, ["k-means", "sedsc"], seeds=3)
    first, second = table.summaries
    assert first.cell("ACC") == "100.0 ± 0.0"
    assert second.failures == ("failed 1/3: out of memory at 9.6 GB",)
    assert len(second.values["ACC"]) == 2
    assert "failed 1/3: out of memory at 9.6 GB" in table.markdown()
    assert table.csv().splitlines()[0].startswith("method,runs,ACC,ACC std")
    assert {trial.parameters["n_clusters"] for trial in stand_in} == {3}, "k is that of the labels"


def test_the_agreement_of_seeds_is_shown_for_every_method(stand_in, blobs):
    X, y = blobs
    table = compare(X, y, ["k-means", "pro-dsc", "sedsc"], seeds=3)
    steady, unsteady, failed_once = table.summaries
    assert "seeds agree (ARI), %" in table.header()
    assert steady.cell("stability") == "100.0 ± 0.0"
    labels = [wrong_labels(y, seed) for seed in range(3)]
    pairs = [100 * ari(a, b) for a, b in itertools.combinations(labels, 2)]
    assert unsteady.values["stability"] == pytest.approx(pairs)
    assert failed_once.values["stability"] == pytest.approx([100 * ari(labels[0], labels[2])])
    assert "stability" in table.csv().splitlines()[0].split(",")
    one_seed = compare(X, y, ["k-means"], seeds=1)
    assert "seeds agree (ARI), %" not in one_seed.header(), "one seed agrees with nothing"


def test_without_labels_scores_that_need_none(stand_in, blobs):
    X, _ = blobs
    with pytest.raises(ParameterError, match="n_clusters=k"):
        compare(X, None, ["k-means"], seeds=1)
    table = compare(X, None, ["k-means", "pro-dsc"], seeds=3, n_clusters=3)
    assert table.metrics[:3] == ("neighbours", "silhouette", "stability")
    good, bad = table.summaries
    for metric in ("neighbours", "silhouette", "stability"):
        assert good.mean(metric) > bad.mean(metric)
    assert good.mean("stability") == 100
    assert table.agreement["k-means", "pro-dsc"] == table.agreement["pro-dsc", "k-means"] < 100


def test_tuning_needs_no_labels_unless_asked(stand_in, blobs):
    X, y = blobs
    table = compare(X, y, ["pro-dsc"], seeds=2, tune=True)
    assert table.chosen["pro-dsc"]["gamma"] == 300.0
    assert table.by == "neighbours that agree beyond chance, without labels"
    assert [t.parameters["gamma"] for t in stand_in][-2:] == [300.0, 300.0]
    told = compare(X, y, ["pro-dsc"], seeds=2, tune_with_labels=True)
    assert "true labels" in told.by
    assert "with the true labels" in told.markdown()
    with pytest.raises(InputError, match="needs labels"):
        compare(X, None, ["pro-dsc"], seeds=1, n_clusters=3, tune_with_labels=True)


def test_scores_without_labels_look_at_the_rows_that_were_labelled(monkeypatch, blobs, tmp_path):
    """A file with a test part: trials label that part alone."""
    X, y = blobs
    test = np.arange(len(y)) % 3 == 0
    np.savez(tmp_path / "parts.npz", X=X, split=test.astype(int))

    def run(trials, folder, **_):
        outcomes = [Outcome(trial, {"seconds": 1.0, "peak_memory_mb": 1.0}) for trial in trials]
        for outcome in outcomes:
            outcome.__dict__["arrays"] = {"labels": y[test]}
        return outcomes

    monkeypatch.setattr(module, "run_trials", run)
    table = compare(tmp_path / "parts.npz", None, ["k-means"], seeds=2, n_clusters=3, tune=True)
    assert table.summaries[0].mean("neighbours") > 90


def test_the_command_takes_parameters_of_methods(stand_in, blobs, tmp_path):
    np.savez(tmp_path / "data.npz", X=blobs[0], y=blobs[1])
    words = [
        "compare",
        str(tmp_path / "data.npz"),
        "--methods",
        "dsc-net",
        "--seeds",
        "1",
        "--out",
        str(tmp_path / "out"),
    ]
    done = CliRunner().invoke(cli, [*words, "--set", "dsc-net.gamma=0.2", "--set", "dsc-net.channels=3,3,5"])
    assert done.exit_code == 0, done.output
    assert stand_in[0].parameters == {"n_clusters": 3, "gamma": 0.2, "channels": [3, 3, 5]}
    for wrong, why in (
        ("gamma=1", "--set takes METHOD.NAME=VALUE"),
        ("dsc-net.gama=1", "did you mean 'gamma'"),
        ("dsc-nett.gamma=1", "did you mean 'dsc-net'"),
        ("dsc-net.gamma=-1", "gamma must be a number above 0"),
    ):
        failed = CliRunner().invoke(cli, [*words, "--set", wrong])
        assert failed.exit_code != 0
        assert why in failed.output + str(failed.exception)


def test_the_papers_grids():
    """Every value that its appendix names."""
    sizes = {name: len(grid_of(name)) for name in ("ensc", "ssc-omp", "dsc-net", "cpp", "k-means")}
    assert sizes == {"ensc": 12 * 3, "ssc-omp": 8 * 4, "dsc-net": 4 * 6, "cpp": 2, "k-means": 1}
    assert {"gamma": 3200, "tau": 1.0} in grid_of("ensc")
    assert {"k_max": 200, "tolerance": 1e-7} in grid_of("ssc-omp")


def test_the_command_counts_and_names_what_it_tries(stand_in, blobs, tmp_path):
    np.savez(tmp_path / "data.npz", X=blobs[0], y=blobs[1])
    words = ["compare", str(tmp_path / "data.npz"), "--methods", "k-means,lsr", "--seeds", "2", "--tune"]
    done = CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "[2/10] lsr seed 0 gamma=0.1" in done.output  # 1 + 5 of the grids, 2 methods x 2 seeds
    assert "[10/10] lsr seed 1" in done.output
    assert "Tuned by neighbours that agree beyond chance, without labels" in done.output


def test_typos_and_shapes(blobs):
    X, y = blobs
    with pytest.raises(ParameterError, match="did you mean 'k-means'"):
        compare(X, y, ["k-meens"])
    with pytest.raises(InputError, match="149 labels for 150 rows"):
        compare(X, y[:-1], ["k-means"])


@pytest.mark.parametrize("name", list(module.GRIDS))
def test_grids_hold_values_that_their_methods_take(name):
    for point in grid_of(name):
        model = make(name, n_clusters=3, **point)
        check_parameters(type(model), model.flat_params(), name)


def test_unlabelled_scores_by_hand():
    X = np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]], dtype=float)
    scorer = LabelFreeScorer(X, n_neighbors=1)
    assert scorer.neighbour_agreement(np.array([0, 0, 1, 1])) == 100
    assert scorer.neighbour_agreement(np.array([0, 1, 0, 1])) == pytest.approx(100 * (0 - 0.5) / 0.5)
    assert scorer.neighbour_agreement(np.array([0, 0, 0, 1])) == pytest.approx(100 * (0.5 - 0.625) / 0.375)
    assert scorer.neighbour_agreement(np.zeros(4, dtype=int)) == 0, "one cluster says nothing"
    assert scorer.silhouette(np.array([0, 0, 1, 1])) > 0.9
    assert np.isnan(scorer.silhouette(np.zeros(4, dtype=int)))


def test_agreement_needs_a_seed_that_both_finished():
    def run(method, seed, labels):
        outcome = Outcome(Trial("x", method, seed))
        outcome.__dict__["arrays"] = {"labels": np.array(labels)}
        return outcome

    found = agreement([run("a", 0, [0, 0, 1]), run("b", 0, [1, 1, 0]), run("c", 1, [0, 1, 1])])
    assert found == {("a", "b"): 100.0, ("b", "a"): 100.0}


def test_the_command(stand_in, blobs, tmp_path):
    X, y = blobs
    np.savez(tmp_path / "data.npz", X=X, y=y)
    words = ["compare", str(tmp_path / "data.npz"), "--methods", "k-means,pro-dsc", "--seeds", "2"]
    done = CliRunner().invoke(cli, [*words, "--out", str(tmp_path / "out"), "--time-limit", "60"])
    assert done.exit_code == 0, done.output
    assert "100.0 ± 0.0" in done.output
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"table.csv", "table.md", "report.html"}
    assert "Methods on data.npz" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.slow
def test_a_real_comparison(blobs, tmp_path):
    X, y = blobs
    table = compare(X, y, ["k-means", "spectral"], seeds=2, limits=Limits(seconds=300), out=tmp_path)
    assert all(not line.failures for line in table.summaries)
    assert table.summaries[0].mean("ACC") > 95
