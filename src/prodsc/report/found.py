"""What a fit has found, in three sentences."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from prodsc.report.clusters import ClusterCard
from prodsc.report.fit_figures import suggested_k

SIZES = re.compile(r" \([+-][\d.]+\)")  # of columns in a name
UNSURE = 0.7  # confidence below which a label is called unsure; the summary of a run uses the same number


def found_sentences(
    names: Sequence[str],
    cards: Sequence[ClusterCard],
    confidence: np.ndarray,
    scores: Mapping[str, float],
    about_number: str,
) -> list[str]:
    """Three sentences: how many clusters of which sizes, how sure the labels are, and what supports them.

    Parameters
    ----------
    names : sequence of str
        Names of the clusters.
    cards : sequence of ClusterCard
        One for each cluster, the largest first.
    confidence : ndarray
        Confidence of the labels on the page.
    scores : mapping
        ACC, NMI and ARI against known labels; empty without them.
    about_number : str
        What the affinity says about the number of clusters.

    Returns
    -------
    list of str
    """
    filled = [card for card in cards if card.size]
    first, last = filled[0], filled[-1]
    n = sum(card.size for card in filled)
    sizes = (
        f"{n:,} rows fall into {len(filled)} clusters, from {quoted(names[first.cluster])} with {first.share:.0%} of "
        f"the rows to {quoted(names[last.cluster])} with {last.share:.0%}."
    )
    return [sizes, _sureness(names, filled, confidence), _support(scores, about_number)]


def found_number(eigenvalues: np.ndarray, k: int, nearly: float = 0.7) -> str:
    """What the gaps between groups say about their number, without the word eigenvalue.

    Parameters
    ----------
    eigenvalues : ndarray
        Of the Laplacian of the affinity, ascending.
    k : int
        The number of clusters.
    nearly : float
        A gap of this share of the widest one supports its number too.
    """
    widest, gaps = suggested_k(eigenvalues), np.diff(eigenvalues)
    if widest == k or (k <= len(gaps) and gaps[k - 1] >= nearly * gaps[widest - 1]):
        return f"The gaps between the groups support {k} clusters."
    return f"By the gaps between the groups {widest} clusters would be more natural than {k}."


def _sureness(names: Sequence[str], cards: Sequence[ClusterCard], confidence: np.ndarray) -> str:
    share = float((confidence < UNSURE).mean())
    unsure = "no row is" if not share else f"{share:.0%} of the rows are" if share >= 0.005 else "fewer than 1 % are"
    near = min(
        ((card.neighbours[0][1], card) for card in cards if card.neighbours), key=lambda pair: pair[0], default=None
    )
    closest = ""
    if near is not None:
        other = names[near[1].neighbours[0][0]]
        closest = f"; the two most alike are {quoted(names[near[1].cluster])} and {quoted(other)}"
    return f"The mean confidence of a label is {confidence.mean():.0%}, {unsure} below {UNSURE:.0%}{closest}."


def _support(scores: Mapping[str, float], about_number: str) -> str:
    if scores:
        ari = f"ARI {scores['ARI']:.2f}"
        return f"With the best matching, {scores['ACC']:.0%} of the rows agree with their known label ({ari})."
    return about_number


def quoted(name: str) -> str:
    """A name of a cluster within a sentence."""
    plain = SIZES.sub("", name)
    return plain if plain.startswith("cluster ") else f"“{plain}”"
