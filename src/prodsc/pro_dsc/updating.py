"""A model that stays in use: clusters are added for new kinds of rows, and those of a refit get their old numbers.

The network does not change; its label head gets further outputs. So old rows keep their labels, except the few that a
new output wins, and their share has a limit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from prodsc.core.graph import HeadPartition, Partition
from prodsc.core.naming import unique_names
from prodsc.errors import ParameterError
from prodsc.estimators.capabilities import Capability, require_capability
from prodsc.pro_dsc.monitoring import Monitoring, encode, monitor, references_of
from prodsc.sources.rows import as_array
from prodsc.sources.source import RowsInput

if TYPE_CHECKING:
    from prodsc.pro_dsc.estimator import PRODSC

LOST_SHARE = 0.005  # of old rows that a new cluster may take: half of the one percent that is promised
NEVER = -1e9  # the output of a cluster that gets no rows


def update(model: PRODSC, X: RowsInput, false_alarms: float, reference: RowsInput | None = None) -> Monitoring:
    """Monitor new rows, and add a cluster for each group of them that lies where the model has seen none.

    Parameters
    ----------
    model : PRODSC
        Is changed, if there are such groups.
    X : array, tensor, frame, memory map or path
        New rows.
    false_alarms, reference
        As for `monitor`.

    Returns
    -------
    Monitoring
    """
    if not isinstance(model.partition_, HeadPartition):
        raise ParameterError(
            "update adds outputs to the label head of a network, and this model labels by spectral clustering. Fit "
            "features with start='walk' (the default), or fit again and use align."
        )
    found = monitor(model, X, false_alarms=false_alarms, reference=reference)
    if not found.groups:
        return found
    array = as_array(X, columns=model._column_names())
    groups = [encode(model, np.asarray(array[np.sort(rows)])).H for rows in found.groups]
    outputs = _fit_outputs(model, groups)
    before = model.n_clusters_
    add_clusters(model, *outputs, [f"cluster {before + i}" for i in range(len(groups))])
    some = np.sort(np.random.default_rng(model.seed_).permutation(found.n_rows)[: len(model.references_[0].H)])
    model.references_ = [*model.references_, encode(model, np.asarray(array[some]))]
    return replace(found, new_clusters=list(range(before, model.n_clusters_)), names=list(model.cluster_names_))


def _fit_outputs(model: PRODSC, groups: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Weights and biases of further outputs: by cross-entropy, beside the old outputs, which stay.

    They are fitted to one half of the reference rows and to the groups. On the other half the biases are lowered until
    the new outputs win no more than `LOST_SHARE` of its rows.
    """
    H = torch.cat([reference.H for reference in references_of(model)])
    fitted, held_out = H[::2], H[1::2]
    rows = torch.cat([fitted, *groups])
    centre, spread = rows.mean(0), rows.std(0).clamp_min(1e-6)
    old = _outputs(model, rows)
    targets = torch.cat([old[: len(fitted)].argmax(1), *_numbered(groups, old.shape[1])])
    weights = 1 / torch.bincount(targets)[targets].double()  # every cluster counts the same
    layer = nn.Linear(H.shape[1], len(groups)).double()
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    scaled = ((rows - centre) / spread).double()
    search = torch.optim.LBFGS(layer.parameters(), max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        search.zero_grad()
        of_rows = cross_entropy(torch.cat([old.double(), layer(scaled)], 1), targets, reduction="none")
        value = (weights * of_rows).sum() / weights.sum() + layer.weight.square().sum() / len(rows)
        value.backward()
        return value

    with torch.enable_grad():
        search.step(loss)
    W = (layer.weight / spread).detach().float()
    b = (layer.bias - layer.weight @ (centre / spread).double()).detach().float()
    margins = (held_out @ W.T + b).amax(1) - _outputs(model, held_out).amax(1)
    return W, b - max(0.0, float(torch.quantile(margins, 1 - LOST_SHARE)))


def _outputs(model: PRODSC, H: Tensor) -> Tensor:
    with torch.inference_mode():
        return model.network_.outputs(H).clone()


def _numbered(groups: list[Tensor], first: int) -> list[Tensor]:
    return [torch.full((len(rows),), first + i) for i, rows in enumerate(groups)]


def add_clusters(model: PRODSC, W: Tensor, b: Tensor, names: list[str]) -> None:
    """Give the label head of a model further outputs, whose clusters come after the others.

    Parameters
    ----------
    model : PRODSC
        Is changed.
    W : Tensor of shape (n_new, width)
    b : Tensor of shape (n_new,)
    names : list of str
        Of the new clusters.
    """
    old, labeller = model.network_.g, model.labeller_
    assert isinstance(old, nn.Linear)
    assert isinstance(labeller.partition, HeadPartition)
    head = nn.Linear(old.in_features, old.out_features + len(b)).to(old.weight.device)
    with torch.no_grad():
        head.weight.copy_(torch.cat([old.weight, W.to(old.weight)]))
        head.bias.copy_(torch.cat([old.bias, b.to(old.bias)]))
    labeller.network.g = head.requires_grad_(False)
    order = labeller.partition.order
    added = torch.arange(old.out_features, head.out_features, device=order.device)
    model.labeller_ = replace(
        labeller,
        partition=replace(labeller.partition, order=torch.cat([order, added])),
        config=replace(labeller.config, n_clusters=head.out_features),
    )
    model.n_clusters_ = head.out_features
    model.cluster_names_ = [*model.cluster_names_, *names]
    model.exemplars_ = [*model.exemplars_, *[np.zeros(0, dtype=np.intp) for _ in names]]


def align(model: PRODSC, previous: Any, X: RowsInput) -> np.ndarray:
    """Give the clusters of a refit the numbers and names of an older model, where they share rows.

    The pairs are those that share the most rows of X (Hungarian algorithm). A cluster of the older model without a
    partner keeps its number and its name, and has no rows; new clusters get the numbers after them.

    Parameters
    ----------
    model : PRODSC
        The refit; its clusters are renumbered.
    previous : estimator
        The older model, which can label rows.
    X : array, tensor, frame, memory map or path
        Rows that both models label.

    Returns
    -------
    ndarray of int
        For each old number of a cluster of `model`, its new one.
    """
    check_is_fitted(previous)
    require_capability(previous, Capability.PREDICT, "align")
    pairs = np.zeros((previous.n_clusters_, model.n_clusters_), dtype=np.int64)
    np.add.at(pairs, (previous.predict(X), model.predict(X)), 1)
    ours = _assigned(pairs)
    missing = [cluster for cluster in range(previous.n_clusters_) if cluster not in ours]
    before = model.n_clusters_
    if missing:
        _add_empty(model, len(missing))
        ours = np.concatenate([ours, missing])
    free = iter(range(previous.n_clusters_, len(ours)))
    new_numbers = np.array([number if number >= 0 else next(free) for number in ours])
    renumber(model, new_numbers)
    names = [f"cluster {c}" if name.startswith("cluster ") else name for c, name in enumerate(model.cluster_names_)]
    model.cluster_names_ = unique_names([*previous.cluster_names_, *names[previous.n_clusters_ :]])
    return new_numbers[:before]


def _assigned(pairs: np.ndarray) -> np.ndarray:
    """For each column the row it is paired with; -1 for none, or for a pair that shares nothing."""
    rows, columns = linear_sum_assignment(-pairs)
    partner = np.full(pairs.shape[1], -1)
    shared = pairs[rows, columns] > 0
    partner[columns[shared]] = rows[shared]
    return partner


def _add_empty(model: PRODSC, n: int) -> None:
    if not isinstance(model.partition_, HeadPartition):
        raise ParameterError(
            f"the older model has {n} clusters that the refit lacks, and a refit that labels by spectral clustering "
            "cannot keep empty ones. Fit with as many clusters as the older model has."
        )
    width = references_of(model)[0].H.shape[1]
    add_clusters(model, torch.zeros(n, width), torch.full((n,), NEVER), [""] * n)


def renumber(model: PRODSC, new_numbers: np.ndarray) -> None:
    """Give the clusters of a model other numbers.

    Parameters
    ----------
    model : PRODSC
        Is changed.
    new_numbers : ndarray of int
        For each cluster its new number; a permutation.
    """
    order = np.argsort(new_numbers)  # old numbers in the new order
    partition, at = model.partition_, torch.from_numpy(order)
    changed: Partition | HeadPartition
    if isinstance(partition, HeadPartition):
        changed = replace(partition, order=partition.order[at.to(partition.order.device)])
    else:
        changed = replace(partition, centres=partition.centres[at.to(partition.centres.device)])
    model.labeller_ = replace(model.labeller_, partition=changed)
    model.labels_ = np.where(model.labels_ < 0, model.labels_, new_numbers[model.labels_])
    model._clusters_ = new_numbers[model.clusters_]
    model._strays_ = sorted(new_numbers[getattr(model, "_strays_", [])].tolist())
    model.cluster_names_ = [model.cluster_names_[c] for c in order]
    model.exemplars_ = [model.exemplars_[c] for c in order]
    model.known_clusters_ = {int(new_numbers[c]): label for c, label in model.known_clusters_.items()}
