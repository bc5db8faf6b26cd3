"""The best weights are kept, training ends when clusters are being split, and a resumed run knows both."""

import numpy as np
import torch

from prodsc.core.losses import Objective, Term
from prodsc.nn import Network
from prodsc.training import Batches, History, Phase, Training, train
from prodsc.training.checkpoint import load_checkpoint, save_checkpoint
from prodsc.training.loop import extra_state
from prodsc.training.stopping import BestWeightsCallback, StoppingRules, StopWhenConverged

RULES = StoppingRules(every=2)


def setup(seen, joint=10):
    """A training whose evaluations give these pairs, one after the other, and the weights of f at each evaluation."""
    torch.manual_seed(0)
    network = Network(torch.nn.Identity(), torch.nn.Linear(3, 2), torch.nn.Linear(3, 2))
    X = torch.rand(8, 3)
    objective = Objective(Term("spread", 1.0, lambda Z: -Z.var()))
    sgd = lambda net: torch.optim.SGD(net.parameters(), lr=0.1)  # noqa: E731
    phases = [Phase("joint", joint, ("spread",), Batches(8, 8, (0,)), sgd)]
    weights = []

    def evaluate():
        weights.append(network.f.weight.detach().clone())
        return seen[len(weights) - 1]

    best = BestWeightsCallback(evaluate, network, RULES)
    training = Training(
        network, objective, phases, History([*objective.terms], best.columns), extra_state(objective, [best])
    )
    return training, lambda phase, t: network.f(X), best, weights


def test_the_best_state_is_what_is_left():
    training, step, best, weights = setup([(0.1, 5), (0.7, 3), (0.3, 2), (0.19, 1), (0.6, 1)])
    train(training, step, [best])
    assert torch.equal(training.network.f.weight, weights[1])  # means of .1 .4 .367 .397 .363
    assert not torch.equal(weights[1], weights[4])
    assert best.best.step == 4
    history = training.history.columns()
    np.testing.assert_allclose(history["agreement"][1::2], [0.1, 0.7, 0.3, 0.19, 0.6], rtol=1e-6)
    assert np.isnan(history["agreement"][::2]).all()


def test_one_lucky_evaluation_decides_nothing():
    seen = [0.5, 0.6, 0.5, 0.8, 0.5, 0.68, 0.68, 0.68, 0.5]
    training, step, best, weights = setup([(agreement, 2) for agreement in seen], joint=18)
    train(training, step, [best])
    assert torch.equal(training.network.f.weight, weights[7])
    np.testing.assert_allclose(RULES.smooth(np.array(seen))[[0, 1, 2, 3, 7]], [0.5, 0.55, 1.6 / 3, 1.9 / 3, 0.68])


def test_training_is_over_when_clusters_are_split():
    training, step, best, weights = setup([(0.1, 5), (0.5, 1), (0.9, 0.5), (0.9, 0.4), (0.9, 0.3)])
    train(training, step, [best])
    assert len(training.history) == 6
    assert torch.equal(training.network.f.weight, weights[1])


def test_what_began_sparse_is_not_over():
    training, step, best, weights = setup([(0.1, 0.5), (0.5, 0.4), (0.9, 0.3), (0.8, 0.3), (0.7, 0.3)])
    train(training, step, [best])
    assert len(training.history) == 10
    assert torch.equal(training.network.f.weight, weights[4])


def test_a_checkpoint_has_the_best_state_and_the_end(tmp_path):
    seen = [(0.1, 5), (0.5, 1), (0.9, 0.5)]
    training, step, best, weights = setup(seen)
    train(training, step, [best])
    save_checkpoint(tmp_path / "c", training, {})
    again, step, best, _ = setup([])  # a further evaluation would fail
    saved = load_checkpoint(tmp_path / "c")
    again.phase, again.step = saved.phase, saved.step
    train(again, step, [best], restore=saved.restore)
    assert torch.equal(again.network.f.weight, weights[1])
    assert len(again.history) == 6


# ---- labels that have converged --------------------------------------------------------------------------------------


def converging(labels, joint=20):
    """A training whose evaluations give these labels, one after the other."""
    training, step, _, _ = setup([], joint)
    evaluations = iter(labels)
    watch = StopWhenConverged(lambda: np.array(next(evaluations)), len(labels[0]), RULES)
    training.history = History([*training.objective.terms], watch.columns)
    training.extra_state = extra_state(training.objective, [watch])
    return training, step, watch


UNCHANGED = [
    [0, 0, 1, 1],
    [0, 1, 0, 1],
    [1, 0, 1, 0],
    [0, 1, 0, 1],
    [0, 0, 1, 1],
    [0, 0, 1, 1],
    [1, 1, 0, 0],
    [0, 0, 1, 1],
]


def test_training_ends_when_labels_have_converged():
    """Names of clusters do not matter, and two unchanged evaluations are not three."""
    training, step, watch = converging([*UNCHANGED, *[[0, 0, 0, 1]] * 2])
    train(training, step, [watch])
    assert len(training.history) == 16
    seen = training.history.columns()["stability"]
    np.testing.assert_allclose(seen[1::2], [np.nan, 0, 1, 1, 0, 1, 1, 1], atol=1e-9)


def test_labels_that_do_not_converge_end_nothing():
    training, step, watch = converging([[0, 0, 1, 1], [0, 1, 0, 1]] * 5)
    train(training, step, [watch])
    assert len(training.history) == 20


def test_a_checkpoint_has_the_labels_of_the_last_evaluation(tmp_path):
    training, step, watch = converging(UNCHANGED[:6], joint=12)
    train(training, step, [watch])
    save_checkpoint(tmp_path / "c", training, {})
    again, step, watch = converging(UNCHANGED[6:])
    saved = load_checkpoint(tmp_path / "c")
    again.phase, again.step = saved.phase, saved.step
    train(again, step, [watch], restore=saved.restore)
    assert len(again.history) == 16
