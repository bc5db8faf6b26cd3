"""Tables and figures of the paper: plans that can be run, numbers beside the published ones, pictures."""

import numpy as np
import pytest
from click.testing import CliRunner

from conftest import SMALL
from prodsc.bench.measures import scores
from prodsc.bench.trials import Outcome, Status, Trial, find_measure
from prodsc.cli import cli
from prodsc.errors import InputError, ParameterError
from prodsc.estimators.parameters import check_parameters
from prodsc.paper import plans as paper
from prodsc.paper import reproduce
from prodsc.paper.figures_of_trials import PAPER_FIGURES
from prodsc.paper.measures import sphere
from prodsc.paper.plans import EXPERIMENT_BY_NAME, EXPERIMENTS, make_plan
from prodsc.paper.published import published, tables
from prodsc.registry import make
from prodsc.report.theory_figures import aligned_rows

TINY = SMALL | {"n_clusters": 10, "epochs": 6, "warmup_steps": 5, "n_init": 1, "batch_size": 256}


def present(name):
    return None


def test_every_table_of_the_paper_can_be_asked_for():
    assert set(tables()) <= set(EXPERIMENT_BY_NAME)


@pytest.mark.parametrize("name", tables())
def test_tables_are_of_the_papers_data_and_metrics(name):
    experiment = EXPERIMENT_BY_NAME[name]
    known = published(table=name)
    run = {experiment.published_as(dataset) for dataset in experiment.datasets}
    if name != "byol":  # of its five sets, only the images of one can be fetched
        assert run == {number.dataset for number in known}
    assert {number.metric for number in known} <= {metric.split()[-1] for metric in experiment.metrics}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_every_plan_holds_trials_that_could_run(experiment):
    """Methods, parameters and measures exist and obey their rules, for the paper's data and for ours."""
    for dataset in (*experiment.datasets, *experiment.substitutes):
        trials = experiment.trials(dataset, 0)
        assert trials
        for trial in trials:
            assert callable(find_measure(trial.measure))
            if trial.method != "none":  # features as they are
                model = make(trial.method, **trial.parameters)
                check_parameters(type(model), model.flat_params(), trial.method)
    assert experiment.figure is None or experiment.figure in PAPER_FIGURES


def test_a_missing_data_set_is_named_and_data_at_hand_run_instead():
    gone = {"cifar10": "cifar10 is not here; get it."}
    plan = make_plan(EXPERIMENT_BY_NAME["bdr-k"], (), range(2), gone.get)
    assert plan.missing == gone
    assert {trial.dataset for trial in plan.trials} == {"cifar100", "cifar10-efflite0"}
    assert {trial.seed for trial in plan.trials} == {0, 1}
    asked = make_plan(EXPERIMENT_BY_NAME["bdr-k"], ["cifar10"], range(1), gone.get)
    assert asked.trials == [], "what was asked for by name is not silently replaced"
    assert make_plan(EXPERIMENT_BY_NAME["bdr-k"], (), range(1), present).missing == {}


def test_unknown_names_get_a_suggestion():
    with pytest.raises(ParameterError, match="did you mean 'ablation'"):
        reproduce.plan("abblation")


def result_for(name, outcomes, missing=None):
    plan = paper.ExperimentPlan(EXPERIMENT_BY_NAME[name], [o.trial for o in outcomes], missing or {})
    return reproduce.Reproduction(plan, outcomes, None)


def test_ours_stands_beside_the_published_number():
    runs = [Outcome(Trial("orl", "pro-dsc", s), {"ACC": a, "NMI": 90.0}) for s, a in enumerate((80.0, 82.0))]
    acc, nmi = result_for("faces-objects", runs).against_paper()
    assert (acc.ours, acc.std, acc.runs, acc.published) == (81.0, 1.0, 2, 83.2)
    assert acc.difference == pytest.approx(-2.2)
    assert nmi.published == 92.7
    text = result_for("faces-objects", runs).text()
    assert "81.0 ± 1.0 | 83.2" in text
    assert "-2.2" in text
    assert "Known departures" in text


def test_departures_of_the_rivals_are_printed_with_their_numbers():
    runs = [Outcome(Trial("cifar10", name, 0), {"ACC": 80.0, "NMI": 90.0}) for name in ("k-means", "temi")]
    remarks = result_for("clip", runs).remarks()
    (line,) = remarks["Departures of the baselines from their authors' settings"]
    assert line.startswith("temi: one scale for all columns")


