"""Is a fitted model sound? A verdict, the numbers behind it, and one sentence of advice."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from prodsc.core import losses, theory
from prodsc.estimators.capabilities import Capability, require_capability
from prodsc.pro_dsc.defaults import AUTO_RULES
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.random import sorted_subset
from prodsc.sources.rows import as_array
from prodsc.sources.source import RowsInput

Verdict = Literal["healthy", "collapsing", "collapsed"]
COLLAPSING, COLLAPSED = 0.5, 0.25  # of the effective rank when the joint phase began
COMES_BACK = 2.0  # times the lowest rank of training: a dip that is over, if theory rules out collapse


@dataclass(frozen=True)
class Finding:
    """One number, what it should be, and what it means."""

    name: str
    value: float
    expected: str
    meaning: str


@dataclass(frozen=True)
class Diagnosis:
    """What `diagnose` measured."""

    verdict: Verdict
    advice: str
    findings: list[Finding]
    observed: np.ndarray  # squared singular values of Z, descending
    predicted: np.ndarray | None  # the same by Theorem 2; None without the coding rate
    eigenvalues_M: np.ndarray  # ascending
    alpha: float
    gamma: float  # of the undivided term, as in the paper
    nu: float | None

    def __str__(self) -> str:
        numbers = "\n".join(f"  {f.name}: {f.value:.4g} (expected {f.expected}; {f.meaning})" for f in self.findings)
        return f"{self.verdict}\n{numbers}\n{self.advice}"


def diagnose(model: PRODSC, X: RowsInput) -> Diagnosis:
    """Say whether the representation of a fitted model has collapsed.

    Measures as many rows of X as a training batch had, the setting of the theorems.

    Parameters
    ----------
    model : PRODSC
        A fitted model.
    X : array, tensor, frame, memory map or path
        Rows, usually those of the fit.

    Returns
    -------
    Diagnosis
        The verdict, the numbers behind it and one sentence of advice.
    """
    require_capability(model, Capability.DIAGNOSE, "diagnose")
    array = as_array(X, columns=getattr(model, "feature_names_in_", None))
    n = min(len(array), model.config_.batch_size)
    rows = sorted_subset(len(array), n)
    some = np.asarray(array[rows])
    Z = torch.from_numpy(model.transform(some)).double()
    C = torch.from_numpy(model.coefficients(some)).double()
    labels = torch.from_numpy(model.predict(some))
    d = Z.shape[1]
    G, M = theory.gram_and_residual(Z, C)
    of_G, of_M = theory.spectra(G, M)
    rank, full = float(theory.effective_rank(Z)), min(n, d)
    ranks = model.history_["effective_rank"]
    known = ranks[~np.isnan(ranks)]
    began, lowest = (float(known[0]), float(known.min())) if len(known) else (float(full), float("nan"))
    alpha, gamma, top = losses.scale(n, d, model.config_.eps), model.gamma_ / n, float(of_M[-1])
    guarded = "coding_rate" in model.history_
    inside, outside = theory.block_means(G, labels)
    findings = [
        Finding(
            "effective rank of Z",
            rank,
            f"at least {COLLAPSING * began:.1f}, half of {began:.1f} when the joint phase began",
            f"how many directions the representation uses, of {full}",
        )
    ]
    filled = None
    margin = float("nan")
    if guarded:
        margin = theory.no_collapse_margin(model.gamma_, n, d, model.config_.eps, top)
        filled = theory.water_filling(of_M, alpha, gamma, d)
        findings += [
            Finding(
                "no-collapse margin",
                margin,
                "above 1",
                f"gamma may grow to {margin * model.gamma_:.4g} before theory allows collapse",
            ),
            Finding("rank by Theorem 2", float(filled.rank), f"{full}", "directions an optimum with these C would use"),
        ]
    findings += [
        Finding("largest eigenvalue of M", top, "1 to 4", "M = (I - C)(I - C)', what self-expression still misses"),
        Finding(
            "alignment error",
            float(theory.commutator(G, M) / (G.norm() * M.norm())),
            "near 0",
            "||GM - MG|| / (||G|| ||M||), zero at an optimum",
        ),
        Finding("mean |<z, z'>| inside a cluster", float(inside), "well above the next", "rows of one cluster agree"),
        Finding("mean |<z, z'>| across clusters", float(outside), "near 0", "clusters lie in orthogonal subspaces"),
    ]
    comes_back = margin > 1 and rank > max(model.n_clusters_, COMES_BACK * lowest)  # nan compares as false
    verdict = _verdict(rank, began, margin, comes_back)
    if verdict == "healthy" and rank < COLLAPSING * began:
        advice = (
            f"The representation dipped to {lowest:.1f} directions in the first steps and is coming back; "
            "more epochs let it finish."
        )
    else:
        advice = _advice(verdict, guarded, model.gamma_, margin, rank)
    return Diagnosis(
        verdict,
        advice,
        findings,
        of_G[:full].numpy(),
        filled.spectrum.numpy() if filled else None,
        of_M.numpy(),
        alpha,
        gamma,
        filled.nu if filled else None,
    )


def _verdict(rank: float, began: float, margin: float, comes_back: bool) -> Verdict:
    if comes_back:
        return "healthy"
    if rank < COLLAPSED * began:
        return "collapsed"
    if rank < COLLAPSING * began or margin < 1:  # a margin that is not a number compares as false
        return "collapsing"
    return "healthy"


def _advice(verdict: Verdict, guarded: bool, gamma: float, margin: float, rank: float) -> str:
    if verdict == "healthy":
        return "Nothing to do: the representation keeps its directions."
    if not guarded:
        return "No term keeps this representation from collapsing: use PRODSC with anti_collapse='coding-rate'."
    safe = AUTO_RULES.safe_share * margin * gamma
    if verdict == "collapsing":
        return f"Fit again with gamma below {safe:.4g} (now {gamma:.4g}), or with on_collapse='adjust'."
    return (
        f"Do not trust these labels: they come from about {rank:.0f} directions. Fit again with gamma='auto' or "
        f"on_collapse='adjust' (gamma was {gamma:.4g})."
    )
