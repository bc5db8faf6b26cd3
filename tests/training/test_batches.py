import numpy as np
import pytest

from prodsc.training import Batches
from prodsc.training.batches import shuffled


def test_an_epoch_shows_each_row_at_most_once_and_drops_the_rest():
    batches = Batches(10, 4, (0,))
    assert batches.per_epoch == 2
    first = np.concatenate([batches[0], batches[1]])
    assert len(np.unique(first)) == 8
    second = np.concatenate([batches[2], batches[3]])
    assert set(first) != set(second)  # other rows are left out in the next epoch


def test_fewer_rows_than_a_batch_train_on_all_of_them():
    batches = Batches(7, 100, (0,))
    assert (batches.size, batches.per_epoch) == (7, 1)
    np.testing.assert_array_equal(batches[0], np.arange(7))


def test_a_step_depends_on_seed_and_number_only():
    one, other = Batches(50, 8, (3, 1)), Batches(50, 8, (3, 1))
    later = one[17]  # asked out of order, as after a resume
    for t in range(18):
        step = other[t]
    np.testing.assert_array_equal(later, step)
    assert not np.array_equal(Batches(50, 8, (4, 1))[17], later)


@pytest.mark.parametrize(("rows", "size"), [(8, 4), (4, 4)])
def test_exact_multiples(rows, size):
    batches = Batches(rows, size, (0,))
    seen = np.concatenate([batches[t] for t in range(batches.per_epoch)])
    np.testing.assert_array_equal(np.sort(seen), np.arange(rows))


@pytest.mark.parametrize("n", [2, 3, 17, 64, 1000, 4097])
def test_an_order_that_is_computed_has_every_row_once(n):
    order = shuffled(np.arange(n), n, (5, 0))
    assert sorted(order.tolist()) == list(range(n))
    np.testing.assert_array_equal(shuffled(np.array([n - 1, 0]), n, (5, 0)), order[[n - 1, 0]])
    if n > 20:
        assert (order != shuffled(np.arange(n), n, (6, 0))).mean() > 0.9
        assert abs(np.corrcoef(np.arange(n), order)[0, 1]) < 4 / n**0.5  # neighbours are strangers


def test_more_rows_than_are_listed():
    batches = Batches(103, 10, (0, 1), max_listed=50)
    first = [batches[t] for t in range(10)]
    assert len({int(row) for batch in first for row in batch}) == 100
    assert all((np.diff(batch) > 0).all() for batch in first)
    np.testing.assert_array_equal(Batches(103, 10, (0, 1), max_listed=50)[7], first[7])
    assert {*batches[10].tolist()} != {*first[0].tolist()}
    huge = Batches(10**9, 1024, (0, 1))
    assert huge[976_561].max() < 10**9
    assert len(np.unique(huge[3])) == 1024
