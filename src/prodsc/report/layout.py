"""Where each row is on the map: t-SNE of a sample of Z, other rows near the rows of the sample most like them.

t-SNE and not PCA, because k orthogonal subspaces need at least k directions and PCA keeps two: most clusters would lie
on top of each other. A sample, because t-SNE of 100,000 rows takes hours; placement is linear in the number of rows.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree

from prodsc.report import drawing
from prodsc.report.figures import embed_2d


@dataclass(frozen=True)
class Layout:
    """A place in the plane for each row."""

    places: drawing.Floats  # n x 2
    embedded: int  # rows that t-SNE placed itself

    def summary(self) -> str:
        """How the map was made, as part of a sentence."""
        if self.embedded == len(self.places):
            return f"t-SNE of all {self.embedded:,} rows of Z"
        others = len(self.places) - self.embedded
        return f"t-SNE of {self.embedded:,} rows of Z; the other {others:,} placed among the rows they resemble most"


def lay_out(Z: ArrayLike, max_embedded: int = 2000, seed: int = 0, chunk: int = 4096) -> Layout:
    """A place in the plane for every row; rows on one line through the origin are alike, as in `embed_2d`.

    Parameters
    ----------
    Z : array of shape (n, d)
        Representation of the rows.
    max_embedded : int, default=2000
        Rows that t-SNE places itself.
    seed : int, default=0
        Of the sample and of t-SNE.
    chunk : int, default=4096
        Rows placed at a time; bounds memory at chunk x max_embedded.

    Returns
    -------
    Layout
    """
    array = drawing.matrix(Z, "Z")
    sample, plane = embed_2d(array, seed, max_embedded)
    if len(sample) == len(array):
        return Layout(plane, len(sample))
    places = np.empty((len(array), 2))
    places[sample] = plane
    rest = np.setdiff1d(np.arange(len(array)), sample)
    landmarks = drawing.unit_rows(array[sample], "Z").astype(np.float32)
    spacing = cKDTree(plane).query(plane, k=min(4, len(plane)))[0].mean(axis=1)
    rng = np.random.default_rng(seed)
    for start in range(0, len(rest), chunk):
        rows = rest[start : start + chunk]
        near, weights = nearest(drawing.unit_rows(array[rows], "Z").astype(np.float32), landmarks)
        noise = rng.standard_normal((len(rows), 2)) * spacing[near[:, :1]] / 2  # or many dots would share one spot
        places[rows] = geometric_median(plane[near], weights) + noise
    return Layout(places, len(sample))


def nearest(U: np.ndarray, landmarks: np.ndarray, n: int = 10) -> tuple[np.ndarray, drawing.Floats]:
    """The n most similar landmarks by |cosine|, best first, and weights that fall with distance from 1."""
    alike, near = (torch.from_numpy(U) @ torch.from_numpy(landmarks).T).abs().topk(min(n, len(landmarks)))
    distance = 1 - alike.double()
    gap = distance - distance[:, :1]
    return near.numpy(), torch.exp(-3 * gap / gap[:, -1:].clamp_min(1e-9)).numpy()


def geometric_median(points: drawing.Floats, weights: drawing.Floats, iterations: int = 10) -> drawing.Floats:
    """m x 2: for each of m sets of points the place with the least weighted distance to them (Weiszfeld).

    The mean of neighbours in two groups would lie between the groups; the median stays in one of them.
    """
    place = (weights[:, :, None] * points).sum(axis=1) / weights.sum(axis=1)[:, None]
    for _ in range(iterations):
        pull = weights / np.maximum(np.linalg.norm(points - place[:, None], axis=2), 1e-9)
        place = (pull[:, :, None] * points).sum(axis=1) / pull.sum(axis=1)[:, None]
    return place
