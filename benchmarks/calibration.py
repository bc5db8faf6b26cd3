"""Is confidence calibrated? `python benchmarks/calibration.py digits,hapt-561 [rows] [folder for figures]`.

One fit for each data set. "before" is the posterior of the mixture in the spectral embedding as k-means leaves it,
"after" is `confidence_`: the same with the variance at which the mean confidence equals the agreement of the 20
nearest neighbours in the input. ECE is the expected calibration error in 15 bins against classes, matched to
clusters; classes only score. The time is that of `_calibrate` beside the whole fit, in processor seconds.
"""

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from outliers import sample
from sklearn.metrics import roc_auc_score

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.core.graph import posterior
from prodsc.pro_dsc import labeller
from prodsc.report.fit_figures import reliability

seconds_of_calibration = 0.0
calibrate = labeller._calibrate


def timed(*given: Any) -> Any:
    """`_calibrate`, with its processor time added up."""
    global seconds_of_calibration
    began = time.process_time()
    partition = calibrate(*given)
    seconds_of_calibration += time.process_time() - began
    return partition


def main(names: str, most: int = 4000, folder: str | None = None) -> None:
    global seconds_of_calibration
    labeller._calibrate = timed
    for name in names.split(","):
        seconds_of_calibration = 0.0
        X, y = sample(name, most)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = PRODSC(len(np.unique(y)), random_state=0).fit(X)
        seconds = time.process_time() - began
        right = metrics.matched(y, model.labels_)
        distances = model.partition_.distances(model.labeller_.Y(model._new_rows(X)))
        narrow = max(model.partition_.inertia / len(distances[0]), 1e-6)  # as `spectral_partition` leaves it
        before = posterior(distances, narrow).amax(1).numpy()
        after = model.confidence_
        print(
            f"{name:<17} ACC {right.mean():.3f}   mean confidence {before.mean():.3f} -> {after.mean():.3f}   "
            f"ECE {metrics.calibration_error(before, right):.3f} -> {metrics.calibration_error(after, right):.3f}   "
            f"AUROC of right labels {roc_auc_score(right, after):.3f}   "
            f"{seconds_of_calibration:.2f} s of {seconds:.1f} s ({seconds_of_calibration / seconds:.1%})",
            flush=True,
        )
        if folder is not None:
            figure = reliability(right, before=before, after=after)
            figure.savefig(Path(folder) / f"reliability-{name}.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]), *sys.argv[3:4])
