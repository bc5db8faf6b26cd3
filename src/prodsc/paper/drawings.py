"""Outcomes of trials to the paper's figures; the drawing itself is in prodsc.report."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from prodsc.bench.trials import Outcome
from prodsc.core.theory import gamma_bound
from prodsc.paper import result_figures, theory_figures
from prodsc.paper.plans import PHASE_EPS, PHASE_GAMMAS, SENSITIVITY_BETAS, SENSITIVITY_GAMMAS
from prodsc.report import figures

Drawing = tuple[str, Figure]  # what it is of, and the figure


def alignment(outcomes: Sequence[Outcome]) -> list[Drawing]:
    runs = [outcome.arrays for outcome in outcomes]
    first = runs[0]
    errors = np.stack([run["commutator"] for run in runs])
    curves = [first[name] for name in ("correlations", "eigenvalues_G", "eigenvalues_M", "epoch", "curve_epoch")]
    return [("alignment", theory_figures.alignment(errors, *curves))]


def csc(outcomes: Sequence[Outcome]) -> list[Drawing]:
    names = ("epoch", "csc", "g_inside", "g_outside", "c_inside", "c_outside")
    return [("csc", theory_figures.structure(*(outcomes[0].arrays[name] for name in names)))]


def phase(outcomes: Sequence[Outcome]) -> list[Drawing]:
    """Mean over seeds of each cell; the boundary with the largest eigenvalue of M that a healthy fit showed."""
    acc = _grid(outcomes, "ACC", PHASE_EPS, PHASE_GAMMAS, "eps={0:g},gamma={1:g}")
    sre = _grid(outcomes, "SRE", PHASE_EPS, PHASE_GAMMAS, "eps={0:g},gamma={1:g}")
    parameters = outcomes[0].trial.parameters
    d, n = parameters["n_components"], parameters["batch_size"]
    top = float(np.median([outcome.numbers["lambda_max"] for outcome in outcomes]))
    alphas, gammas = [d / (n * eps) for eps in PHASE_EPS], [gamma / n for gamma in PHASE_GAMMAS]

    def boundary(a: np.ndarray) -> np.ndarray:
        return np.array([gamma_bound(float(alpha), n, d, top) for alpha in a])

    return [("phase", theory_figures.phase(alphas, gammas, acc.T, sre.T, boundary))]


def sensitivity(outcomes: Sequence[Outcome]) -> list[Drawing]:
    acc = _grid(outcomes, "ACC", SENSITIVITY_GAMMAS, SENSITIVITY_BETAS, "gamma={0:g},beta={1:g}")
    return [("sensitivity", result_figures.sensitivity(SENSITIVITY_GAMMAS, SENSITIVITY_BETAS, acc))]


def orthogonal(outcomes: Sequence[Outcome]) -> list[Drawing]:
    found = outcomes[0].arrays
    return [("orthogonal", theory_figures.orthogonal(found["X"], found["Z"], _classes(outcomes[0])))]


def singular_values(outcomes: Sequence[Outcome]) -> list[Drawing]:
    found = outcomes[0].arrays
    return [("singular-values", theory_figures.singular_values(found["X"], found["Z"], _classes(outcomes[0])))]


def water_filling(outcomes: Sequence[Outcome]) -> list[Drawing]:
    found, numbers = outcomes[0].arrays, outcomes[0].numbers
    eigenvalues, predicted = found["eigenvalues_M"], found["predicted"]
    known = numbers["alpha"], numbers["gamma"], numbers["nu"]
    return [("water-filling", theory_figures.water_filling(eigenvalues, *known, predicted, found["observed"]))]


def tsne(outcomes: Sequence[Outcome]) -> list[Drawing]:
    found = outcomes[0].arrays
    maps = [figures.embed_2d(found[name], max_rows=len(found[name]))[1] for name in ("X", "Z")]
    return [("tsne", figures.two_maps(maps[0], maps[1], _classes(outcomes[0])))]


def learning_curves(outcomes: Sequence[Outcome]) -> list[Drawing]:
    found = outcomes[0].arrays
    joint = found["phase"] == "joint"
    names: tuple[str, ...] = ("coding_rate", "self_expression", "block_diagonal")
    terms = {name: found[name][joint] for name in names if name in found}
    per_epoch = max(1, int(joint.sum() / max(1, int(found["epoch"][joint].max()))))
    epochs = np.arange(1, joint.sum() + 1) / per_epoch
    scores = {name: 100 * found[f"look_{name}"] for name in ("ACC", "NMI")}
    return [("learning-curves", result_figures.learning_curves(epochs, terms, found["look_epoch"], scores))]


def synthetic(outcomes: Sequence[Outcome]) -> list[Drawing]:
    """Input, SEDSC twice, MLC, PRO-DSC by the published gamma and by ours: a row per data set, numbers under panels."""
    rows: dict[str, list[tuple[str, np.ndarray, str]]] = {}
    classes: dict[str, np.ndarray] = {}
    for outcome in outcomes:
        if outcome.trial.seed != outcomes[0].trial.seed:
            continue
        data, numbers = outcome.trial.dataset, outcome.numbers
        if data not in rows:
            rows[data] = [("input X", outcome.arrays["X"], "")]
            classes[data] = outcome.arrays["classes"]
        words = f"ACC {numbers['ACC']:.0f} %, angle {numbers['angle']:.0f}°, rank {numbers['effective_rank']:.1f}"
        title = {"sedsc": "SEDSC", "mlc": "MLC", "pro-dsc": "PRO-DSC"}[outcome.trial.method]
        variant = outcome.trial.variant.replace("gamma=", ", gamma ")
        rows[data].append((title + variant, outcome.arrays["Z"], words))
    return [("synthetic", result_figures.spheres(rows, classes))]


def subspaces(outcomes: Sequence[Outcome]) -> list[Drawing]:
    return [("subspaces", result_figures.subspaces(outcomes[0].arrays["images"]))]


def _classes(outcome: Outcome) -> np.ndarray:
    return outcome.arrays["classes" if "classes" in outcome.arrays else "labels"]


def _grid(
    outcomes: Sequence[Outcome], metric: str, first: Sequence[float], second: Sequence[float], variant: str
) -> np.ndarray:
    """Means over seeds, len(first) x len(second); not a number where no run succeeded."""
    means = np.full((len(first), len(second)), np.nan)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            found = [o.numbers[metric] for o in outcomes if o.trial.variant == variant.format(a, b) and not o.failed]
            if found:
                means[i, j] = np.mean(found)
    return means


DRAWINGS: dict[str, Callable[[Sequence[Outcome]], list[Drawing]]] = {
    "alignment": alignment,
    "csc": csc,
    "learning_curves": learning_curves,
    "orthogonal": orthogonal,
    "phase": phase,
    "sensitivity": sensitivity,
    "singular_values": singular_values,
    "subspaces": subspaces,
    "synthetic": synthetic,
    "tsne": tsne,
    "water_filling": water_filling,
}
