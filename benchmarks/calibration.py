"""Is confidence what it says? `python benchmarks/calibration.py digits,hapt-561 [rows] [folder for figures]`.

One fit for each data set. "before" is the posterior of the mixture in the spectral embedding as k-means leaves it,
"after" is `confidence_`: the same with the variance at which labels are, on average, as sure as the 20 nearest
neighbours in the input agree on them. ECE is the expected calibration error in 15 bins against classes, matched to
clusters; classes only score. The time is that of `_calibrated` beside the whole fit, in processor seconds.
"""

import sys
import time
import warnings
from pathlib import Path

import numpy as np
from outliers import sample
from sklearn.metrics import roc_auc_score

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.core.graph import posterior
from prodsc.report.fit_figures import reliability


class Timed(PRODSC):
    def _calibrated(self, *given):
        began = time.process_time()
        found = super()._calibrated(*given)
        self.seconds_ = time.process_time() - began
        return found


def main(names: str, most: int = 4000, folder: str | None = None) -> None:
    for name in names.split(","):
        X, y = sample(name, most)
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = Timed(len(np.unique(y)), random_state=0).fit(X)
        seconds = time.process_time() - began
        right = metrics.matched(y, model.labels_)
        distances = model.partition_.distances(model._y(X))
        narrow = max(model.partition_.inertia / len(distances[0]), 1e-6)  # as `spectral_partition` leaves it
        before = posterior(distances, narrow).amax(1).numpy()
        after = model.confidence_
        print(
            f"{name:<17} ACC {right.mean():.3f}   mean confidence {before.mean():.3f} -> {after.mean():.3f}   "
            f"ECE {metrics.calibration_error(before, right):.3f} -> {metrics.calibration_error(after, right):.3f}   "
            f"AUROC of right labels {roc_auc_score(right, after):.3f}   "
            f"{model.seconds_:.2f} s of {seconds:.1f} s ({model.seconds_ / seconds:.1%})",
            flush=True,
        )
        if folder is not None:
            figure = reliability(right, before=before, after=after)
            figure.savefig(Path(folder) / f"reliability-{name}.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:3]), *sys.argv[3:4])
