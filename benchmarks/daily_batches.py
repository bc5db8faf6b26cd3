"""New rows every day: a class that first comes on day 5, ids kept, the day found, false alarms, shifted features.

python benchmarks/daily_batches.py [FOLDER]     # needs the data of PRODSC_DATA; about a quarter of an hour

A model is fitted on rows of all classes but one. Ten batches follow, the last six with rows of that class, as many as
its share of the data. Every batch goes to `update`. Before that, batches of old classes alone are monitored, and the
same rows with shifted features. FOLDER (docs) gets daily_batches.csv and shifted_batches.csv. Labels only score.
"""

import csv
import sys
from pathlib import Path

import numpy as np
import torch
from snapshots import shared

import prodsc

SETS = {"cifar10_efflite0": (9, 3, 6), "fashion_mnist": (8, 1), "har_hapt561": (5, 3)}  # classes to withhold
FITTED, BATCH, DAYS, FIRST_DAY = 8000, 1000, 10, 5
NULL_BATCHES = 50
SHIFTS = (0.1, 0.2, 0.5, 1.0)  # of each column, in its standard deviations, in one direction for all rows


def split(name: str, withheld: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, and the numbers of those to fit, of old classes to come, and of the withheld class, in random order."""
    X, y = shared(name)
    X, order = np.asarray(X, np.float32).reshape(len(X), -1), np.random.default_rng(0).permutation(len(X))
    order = order[:30_000]
    old, new = order[y[order] != withheld], order[y[order] == withheld]
    n = min(FITTED, len(old) // 2)
    return X, old[:n], old[n:], new


def study(name: str, withheld: int) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    X, train, later, new = split(name, withheld)
    k = len(np.unique(shared(name)[1])) - 1
    model = prodsc.PRODSC(k, random_state=0).fit(X[train])
    before = model.predict(X[train])
    about = {"set": name, "withheld": withheld}
    shifted = [about | row for row in shifts(model, X, train, later)]
    share, random, days = len(new) / (len(new) + len(later) + len(train)), np.random.default_rng(1), []
    for day in range(1, DAYS + 1):
        n_new = min(int(BATCH * share), len(new) // 6) if day >= FIRST_DAY else 0
        rows = np.r_[random.choice(later, BATCH - n_new, replace=False), random.choice(new, n_new, replace=False)]
        found = model.update(X[rows])
        labels, is_new = model.predict(X[rows]), np.arange(BATCH) >= BATCH - n_new
        days.append(
            about
            | {
                "day": day,
                "new_rows": n_new,
                "alarm": int(found.alarm),
                "added": len(found.new_clusters),
                "old_rows_kept": 100 * (model.predict(X[train]) == before).mean(),
                "new_rows_in_new_clusters": 100 * (labels[is_new] >= k).mean() if n_new else "",
                "old_rows_in_new_clusters": 100 * (labels[~is_new] >= k).mean(),
            }
        )
    return days, shifted


def shifts(model: prodsc.PRODSC, X: np.ndarray, train: np.ndarray, later: np.ndarray) -> list[dict[str, object]]:
    """How often batches are an alarm, by the size of the shift, and how many labels the shift changes.

    They are compared with training rows, and with one half of the later rows, which were not part of the fit.
    """
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
        row = {"shift": shift, "batches": n, "alarms": alarms, "alarms_held_out_reference": certain}
        found.append(row | {"labels_changed": 100 * np.mean(changed)})
    return found


def write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows({k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()} for row in rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    all_days, all_shifts = [], []
    for name, classes in SETS.items():
        for withheld in classes:
            days, shifted = study(name, withheld)
            all_days += days
            all_shifts += shifted
            for row in (*shifted, *days):
                print(row, flush=True)
            write(folder / "daily_batches.csv", all_days)
            write(folder / "shifted_batches.csv", all_shifts)
