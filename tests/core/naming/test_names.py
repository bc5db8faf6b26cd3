"""Names of clusters: keywords against their naive form, columns, typical rows, unique names."""

import math
import re
from collections import Counter

import numpy as np
import pytest

from prodsc.core import naming
from prodsc.core.naming.keywords import class_tf_idf

TEXTS = [
    "refund for the invoice",
    "the invoice was charged twice, refund please",
    "refunds and invoice",
    "the screen stays black after login",
    "login fails, black screen",
    "password and login",
]
LABELS = np.array([0, 0, 0, 1, 1, 1])


def _reference_weights(texts, labels, k):
    """Class-based TF-IDF with loops: share in the cluster times log(1 + A / f)."""
    stop = {"for", "the", "was", "and", "after", "please", "twice"} - {"please", "twice"}
    words = [[w for w in re.findall(r"[a-z]{2,}", text.lower()) if w not in stop] for text in texts]
    of_cluster = [
        Counter(w for row, c in zip(words, labels, strict=True) if c == cluster for w in row) for cluster in range(k)
    ]
    total = Counter(w for row in words for w in row)
    mean = sum(total.values()) / k
    return [{w: n / sum(c.values()) * math.log(1 + mean / total[w]) for w, n in c.items()} for c in of_cluster]


def test_keywords_are_those_of_the_naive_form():
    expected = _reference_weights(TEXTS, LABELS, 2)
    found = naming.keywords(TEXTS, LABELS, 2, n_words=2)
    assert found == [sorted(each, key=lambda w: (-each[w], w))[:2] for each in expected]
    assert found == [["invoice", "refund"], ["login", "black"]]
    counts = np.array([[3.0, 0, 1], [1.0, 2, 0]])
    by_hand = [
        [3 / 4 * math.log(1 + 3.5 / 4), 0, 1 / 4 * math.log(1 + 3.5 / 1)],
        [1 / 3 * math.log(1 + 3.5 / 4), 2 / 3 * math.log(1 + 3.5 / 2), 0],
    ]
    np.testing.assert_allclose(class_tf_idf(counts), by_hand)


def test_forms_of_one_word_are_named_once():
    words = naming.keywords(TEXTS, LABELS, 2)[0]
    assert "refund" in words
    assert "refunds" not in words


def test_texts_without_words_and_empty_clusters():
    assert naming.keywords(["", "123", "the"], np.array([0, 1, 1]), 3) == [[], [], []]
    assert naming.keywords(["apple pie", "apple tart"], np.array([0, 0]), 2)[1] == []
    assert naming.names_from_keywords([["a", "b", "c", "d"], []]) == ["a, b, c", "cluster 1"]


def test_column_shifts_are_the_naive_form():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 4)) * [1, 10, 0, 0.1] + [5, -3, 7, 1e6], rng.integers(3, size=60)
    shifts, means, overall = naming.column_shifts(X, labels, 4, chunk=7)
    for c in range(3):
        for j in (0, 1, 3):
            mine = X[labels == c, j].mean()
            assert shifts[c, j] == pytest.approx((mine - X[:, j].mean()) / X[:, j].std(), rel=1e-6)
            assert means[c, j] == pytest.approx(mine)
            assert overall[j] == pytest.approx(X[:, j].mean())
    assert (shifts[:, 2] == 0).all()  # a constant column
    assert (shifts[3] == 0).all()  # a cluster without rows


def test_names_of_tables_have_direction_and_size():
    columns = [[("income", 2.14), ("age", -1.31), ("visits", 0.5)], [("age", 0.1)], []]
    assert naming.names_from_columns(columns) == [
        "high income (+2.1), low age (-1.3)",
        "average in all columns",
        "cluster 2",
    ]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["emb_0", "emb_1"], False),
        (["0", "1", "2"], False),
        (["f12", "f7"], False),
        (["age", "income"], True),
        (["CD4", "CD8"], False),  # cannot be told from numbered columns
        (["CD4", "TP53"], True),
        (["x1"], True),
        (None, False),
    ],
)
def test_which_names_of_columns_mean_something(names, words):
    assert naming.are_words(names) is words


def test_typical_rows_are_the_most_alike():
    Z = np.random.default_rng(0).normal(size=(40, 5))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    labels = np.arange(40) % 3
    for c, rows in enumerate(naming.typical_rows(Z, labels, 4, 5)[:3]):
        members = np.flatnonzero(labels == c)
        alike = {i: np.mean([(Z[i] @ Z[j]) ** 2 for j in members]) for i in members}
        assert rows.tolist() == sorted(alike, key=lambda i: -alike[i])[:5]
    assert len(naming.typical_rows(Z, labels, 4, 5)[3]) == 0


def test_names_are_unique():
    assert naming.unique_names(["a", "a", "", " b  c "]) == ["a (0)", "a (1)", "cluster 2", "b c"]
    assert naming.names_from_ids(["x.jpg", None]) == ["like x.jpg", "cluster 1"]
