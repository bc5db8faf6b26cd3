"""A readable name for each cluster."""

from collections import Counter
from collections.abc import Sequence

LEAST_SHIFT = 0.3  # standard deviations; a column closer to the mean of all rows does not set a cluster apart


def names_from_keywords(words: Sequence[Sequence[str]], n_words: int = 3) -> list[str]:
    """Names such as "refund, invoice, charged".

    Parameters
    ----------
    words : sequence of sequences of str
        Keywords of each cluster.
    n_words : int
        Words of a name.
    """
    return unique_names([", ".join(list(each)[:n_words]) for each in words])


def names_from_columns(columns: Sequence[Sequence[tuple[str, float]]], n_columns: int = 2) -> list[str]:
    """Names such as "high income (+2.1), low age (-1.3)".

    Parameters
    ----------
    columns : sequence of sequences of (str, float)
        `unusual_columns` of each cluster.
    n_columns : int
        Columns of a name.
    """
    names = []
    for each in columns:
        far = [(name, off) for name, off in each if abs(off) >= LEAST_SHIFT][:n_columns]
        parts = [f"{'high' if off > 0 else 'low'} {name} ({off:+.1f})" for name, off in far]
        names.append(", ".join(parts) or ("average in all columns" if each else ""))
    return unique_names(names)


def names_from_ids(ids: Sequence[str | None]) -> list[str]:
    """Names such as "like IMG_0042.jpg", from the id of the most typical row of each cluster."""
    return unique_names([f"like {name}" if name else "" for name in ids])


def unique_names(names: Sequence[str]) -> list[str]:
    """Names of which no two are equal: an empty one becomes "cluster 3", equal ones get their number.

    Parameters
    ----------
    names : sequence of str
        In the order of the clusters.
    """
    named = [" ".join(name.split()) or f"cluster {cluster}" for cluster, name in enumerate(names)]
    twice = {name for name, count in Counter(named).items() if count > 1}
    return [f"{name} ({cluster})" if name in twice else name for cluster, name in enumerate(named)]
