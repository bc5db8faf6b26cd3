"""Can a fit be trusted? Three questions, each with its evidence.

Has the representation collapsed, by the theory's own prediction? Are there clusters, and do the labels come back from
other rows? Does a simpler method see the same or better?
"""

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from prodsc.core import losses, theory
from prodsc.estimators.capabilities import Capability, require_capability
from prodsc.pro_dsc.defaults import AUTO_RULES
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.pro_dsc.labeller import start_view
from prodsc.pro_dsc.support import SUPPORT_RULES, Support, measure_support
from prodsc.random import sorted_subset
from prodsc.sources.rows import as_array
from prodsc.sources.source import RowsInput

RepresentationWord = Literal["healthy", "collapsing", "collapsed"]


@dataclass(frozen=True)
class Finding:
    """One number, what it should be, and what it means."""

    name: str
    value: float
    expected: str
    meaning: str


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What `diagnose` measured."""

    representation: RepresentationWord
    advice: str
    findings: list[Finding]
    support: Support  # of the labels
    observed: np.ndarray  # squared singular values of Z, descending
    predicted: np.ndarray | None  # the same by Theorem 2; None without the coding rate
    eigenvalues_M: np.ndarray  # ascending
    alpha: float
    gamma: float  # of the undivided term, as in the paper
    nu: float | None

    @property
    def verdict(self) -> RepresentationWord:
        """The old name of `representation`."""
        warnings.warn("verdict is now called representation; the old name will go in 0.4.", FutureWarning, 2)
        return self.representation

    def sentences(self) -> list[str]:
        """The answers to the three questions."""
        return [f"Representation: {self.representation}. {self.advice}", *self.support.sentences()]

    def judged(self) -> list[tuple[str, str]]:
        """The sentences, each with the word that its colour depends on."""
        better = any(each.better for each in self.support.simpler)
        words = (self.representation, self.support.word, "weak" if better else "told")
        return [*zip(self.sentences(), words, strict=False)]

    def to_dict(self) -> dict[str, Any]:
        """The answers as JSON can hold them."""
        support = {name: value for name, value in vars(self.support).items() if name not in ("word", "simpler")}
        return {
            "representation": self.representation,
            "labels": self.support.word,
            "sentences": self.sentences(),
            **{name: None if np.isnan(value) else round(value, 4) for name, value in support.items()},
            "simpler_methods": [{**vars(each)} for each in self.support.simpler],
        }

    def __str__(self) -> str:
        wide = max(len(finding.name) for finding in self.findings)
        lines = [f"  {f.name:<{wide}}  {f.value:>8.4g}  expected {f.expected}" for f in self.findings]
        return "\n".join([*self.sentences(), *lines])

    __repr__ = __str__  # the arrays are hundreds of numbers


def diagnose(model: PRODSC, X: RowsInput) -> Diagnosis:
    """Say whether a fit can be trusted.

    The representation is measured on as many rows of X as a training batch had, the setting of the theorems; the
    labels on up to 2,000 rows.

    Parameters
    ----------
    model : PRODSC
        A fitted model.
    X : array, tensor, frame, memory map or path
        Rows, usually those of the fit.

    Returns
    -------
    Diagnosis
        The answers, and the numbers behind them.
    """
    require_capability(model, Capability.DIAGNOSE, "diagnose")
    array = as_array(X, columns=getattr(model, "feature_names_in_", None))
    n = min(len(array), model.config_.batch_size)
    some = np.asarray(array[sorted_subset(len(array), n)])
    Z = torch.from_numpy(model.transform(some)).double()
    C = torch.from_numpy(model.coefficients(some)).double()
    labels = torch.from_numpy(model.nearest_clusters(some))
    d, full = Z.shape[1], min(n, Z.shape[1])
    G, M = theory.gram_and_residual(Z, C)
    of_G, of_M = theory.spectra(G, M)
    rank, needed = float(theory.effective_rank(Z)), needed_rank(labels.numpy())
    alpha, gamma = losses.scale(n, d, model.config_.eps), model.gamma_ / n
    guarded = "coding_rate" in model.history_
    filled = theory.water_filling(of_M, alpha, gamma, d) if guarded else None
    margin = float("nan")  # without the coding rate there is no bound
    if guarded:
        margin = theory.no_collapse_margin(model.gamma_, n, d, model.config_.eps, float(of_M[-1]))
    word: RepresentationWord = "collapsed" if rank < needed else "collapsing" if margin < 1 else "healthy"
    return Diagnosis(
        word,
        _advice(word, guarded, model.gamma_, margin, rank),
        [
            Finding(
                "effective rank of Z",
                rank,
                f"at least {needed:.1f}",
                f"how many directions the representation uses, of {full}; the clusters need one each",
            ),
            *_findings_of_theorem(filled, margin, model.gamma_, full),
            *_findings_of_structure(G, M, float(of_M[-1]), labels),
        ],
        support_of(model, array),
        of_G[:full].numpy(),
        None if filled is None else filled.spectrum.numpy(),
        of_M.numpy(),
        alpha,
        gamma,
        None if filled is None else filled.nu,
    )


def support_of(model: PRODSC, array: Any) -> Support:
    """The evidence for the labels of a model, among rows as its start sees them.

    Parameters
    ----------
    model : PRODSC
        A fitted model.
    array : array or stored rows
        Rows, usually those of the fit.
    """
    some = np.asarray(array[sorted_subset(len(array), SUPPORT_RULES.max_rows)])
    rows = model._new_rows(some)
    points = [start_view(model.network_, model.config_, X.to(model.device_)) for X in rows.chunks()]
    return measure_support(torch.cat(points), model.nearest_clusters(some), model.n_clusters_)


def needed_rank(labels: np.ndarray) -> float:
    """The effective rank below which Z is closer to one direction than to one direction per cluster.

    Clusters count by their sizes: exp of the entropy of their shares, which is k for clusters of equal size.

    Parameters
    ----------
    labels : ndarray of int
        The cluster of each row.
    """
    shares = np.bincount(labels) / len(labels)
    shares = shares[shares > 0]
    return (1 + float(np.exp(-(shares * np.log(shares)).sum()))) / 2


def _findings_of_theorem(filled: theory.WaterFilling | None, margin: float, gamma: float, full: int) -> list[Finding]:
    if filled is None:
        return []
    may_grow = f"gamma may grow to {margin * gamma:.4g} before theory allows collapse"
    return [
        Finding("no-collapse margin", margin, "above 1", may_grow),
        Finding("rank by Theorem 2", float(filled.rank), f"{full}", "directions an optimum with these C would use"),
    ]


def _findings_of_structure(G: Tensor, M: Tensor, largest: float, labels: Tensor) -> list[Finding]:
    inside, outside = theory.block_means(G, labels)
    error = float(theory.commutator(G, M) / (G.norm() * M.norm()))
    residual = "M = (I - C)(I - C)', what self-expression still misses"
    return [
        Finding("largest eigenvalue of M", largest, "1 to 4", residual),
        Finding("alignment error", error, "near 0", "||GM - MG|| / (||G|| ||M||), zero at an optimum"),
        Finding("mean |<z, z'>| inside a cluster", float(inside), "well above the next", "rows of one cluster agree"),
        Finding("mean |<z, z'>| across clusters", float(outside), "near 0", "clusters lie in orthogonal subspaces"),
    ]


def _advice(word: RepresentationWord, guarded: bool, gamma: float, margin: float, rank: float) -> str:
    if word == "healthy":
        return "It has at least one direction for each cluster."
    if not guarded:
        return "No term keeps it from collapsing: use PRODSC with anti_collapse='coding-rate'."
    if word == "collapsing":
        safe = AUTO_RULES.safe_share * margin * gamma
        return f"Fit again with gamma below {safe:.4g} (now {gamma:.4g}), or with on_collapse='adjust'."
    few = f"It uses about {rank:.0f} directions, fewer than the clusters need."
    if margin >= 1:  # gamma is not the cause
        return f"{few} gamma={gamma:.4g} is within the bound, so train longer (epochs), and with a warm-up."
    return f"{few} Fit again with gamma='auto' or on_collapse='adjust' (gamma was {gamma:.4g})."
