"""What is unusual about rows is said."""

import numpy as np
import pandas as pd
import pytest

from prodsc import PRODSC, load
from prodsc.sources.remarks import remarks_on

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))


def test_usual_rows_need_no_remark():
    assert remarks_on(X, None, 3) == []
    assert remarks_on(RNG.integers(0, 100, (60, 4)), None, 3) == []
    assert remarks_on(RNG.normal(size=(60, 8, 8)), None, 3) == []


@pytest.mark.parametrize("ids", [np.arange(60), 1000 - np.arange(60), np.cumsum(RNG.integers(1, 9, 60))])
def test_a_column_that_counts_the_rows_is_named(ids):
    (sentence,) = remarks_on(np.c_[X, ids], ["a", "b", "c", "d", "customer"], 3)
    assert "the column 'customer' of X counts the rows" in sentence
    assert "column 4 of X counts" in remarks_on(np.c_[X, ids], None, 3)[0]


def test_files_have_been_looked_at_by_their_reader():
    assert remarks_on(np.c_[X, np.arange(60)], None, 3, from_file=True) == []


def test_whole_numbers_in_no_order_are_measurements():
    assert remarks_on(np.c_[X, RNG.permutation(60)], None, 3) == []


def test_copies_and_few_rows():
    (copies,) = remarks_on(np.repeat(X, 3, axis=0), None, 3)
    assert copies.startswith("67% of the rows of X are copies")
    (few,) = remarks_on(X, None, 20)
    assert "60 rows for 20 clusters, fewer than 4 to a cluster" in few


def test_a_model_keeps_the_remarks(tmp_path):
    model = PRODSC(2, epochs=2).fit(pd.DataFrame(np.c_[X, np.arange(60)], columns=[*"abcd", "id"]))
    assert len(model.remarks_) == 1
    model.save(tmp_path)
    assert load(tmp_path).remarks_ == model.remarks_
