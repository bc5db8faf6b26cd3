"""The number of clusters of any input, from a sample of its rows as a fit sees them."""

import torch
from torch import Tensor

from prodsc.core.graph.number import K_OPTIONS, KCurve, k_curve
from prodsc.errors import InputError, ParameterError
from prodsc.estimators.parameters import PARAMETER_BY_NAME
from prodsc.estimators.scaling import AUTO, resolve_scaling
from prodsc.nn import Moments, PrincipalCoordinates
from prodsc.pro_dsc.building import UNIT_LENGTH
from prodsc.pro_dsc.defaults import AUTO_RULES
from prodsc.pro_dsc.walk_start import WALK_START_RULES
from prodsc.progress import ProgressFunction
from prodsc.random import sorted_subset
from prodsc.sources.checks import check_values
from prodsc.sources.rows import RowReader, as_array, check_shape, column_names, column_scale
from prodsc.sources.source import RowsInput


def estimate_k(
    X: RowsInput,
    *,
    at_least: int = 2,
    at_most: int | None = None,
    scaling: str = "auto",
    random_state: int = 0,
    watch: ProgressFunction = lambda done, total: None,
) -> KCurve:
    """Estimate the number of clusters without fitting a model.

    Parameters
    ----------
    X : array, tensor, frame, memory map, path or name of a data set
        The rows. Of many rows a random sample is used.
    at_least : int
        Smallest number to consider.
    at_most : int or None
        Largest number to consider (None: 250, or one cluster per 8 rows).
    scaling : str
        How rows are scaled, as in PRODSC.
    random_state : int
        Seed of the random halves that are compared.
    watch : function
        Called with the work done and the work in total.

    Returns
    -------
    KCurve
        `k` is the best number, `clear` whether it is a clear answer.
    """
    if at_least < 2 or (at_most is not None and at_most <= at_least):
        raise ParameterError(f"at_least must be 2 or more and at_most above it, got {at_least} and {at_most}.")
    PARAMETER_BY_NAME["scaling"].check(scaling, "estimate_k")
    array = as_array(X)
    check_shape(array, array.ndim > 2)
    summary = check_values(array, columns=True, names=column_names(X))
    if scaling == AUTO:
        scaling = resolve_scaling(summary, array.shape).scaling
    rows = RowReader(array, scaling, *column_scale(summary), flat=array.ndim > 2)  # type: ignore[arg-type]
    return k_of_rows(rows, at_least, at_most, random_state, watch)


def k_of_rows(
    rows: RowReader,
    at_least: int = 2,
    at_most: int | None = None,
    seed: int = 0,
    watch: ProgressFunction = lambda done, total: None,
    sample_size: int = 5000,
) -> KCurve:
    """`estimate_k` of rows that are scaled already; `sample_size` rows are used, more if `at_most` needs them."""
    n, least, per_cluster = len(rows), K_OPTIONS.min_rows, K_OPTIONS.min_rows_per_cluster
    if n < least:
        raise InputError(f"X has {n} rows; to estimate n_clusters takes at least {least}. Give a number instead.")
    if at_least > n // per_cluster:
        raise ParameterError(
            f"at_least={at_least} clusters of {n} rows leave fewer than {per_cluster} to a cluster, too few to tell. "
            "Ask for fewer clusters."
        )
    points = _sampled(rows, max(sample_size, 2 * per_cluster * (at_most or 0)))
    return k_curve(points, at_least, at_most, seed, watch)


def _sampled(rows: RowReader, most: int) -> Tensor:
    """A fixed random sample, so that the answer does not depend on a seed, in the coordinates of a walk's start."""
    some = sorted_subset(len(rows), most)
    X = torch.cat([chunk.flatten(1) for chunk in rows.chunks(some)])
    n_directions = min(AUTO_RULES.walk_directions, X.shape[1])
    coordinates = PrincipalCoordinates(X.shape[1], n_directions, keep_length=rows.scaling not in UNIT_LENGTH)
    coordinates.fit(Moments.of(X), WALK_START_RULES.max_spreads[0])
    return coordinates(X)
