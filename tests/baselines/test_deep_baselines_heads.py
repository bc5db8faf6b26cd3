"""TEMI, SCAN and TURTLE: heads on frozen features."""

import numpy as np
import pytest
import torch

from prodsc.baselines import SCAN, TEMI, TURTLE, cross_validated_accuracy
from prodsc.estimators.soft import one_of
from prodsc.training import Batches, Callback, Phase

QUICK = {"n_neighbors": 10, "learning_rate": 1e-2, "device": "cpu"}


class Watch(Callback):
    """Keeps what a function of the training gives after every step."""

    def __init__(self, look):
        self.look, self.seen = look, []

    def on_step(self, training):
        self.seen.append(self.look(training))


def weight_of(heads):
    return heads[0].prototypes.weight.detach().clone()


def test_temis_teachers_follow_their_students_slowly(blobs):
    small = {"n_heads": 2, "hidden_size": 8, "n_components": 4, "warmup_epochs": 1, "epochs": 4}
    watch = Watch(lambda t: (weight_of(t.network.students), weight_of(t.network.teachers), t.network.prior.clone()))
    TEMI(3, teacher_momentum=0.9, **small, **QUICK).fit(blobs[0], callbacks=[watch])
    for before, after in zip(watch.seen, watch.seen[1:], strict=False):
        torch.testing.assert_close(after[1], 0.9 * before[1] + 0.1 * after[0])
        torch.testing.assert_close(after[2].sum(1), torch.ones(2))
    assert not torch.allclose(watch.seen[0][2], watch.seen[-1][2])


def test_temis_rate_rises_in_the_warm_up(blobs):
    rates = Watch(lambda t: t.optimizer.param_groups[0]["lr"])
    small = {"n_heads": 1, "hidden_size": 4, "n_components": 4}
    TEMI(3, warmup_epochs=4, epochs=2, **small, **QUICK).fit(blobs[0], callbacks=[rates])
    assert rates.seen == pytest.approx([0, 0.0025, 0.005, 0.0075, 0.01, 0.01])


@pytest.mark.parametrize(
    "model",
    [TEMI(3, n_heads=4, hidden_size=8, n_components=4, epochs=5, **QUICK), SCAN(3, n_heads=4, epochs=5, **QUICK)],
)
def test_the_head_with_the_lowest_loss_of_the_last_epoch_labels(model, blobs):
    """Batches of 50 rows: three steps an epoch."""
    name = "temi" if isinstance(model, TEMI) else "disagreement"
    watch = Watch(lambda t: t.batch.by_head.detach().clone() if name in t.current.terms else None)
    model.set_params(batch_size=50).fit(blobs[0], callbacks=[watch])
    last = [losses for losses in watch.seen if losses is not None][-3:]
    torch.testing.assert_close(model.network_.losses, sum(last))
    best = int(sum(last).argmin())
    for other in range(4):
        same = {**model.network_.state_dict(), "losses": torch.arange(4.0) + 9 * (torch.arange(4) != other)}
        before = model.predict_proba(blobs[0])
        kept = {n: v.clone() for n, v in model.network_.state_dict().items()}
        model.network_.load_state_dict(same)
        assert np.allclose(model.predict_proba(blobs[0]), before) == (other == best)
        model.network_.load_state_dict(kept)


def test_a_step_without_self_labelling_leaves_out_its_phase(blobs):
    history = SCAN(3, epochs=3, self_label_epochs=0, **QUICK).fit(blobs[0]).history_
    assert set(history["phase"]) == {"joint"}
    history = SCAN(3, epochs=3, self_label_epochs=2, **QUICK).fit(blobs[0]).history_
    assert (history["phase"] == "self-label").sum() == 2
    assert np.isnan(history["self_label"][history["phase"] == "joint"]).all()


def test_self_labelling_makes_sure_rows_surer(blobs):
    how = {"epochs": 10, "confidence": 0.6, **QUICK}
    before, after = (SCAN(3, self_label_epochs=n, **how).fit(blobs[0]) for n in (0, 100))
    assert after.predict_proba(blobs[0]).max(1).mean() > before.predict_proba(blobs[0]).max(1).mean()


def test_partners_are_neighbours_by_chance_but_repeatable():
    neighbours = torch.arange(40).reshape(10, 4) + 100
    phase = Phase("joint", 5, (), Batches(10, 5, (3, 0)))
    batch = phase.batches[0]
    chosen = one_of(neighbours, batch, phase, 0)
    assert all(partner in neighbours[row] for row, partner in zip(batch, chosen, strict=True))
    np.testing.assert_array_equal(one_of(neighbours, batch, phase, 0), chosen)
    assert not np.array_equal(one_of(neighbours, batch, phase, 1), chosen)


def test_turtle_takes_batches_of_larger_data(blobs):
    how = {"steps": 5, "device": "cpu"}
    parts, whole = (TURTLE(3, batch_size=size, **how).fit(blobs[0]) for size in (50, 150))
    assert parts.history_["epoch"].tolist() == [1, 1, 1, 2, 2]
    assert whole.history_["epoch"].tolist() == [1, 2, 3, 4, 5]
    assert not hasattr(whole, "_all_rows")


def test_turtles_entropy_asks_for_clusters_of_like_size(blobs):
    how = {"steps": 40, "learning_rate": 1e-2, "inner_learning_rate": 1e-2, "device": "cpu"}
    spread = [np.bincount(TURTLE(3, entropy_weight=w, **how).fit(blobs[0]).labels_, minlength=3).std() for w in (0, 10)]
    assert spread[1] < spread[0]


def test_cross_validated_accuracy_prefers_labels_that_can_be_learned(blobs):
    X = blobs[0]
    how = {"learning_rate": 1e-2, "inner_learning_rate": 1e-2, "device": "cpu"}
    good = TURTLE(3, steps=60, entropy_weight=1.0, **how).fit(X)
    assert cross_validated_accuracy(good, X) > 0.95
    good.network_.v.data *= torch.tensor([[1.0], [0.0], [0.0]])  # every row in one cluster
    good.network_.bias.data = torch.tensor([9.0, 0.0, 0.0])
    assert cross_validated_accuracy(good, X) == 0