def test_a_table_can_be_planned_for_a_file(tmp_path):
    X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", X=X, y=np.arange(30) % 5)
    planned = reproduce.plan("clip", [str(tmp_path / "mine.npz")], seeds=1)
    assert {trial.parameters["n_clusters"] for trial in planned.trials} == {5}
    assert [trial.method for trial in planned.trials][-1] == "pro-dsc"
    remarks = reproduce.Reproduction(planned, [], None).remarks()
    assert "mine.npz: PRO-DSC with the recipe 'flowers', the nearest one" in remarks["Known departures from the paper"]
    np.savez(tmp_path / "bare.npz", X=X)
    with pytest.raises(InputError, match=r"bare.npz has no labels, and reproduce scores by them"):
        reproduce.plan("clip", [str(tmp_path / "bare.npz")], seeds=1)


def test_a_published_number_never_stands_in_for_ours():
    failed = [Outcome(Trial("orl", "pro-dsc", 0), status=Status.FAILED, reason="out of time at 1 s")]
    result = result_for("faces-objects", failed, {"eyaleb": "eyaleb is not here; put it there."})
    for row in result.against_paper():
        assert row.ours is None
        assert row.difference is None
    notes = [row.note for row in result.against_paper()]
    assert any("failed 1/1: out of time" in note for note in notes)
    assert any("not run: eyaleb is not here" in note for note in notes)
    assert "| - | 83.2" in result.text()


def test_data_at_hand_are_marked_as_not_comparable():
    run = Outcome(Trial("cifar10-efflite0", "pro-dsc", 0, variant="k=10"), {"ACC": 70.0, "NMI": 60.0})
    row = result_for("bdr-k", [run]).against_paper()[0]
    assert row.published is None
    assert "not comparable" in row.note


def test_variants_and_clusterers_find_their_published_number():
    run = Outcome(Trial("cifar10", "pro-dsc", 0, variant="features=pro-dsc"), {"k-means ACC": 90.0, "ensc ACC": 80.0})
    rows = {(r.method, r.metric): r for r in result_for("learned-features", [run]).against_paper()}
    assert rows["k-means (features=pro-dsc)", "ACC"].published is not None
    assert rows["ensc (features=pro-dsc)", "ACC"].published is not None
    assert rows["spectral (features=pro-dsc)", "ACC"].ours is None
    terms = [trial.variant for trial in EXPERIMENT_BY_NAME["ablation"].trials("cifar10", 0)]
    runs = [Outcome(Trial("cifar10", "pro-dsc", 0, variant=v), {"ACC": 50.0, "NMI": 50.0}) for v in terms]
    found = [r.published for r in result_for("ablation", runs).against_paper()]
    assert sum(value is not None for value in found) == len(found), "every row of the ablation has its number"


# ---- measures and drawings, on a small real fit ----------------------------------------------------------------------

