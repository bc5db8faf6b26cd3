"""CPP and MLC: rate reduction."""

import numpy as np
import pytest
import torch

from prodsc.baselines import CPP, MLC, choose_k
from prodsc.core import theory
from prodsc.errors import ParameterError
from prodsc.sources.synthetic import SYNTHETIC

SMALL = {"hidden_size": 16, "n_components": 8, "epochs": 15, "warmup_steps": 5, "n_init": 2, "device": "cpu"}


def test_shared_head_gives_one_representation(blobs):
    shared, separate = CPP(3, heads="shared", **SMALL).fit(blobs[0]), CPP(3, **SMALL).fit(blobs[0])
    for model, one in ((shared, True), (separate, False)):
        rows = model._new_rows(blobs[0])
        Z, Y = model.labeller_.Z(rows), model.labeller_.Y(rows)
        assert torch.equal(Z, Y) == one


def test_memberships_are_non_negative_with_rows_that_sum_to_one(blobs):
    Pi = CPP(3, **SMALL).fit(blobs[0]).memberships(blobs[0])
    assert (Pi >= 0).all()
    np.testing.assert_allclose(Pi.sum(1), 1, rtol=1e-4)
    np.testing.assert_allclose(Pi.sum(0), 1, atol=0.1)  # five half-steps end on rows; columns are near


def test_warm_up_is_on_the_coding_rate_alone(blobs):
    history = CPP(3, **SMALL).fit(blobs[0]).history_
    warm = history["phase"] == "warm-up"
    assert warm.sum() == 5
    assert np.isnan(history["coding_rate_parts"][warm]).all()
    assert np.isfinite(history["coding_rate_parts"][~warm]).all()


@pytest.mark.parametrize("asked", [2, 5])
def test_choose_k_finds_the_number_of_groups_whatever_was_asked_for(asked, blobs):
    chosen = choose_k(CPP(asked, **SMALL).fit(blobs[0]), blobs[0], range(2, 7))
    assert chosen.k == 3
    assert list(chosen.lengths) == [2, 3, 4, 5, 6]
    assert chosen.lengths[3] == min(chosen.lengths.values())


def test_choose_k_wants_candidates(blobs):
    with pytest.raises(ParameterError, match="at least one number of clusters"):
        choose_k(CPP(3, **SMALL).fit(blobs[0]), blobs[0], [])


def test_mlc_makes_classes_of_the_sphere_orthogonal_without_collapse():
    X, y = SYNTHETIC["synthetic-pole"](seed=0)
    Z = MLC(2, epochs=150).fit(X).transform(X)
    G, same = np.abs(Z @ Z.T), y[:, None] == y
    assert G[same].mean() > 0.7
    assert G[~same].mean() < 0.15
    assert theory.effective_rank(torch.from_numpy(Z)) > 2
