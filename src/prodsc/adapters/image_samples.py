"""FiftyOne: the cluster of each sample as a field of a data set."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prodsc.adapters.data_map import Names, cluster_names
from prodsc.errors import InputError, require


def fiftyone(
    samples: Any,
    labels: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    names: Names = None,
    field: str = "cluster",
) -> None:
    """Give each sample of a FiftyOne data set or view its cluster, as a `Classification`.

    Parameters
    ----------
    samples : fiftyone.Dataset or fiftyone.DatasetView
        One sample for each row, in the order of the rows.
    labels : array of shape (n,)
        The cluster of each row; a sample with a negative label gets none.
    confidence : array of shape (n,), optional
        Confidence of each label.
    names : mapping or sequence of str, optional
        The name of each cluster.
    field : str, default="cluster"
        The field to set.

    Raises
    ------
    InputError
        If there is not one label for each sample.
    """
    library = require("fiftyone", extra="fiftyone", caller="adapters.fiftyone")
    clusters = np.asarray(labels)
    if clusters.shape != (len(samples),):
        raise InputError(f"there are {len(samples)} samples and labels of shape {clusters.shape}; give one for each.")
    sure = [None] * len(clusters) if confidence is None else np.asarray(confidence, dtype=float).tolist()
    named = cluster_names(clusters, names)
    values = [
        None if cluster < 0 else library.Classification(label=named[cluster], confidence=share)
        for cluster, share in zip(clusters.tolist(), sure, strict=True)
    ]
    samples.set_values(field, values)
