"""New rows every day: a class that first comes on day 5, ids kept, the day found, false alarms, shifted features.

python benchmarks/daily_batches.py FOLDER days|shifts     # needs the data of PRODSC_DATA; ten minutes each

A model is fitted on rows of all classes but one. `days`: ten batches follow, the last six with rows of that class, as
many as its share of the data, and every batch goes to `update`. `shifts`: batches of old classes alone are monitored,
and the same rows with shifted features. FOLDER (docs) gets daily_batches.csv or shifted_batches.csv. Labels only score.
"""

import csv
import sys
from pathlib import Path

import numpy as np
import torch
from snapshots import shared

import prodsc

SETS = {"cifar10_efflite0": (6, 9, 3), "fashion_mnist": (8, 1), "har_hapt561": (5, 3)}  # classes to withhold
FITTED, BATCH, DAYS, FIRST_DAY = 8000, 1000, 10, 5
NULL_BATCHES = 30
SHIFTS = (0.1, 0.2, 0.5, 1.0)  # of each column, in its standard deviations, in one direction for all rows


def split(name: str, withheld: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, and the numbers of those to fit, of old classes to come, and of the withheld class, in random order."""
    X, y = shared(name)
    X, order = np.asarray(X, np.float32).reshape(len(X), -1), np.random.default_rng(0).permutation(len(X))
    order = order[:30_000]
    old, new = order[y[order] != withheld], order[y[order] == withheld]
    n = min(FITTED, len(old) // 2)
    return X, old[:n], old[n:], new


def fitted(name: str, withheld: int) -> tuple[prodsc.PRODSC, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    X, train, later, new = split(name, withheld)
    k = len(np.unique(shared(name)[1])) - 1
    return prodsc.PRODSC(k, random_state=0).fit(X[train]), X, train, later, new


def days(name: str, withheld: int) -> list[dict[str, object]]:
    """What happens on each day."""
    model, X, train, later, new = fitted(name, withheld)
    before, k = model.predict(X[train]), model.n_clusters_
    share, random, found = len(new) / (len(new) + len(later) + len(train)), np.random.default_rng(1), []
    for day in range(1, DAYS + 1):
        n_new = min(int(BATCH * share), len(new) // 6) if day >= FIRST_DAY else 0
        rows = np.r_[random.choice(later, BATCH - n_new, replace=False), random.choice(new, n_new, replace=False)]
        result = model.update(X[rows])
        labels, is_new = model.predict(X[rows]), np.arange(BATCH) >= BATCH - n_new
        found.append(
            {
                "set": name,
                "withheld": withheld,
                "day": day,
                "new_rows": n_new,
                "alarm": int(result.alarm),
                "added": len(result.new_clusters),
                "old_rows_kept": 100 * (model.predict(X[train]) == before).mean(),
                "new_rows_in_new_clusters": 100 * (labels[is_new] >= k).mean() if n_new else "",
                "old_rows_in_new_clusters": 100 * (labels[~is_new] >= k).mean(),
            }
        )
    return found


def shifts(name: str, withheld: int) -> list[dict[str, object]]:
    """How often batches are an alarm, by the size of the shift, and how many labels the shift changes.

    They are compared with training rows, and with one half of the later rows, which were not part of the fit.
    """
    model, X, train, later, _ = fitted(name, withheld)
    random, spread, found = np.random.default_rng(2), X[train].std(0), []
    held_out, later = later[: len(later) // 2], later[len(later) // 2 :]
    for shift in (0.0, *SHIFTS):
        alarms, certain, changed, n = 0, 0, [], NULL_BATCHES if shift == 0 else 5
        for _ in range(n):
            rows = X[random.choice(later, min(BATCH, len(later)), replace=False)]
            moved = rows + (shift * spread * random.choice([-1, 1], X.shape[1])).astype(np.float32)
            alarms += prodsc.monitor(model, moved).alarm
            certain += prodsc.monitor(model, moved, reference=X[held_out]).alarm
            changed.append((model.predict(moved) != model.predict(rows)).mean())
        row = {
            "set": name,
            "withheld": withheld,
            "shift": shift,
            "batches": n,
            "alarms": alarms,
            "alarms_held_out_reference": certain,
        }
        found.append(row | {"labels_changed": 100 * np.mean(changed)})
    return found


def write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()} for row in rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, what = Path(sys.argv[1]), sys.argv[2]
    done: list[dict[str, object]] = []
    for name, classes in SETS.items():
        for withheld in classes if what == "days" else classes[:1]:
            done += days(name, withheld) if what == "days" else shifts(name, withheld)
            write(folder / ("daily_batches.csv" if what == "days" else "shifted_batches.csv"), done)
            print(name, withheld, flush=True)
