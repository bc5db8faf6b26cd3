"""How labels moved between two fits, as bands from the clusters of one to those of the other."""

from dataclasses import dataclass

from prodsc.report.agreement import Agreement

LEFT, RIGHT, MIDDLE = 100, 540, 320
GAP = 5  # pixels between two clusters
THIN = 0.4  # a band below so many pixels is left out of the picture, not of the table


@dataclass(frozen=True)
class Band:
    group: int
    path: str
    words: str


def bands(found: Agreement) -> tuple[list[Band], list[tuple[str, float]], list[tuple[str, float]], int]:
    """Bands, the names on the left and on the right with their height, and the height of the picture."""
    counts = found.counts
    n, k = int(counts.sum()), len(counts)
    matched = [int(c) for c in found.partner if c >= 0]
    right = [*matched, *(c for c in range(counts.shape[1]) if c not in set(matched))]
    scale = max(300.0, 17.0 * max(counts.shape)) / n
    starts_left, left_names = _stack([f"cluster {c}" for c in range(k)], counts.sum(axis=1).tolist(), scale)
    starts_right, right_names = _stack([f"other {c}" for c in right], counts.sum(axis=0)[right].tolist(), scale)
    made = []
    for a in range(k):
        for place, b in enumerate(right):
            thick = float(counts[a, b] * scale)
            if not counts[a, b]:
                continue
            y, z = starts_left[a], starts_right[place]
            starts_left[a], starts_right[place] = y + thick, z + thick
            if thick < THIN:
                continue
            path = (
                f"M{LEFT} {y:.1f}C{MIDDLE} {y:.1f} {MIDDLE} {z:.1f} {RIGHT} {z:.1f}V{z + thick:.1f}"
                f"C{MIDDLE} {z + thick:.1f} {MIDDLE} {y + thick:.1f} {LEFT} {y + thick:.1f}Z"
            )
            made.append(Band(a, path, f"{counts[a, b]:,} rows from cluster {a} to the other fit's cluster {b}"))
    return made, left_names, right_names, int(max(starts_left[-1], starts_right[-1])) + 12


def _stack(names: list[str], sizes: list[int], scale: float) -> tuple[list[float], list[tuple[str, float]]]:
    """Where each block begins, and its name at its middle."""
    starts, places, y = [], [], 8.0
    for name, size in zip(names, sizes, strict=True):
        starts.append(y)
        places.append((name, round(y + size * scale / 2, 1)))
        y += size * scale + GAP
    return starts, places