MEASURED = {
    "meters": {},
    "representation": {"rows": 600},
    "learning_curves": {"rows": 600, "options": {"every": 2}},
    "self_expression": {"rows": 600},
    "cost": {"rows": 600},
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Each measure once: numbers and arrays as an Outcome would hold them."""
    folder = tmp_path_factory.mktemp("trials")
    found = {}
    for name, more in MEASURED.items():
        trial = Trial("digits", "pro-dsc", 0, TINY, measure=f"prodsc.paper.measures:{name}", **more)
        result = find_measure(trial.measure)(trial, folder / f"{name}.safetensors")
        outcome = Outcome(trial, result.numbers)
        outcome.__dict__["arrays"] = result.arrays
        found[name] = outcome
    return found


def test_measures_give_the_numbers_that_tables_show(measured):
    for experiment in EXPERIMENTS:
        measure = experiment.trials(experiment.datasets[0], 0)[-1].measure.partition(":")[2]
        if measure in measured:
            missing = set(experiment.metrics) - set(measured[measure].numbers)
            assert not missing, f"{experiment.name} shows {missing}, which its measure does not give"


def test_seeds_share_an_affinity_and_say_so(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", rng.standard_normal((40, 6)))
    shared = {"options": {"affinity": "shared"}}
    first, second = (
        scores(Trial(str(tmp_path / "rows.npy"), "ssc-omp", seed, {"n_clusters": 2}, **shared), tmp_path / "c")
        for seed in (0, 1)
    )
    assert len(list(tmp_path.glob("*.affinity.safetensors"))) == 1
    notes = [[note for note in measured.notes if "earlier run" in note] for measured in (first, second)]
    assert [len(found) for found in notes] == [0, 1]


@pytest.mark.parametrize(
    ("drawing", "measure"),
    [
        ("alignment", "meters"), ("csc", "meters"), ("orthogonal", "representation"), ("tsne", "representation"),
        ("singular_values", "representation"), ("water_filling", "representation"),
        ("learning_curves", "learning_curves"),
    ],
)  # fmt: skip
def test_figures_are_drawn_from_outcomes(measured, drawing, measure):
    for name, figure in PAPER_FIGURES[drawing]([measured[measure]]):
        assert name
        figure.canvas.draw()
        assert figure.get_label().endswith(".")


def test_grids_are_drawn_with_holes_for_failures(measured):
    def cell(variant, **numbers):
        return Outcome(Trial("x", "pro-dsc", 0, {"n_components": 128, "batch_size": 1024}, variant), numbers)

    cells = [t.variant for t in paper._phase("cifar10-efflite0", 0)]
    phase = [cell(v, ACC=50.0, SRE=60.0, lambda_max=1.3) for v in cells[:-1]]
    sensitivity = [cell(t.variant, ACC=50.0) for t in paper._sensitivity("cifar10-efflite0", 0)]
    for drawing, outcomes in (("phase", phase), ("sensitivity", sensitivity)):
        ((_, figure),) = PAPER_FIGURES[drawing](outcomes)
        figure.canvas.draw()


def test_the_synthetic_figure(tmp_path):
    quick = paper.ON_SPHERE | {"n_clusters": 2, "epochs": 3, "batch_size": 200}
    found = []
    for method in ("sedsc", "pro-dsc"):
        trial = Trial("synthetic-pole", method, 0, quick | {"gamma": 0.5}, "gamma=1" * (method == "sedsc"))
        result = sphere(trial, tmp_path / method)
        outcome = Outcome(trial, result.numbers)
        outcome.__dict__["arrays"] = result.arrays
        assert 0 <= result.numbers["angle"] <= 90
        assert 1 <= result.numbers["effective_rank"] <= 3
        found.append(outcome)
    ((_, figure),) = PAPER_FIGURES["synthetic"](found)
    figure.canvas.draw()


def test_the_images_of_a_subspace():
    """Rows on two axes: those nearest to each axis come first."""
    Z = np.array([[1, 0], [0.9, 0.1], [0.2, 0.8], [0, 0.9], [5, 5]], dtype=float)
    rows, _ = aligned_rows(Z[:4] / np.linalg.norm(Z[:4], axis=1, keepdims=True), np.zeros(4, dtype=int), 2)
    assert rows.shape == (1, 2, 2)
    outcome = Outcome(Trial("x", "pro-dsc", 0))
    outcome.__dict__["arrays"] = {"images": np.zeros((2, 8, 8, 5, 5), dtype=np.uint8)}
    ((_, figure),) = PAPER_FIGURES["subspaces"]([outcome])
    figure.canvas.draw()


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_lists_and_plans(monkeypatch):
    listed = CliRunner().invoke(cli, ["reproduce"])
    assert all(experiment.name in listed.output for experiment in EXPERIMENTS)
    planned = CliRunner().invoke(cli, ["reproduce", "synthetic", "--seeds", "1", "--dry-run"])
    assert planned.exit_code == 0
    assert "synthetic-crossing  pro-dsc" in planned.output


def test_the_command_writes_tables_and_pictures(tmp_path, monkeypatch):
    """The whole way with the fits replaced: csv, markdown, png, svg and pdf."""
    grid = {"ACC": 50.0, "NMI": 40.0}
    monkeypatch.setattr(
        reproduce, "run_trials", lambda trials, folder, **_: [Outcome(trial, dict(grid)) for trial in trials]
    )
    monkeypatch.setattr(reproduce, "_absent", present)
    out = tmp_path / "out"
    out.mkdir()
    words = ["reproduce", "sensitivity", "--datasets", "cifar10-efflite0", "--seeds", "2", "--out", str(out)]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    assert {path.suffix for path in out.iterdir()} == {".csv", ".md", ".html", ".png", ".svg", ".pdf"}
    assert "50.0 ± 0.0" in (out / "results.md").read_text()
    page = (out / "report.html").read_text()
    assert "50.0 ± 0.0" in page
    assert "<script" not in page
    assert (out / "results.csv").read_text().startswith("data,method,metric,ours,std,runs,published")
