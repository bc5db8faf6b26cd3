"""How labels moved between two fits: bands from the clusters of one fit to those of the other, as SVG paths."""

from dataclasses import dataclass

from prodsc.report.agreement import Agreement


@dataclass(frozen=True)
class Band:
    """Rows of one cluster of this fit in one cluster of the other."""

    group: int  # the cluster of this fit
    path: str  # SVG
    words: str  # alternative text


def bands(matched: Agreement) -> tuple[list[Band], list[tuple[str, float]], list[tuple[str, float]], int]:
    """The bands between the clusters of two fits.

    Parameters
    ----------
    matched : Agreement
        Of the labels of both fits.

    Returns
    -------
    bands : list of Band
    left, right : list of (str, float)
        Names on each side and their height.
    height : int
        Of the picture, in pixels.
    """
    x0, x1, middle = 100, 540, 320
    counts = matched.counts
    n, k = int(counts.sum()), len(counts)
    partners = [int(c) for c in matched.partner if c >= 0]
    right = [*partners, *(c for c in range(counts.shape[1]) if c not in set(partners))]
    scale = max(300.0, 17.0 * max(counts.shape)) / n
    starts_left, left_names = _stack([f"cluster {c}" for c in range(k)], counts.sum(axis=1).tolist(), scale)
    starts_right, right_names = _stack([f"other {c}" for c in right], counts.sum(axis=0)[right].tolist(), scale)
    drawn = []
    for a in range(k):
        for place, b in enumerate(right):
            thick = float(counts[a, b] * scale)
            if not counts[a, b]:
                continue
            y, z = starts_left[a], starts_right[place]
            starts_left[a], starts_right[place] = y + thick, z + thick
            if thick < 0.4:  # pixels: too thin to see; the table has it
                continue
            path = (
                f"M{x0} {y:.1f}C{middle} {y:.1f} {middle} {z:.1f} {x1} {z:.1f}V{z + thick:.1f}"
                f"C{middle} {z + thick:.1f} {middle} {y + thick:.1f} {x0} {y + thick:.1f}Z"
            )
            drawn.append(Band(a, path, f"{counts[a, b]:,} rows from cluster {a} to the other fit's cluster {b}"))
    return drawn, left_names, right_names, int(max(starts_left[-1], starts_right[-1])) + 12


def _stack(names: list[str], sizes: list[int], scale: float) -> tuple[list[float], list[tuple[str, float]]]:
    """Where each block begins, and its name at its middle."""
    starts, places, y = [], [], 8.0
    for name, size in zip(names, sizes, strict=True):
        starts.append(y)
        places.append((name, round(y + size * scale / 2, 1)))
        y += size * scale + 5  # pixels between two clusters
    return starts, places
