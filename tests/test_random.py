"""Random streams and subsets: the numbers that fits of version 0.1 drew."""

import numpy as np
import pytest

from prodsc.random import StepStream, Stream, evenly_spaced, generator, sorted_subset


@pytest.mark.parametrize("key", [(0,), (7,), (3, Stream.LANDMARKS), (2, Stream.SECOND_PHASE, 9, StepStream.NEIGHBOUR)])
def test_a_stream_is_the_generator_of_its_plain_numbers(key):
    plain = np.random.default_rng([int(number) for number in key])
    assert (generator(*key).random(5) == plain.random(5)).all()


def test_streams_of_one_seed_differ():
    draws = [tuple(generator(0, stream).integers(1000, size=4)) for stream in Stream]
    assert len(set(draws)) == len(Stream) == 9


def test_sorted_subset_draws_without_replacement():
    rows = sorted_subset(100, 30, 5, Stream.LANDMARKS)
    reference = np.sort(np.random.default_rng((5, 3)).choice(100, 30, replace=False))
    assert rows.tolist() == reference.tolist()
    assert (np.diff(rows) > 0).all()


def test_sorted_subset_without_a_key_is_that_of_seed_0():
    assert sorted_subset(50, 7).tolist() == np.sort(np.random.default_rng(0).choice(50, 7, replace=False)).tolist()


@pytest.mark.parametrize("size", [10, 11])
def test_all_rows_when_there_are_no_more(size):
    assert sorted_subset(10, size, 1).tolist() == evenly_spaced(10, size).tolist() == list(range(10))


def test_evenly_spaced_has_both_ends():
    assert evenly_spaced(11, 3).tolist() == [0, 5, 10]
    assert evenly_spaced(10, 4).tolist() == [0, 3, 6, 9]
