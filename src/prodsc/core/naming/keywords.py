"""Keywords of clusters of texts, by class-based TF-IDF (Grootendorst, BERTopic, 2022)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

WORD = r"(?u)\b[^\W\d_][^\W_]+\b"  # two letters or more, or letters and digits


def keywords(texts: Sequence[str], labels: np.ndarray, k: int, n_words: int = 5) -> list[list[str]]:
    """The words that are frequent in a cluster and rare elsewhere.

    All texts of a cluster count as one. A word t has the weight tf(t, c) log(1 + A / f(t)) in cluster c: tf is its
    share of the words of the cluster, f its number in all texts, and A the mean number of words of a cluster.

    Parameters
    ----------
    texts : sequence of str
        One for each row.
    labels : ndarray of int, shape (n,)
        The cluster of each row.
    k : int
        Number of clusters.
    n_words : int
        Keywords of a cluster, at most.

    Returns
    -------
    list of list of str
        The keywords of each cluster, the strongest first; none for a cluster without words.
    """
    counts, words = word_counts(texts)
    if not len(words):
        return [[] for _ in range(k)]
    members = np.zeros((k, counts.shape[0]), dtype=np.float64)
    members[labels, np.arange(len(labels))] = 1
    weights = class_tf_idf(np.asarray(members @ counts))
    return [_best(words, row, n_words) for row in weights]


def word_counts(texts: Sequence[str]) -> tuple[Any, np.ndarray]:
    """How often each word is in each text (sparse), and the words.

    English stop words are left out; so are words of a single text if there are many texts.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(stop_words="english", token_pattern=WORD, min_df=2 if len(texts) >= 50 else 1)
    try:
        counts = vectorizer.fit_transform([text or "" for text in texts])
    except ValueError:  # no words at all
        return np.zeros((len(texts), 0)), np.empty(0, dtype=object)
    return counts, vectorizer.get_feature_names_out()


def class_tf_idf(counts: np.ndarray) -> np.ndarray:
    """The weight of each word in each cluster.

    Parameters
    ----------
    counts : ndarray of shape (k, n_words)
        How often each word is in each cluster.

    Returns
    -------
    ndarray of the same shape
    """
    of_cluster = counts.sum(1, keepdims=True)
    of_word = counts.sum(0)
    return counts / np.maximum(of_cluster, 1) * np.log1p(of_cluster.mean() / np.maximum(of_word, 1))


def _best(words: np.ndarray, weights: np.ndarray, n_words: int) -> list[str]:
    """The strongest words, without those that are another form of a stronger one."""
    best: list[str] = []
    for i in np.argsort(-weights, kind="stable"):
        if not weights[i] or len(best) == n_words:
            break
        word = str(words[i])
        if not any(_same_stem(word, other) for other in best):
            best.append(word)
    return best


def _same_stem(a: str, b: str, least: int = 4, longest_ending: int = 3) -> bool:
    """Is one word the other with an ending, such as refund and refunds?"""
    short, long = sorted((a, b), key=len)
    return len(short) >= least and long.startswith(short[:-1]) and len(long) - len(short) <= longest_ending
