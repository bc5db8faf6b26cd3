"""The one rule by which settings are chosen."""

import numpy as np

from prodsc.bench.trials import Outcome
from prodsc.estimators.scoring import LabelFreeScorer

BY_NEIGHBOURS = "neighbours that agree beyond chance, without labels"
BY_LABELS = "ACC, with the true labels"


def tuning_score(outcome: Outcome, scorer: LabelFreeScorer | None, with_labels: bool = False) -> float:
    """What `compare --tune` and `tune` choose settings by.

    Parameters
    ----------
    outcome : Outcome
        A trial with labels.
    scorer : LabelFreeScorer or None
        Needed unless `with_labels`.
    with_labels : bool, default=False
        Use ACC instead.

    Returns
    -------
    float
        Higher is better; -inf for a trial that did not finish.
    """
    if not outcome.finished:
        return -np.inf
    if with_labels:
        return outcome.numbers["ACC"]
    assert scorer is not None
    return scorer.neighbour_agreement(outcome.arrays["labels"])
