"""Outcomes of trials -> figures of the paper."""

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from prodsc.bench.trials import Outcome
from prodsc.core.theory import gamma_bound
from prodsc.paper import figures as paper_figures
from prodsc.paper.plans import FIGURE_GRIDS
from prodsc.report import figures, theory_figures

NamedFigure = tuple[str, Figure]


def alignment(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    runs = [outcome.arrays for outcome in outcomes]
    first = runs[0]
    errors = np.stack([run["commutator"] for run in runs])
    curves = [first[name] for name in ("correlations", "eigenvalues_G", "eigenvalues_M", "epoch", "curve_epoch")]
    return [("alignment", theory_figures.alignment(errors, *curves))]


def csc(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    names = ("epoch", "csc", "g_inside", "g_outside", "c_inside", "c_outside")
    return [("csc", theory_figures.structure(*(outcomes[0].arrays[name] for name in names)))]


def phase(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    """Mean over seeds of each cell, and the boundary for the median of the largest eigenvalue of M."""
    acc = _grid(outcomes, "ACC", FIGURE_GRIDS.phase_eps, FIGURE_GRIDS.phase_gammas, "eps={0:g},gamma={1:g}")
    sre = _grid(outcomes, "SRE", FIGURE_GRIDS.phase_eps, FIGURE_GRIDS.phase_gammas, "eps={0:g},gamma={1:g}")
    parameters = outcomes[0].trial.parameters
    d, n = parameters["n_components"], parameters["batch_size"]
    top = float(np.median([outcome.numbers["lambda_max"] for outcome in outcomes]))
    alphas = [d / (n * eps) for eps in FIGURE_GRIDS.phase_eps]
    gammas = [gamma / n for gamma in FIGURE_GRIDS.phase_gammas]

    def boundary(a: np.ndarray) -> np.ndarray:
        return np.array([gamma_bound(float(alpha), n, d, top) for alpha in a])

    return [("phase", paper_figures.phase(alphas, gammas, acc.T, sre.T, boundary))]


def sensitivity(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    gammas, betas = FIGURE_GRIDS.sensitivity_gammas, FIGURE_GRIDS.sensitivity_betas
    acc = _grid(outcomes, "ACC", gammas, betas, "gamma={0:g},beta={1:g}")
    return [("sensitivity", paper_figures.sensitivity(gammas, betas, acc))]


def orthogonal(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    arrays = outcomes[0].arrays
    return [("orthogonal", theory_figures.orthogonal(arrays["X"], arrays["Z"], _classes(outcomes[0])))]


def singular_values(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    arrays = outcomes[0].arrays
    return [("singular-values", theory_figures.singular_values(arrays["X"], arrays["Z"], _classes(outcomes[0])))]


def water_filling(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    arrays, numbers = outcomes[0].arrays, outcomes[0].numbers
    weights = numbers["alpha"], numbers["gamma"], numbers["nu"]
    figure = theory_figures.water_filling(arrays["eigenvalues_M"], *weights, arrays["predicted"], arrays["observed"])
    return [("water-filling", figure)]


def tsne(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    arrays = outcomes[0].arrays
    before, after = (figures.embed_2d(arrays[name], max_rows=len(arrays[name]))[1] for name in ("X", "Z"))
    return [("tsne", figures.two_maps(before, after, _classes(outcomes[0])))]


def learning_curves(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    arrays = outcomes[0].arrays
    joint = arrays["phase"] == "joint"
    names: tuple[str, ...] = ("coding_rate", "self_expression", "block_diagonal")
    terms = {name: arrays[name][joint] for name in names if name in arrays}
    per_epoch = max(1, int(joint.sum() / max(1, int(arrays["epoch"][joint].max()))))
    epochs = np.arange(1, joint.sum() + 1) / per_epoch
    scores = {name: 100 * arrays[f"score_{name}"] for name in ("ACC", "NMI")}
    return [("learning-curves", paper_figures.learning_curves(epochs, terms, arrays["score_epoch"], scores))]


def synthetic(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    """Input, SEDSC twice, MLC, PRO-DSC with the published gamma and with ours: a row of panels per data set."""
    rows: dict[str, list[tuple[str, np.ndarray, str]]] = {}
    classes: dict[str, np.ndarray] = {}
    for outcome in outcomes:
        if outcome.trial.seed != outcomes[0].trial.seed:
            continue
        data, numbers = outcome.trial.dataset, outcome.numbers
        if data not in rows:
            rows[data] = [("input X", outcome.arrays["X"], "")]
            classes[data] = outcome.arrays["classes"]
        caption = f"ACC {numbers['ACC']:.0f} %, angle {numbers['angle']:.0f}°, rank {numbers['effective_rank']:.1f}"
        title = {"sedsc": "SEDSC", "mlc": "MLC", "pro-dsc": "PRO-DSC"}[outcome.trial.method]
        variant = outcome.trial.variant.replace("gamma=", ", gamma ")
        rows[data].append((title + variant, outcome.arrays["Z"], caption))
    return [("synthetic", paper_figures.spheres(rows, classes))]


def subspaces(outcomes: Sequence[Outcome]) -> list[NamedFigure]:
    return [("subspaces", theory_figures.subspaces(outcomes[0].arrays["images"]))]


def _classes(outcome: Outcome) -> np.ndarray:
    return outcome.arrays["classes" if "classes" in outcome.arrays else "labels"]


def _grid(
    outcomes: Sequence[Outcome], metric: str, first: Sequence[float], second: Sequence[float], variant: str
) -> np.ndarray:
    """Means over seeds, len(first) x len(second); NaN where no run finished."""
    means = np.full((len(first), len(second)), np.nan)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            values = [o.numbers[metric] for o in outcomes if o.trial.variant == variant.format(a, b) and o.finished]
            if values:
                means[i, j] = np.mean(values)
    return means


PAPER_FIGURES: dict[str, Callable[[Sequence[Outcome]], list[NamedFigure]]] = {
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
