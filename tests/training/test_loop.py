"""Phases, optimiser hand-over, and that a restored run goes on as if it had not stopped."""

import numpy as np
import pytest
import torch

from prodsc import make
from prodsc.core.losses import Objective, Term
from prodsc.errors import ModelFileError, TrainingError
from prodsc.nn import Network
from prodsc.training import Batches, Callback, History, Phase, Training, train
from prodsc.training.checkpoint import CheckpointCallback, load_checkpoint, save_checkpoint
from prodsc.training.loop import extra_state


def setup(warm=4, joint=6):
    torch.manual_seed(0)
    network = Network(torch.nn.Identity(), torch.nn.Linear(3, 2), torch.nn.Linear(3, 2))
    X = torch.rand(20, 3)
    batches = Batches(20, 8, (0,))
    objective = Objective(
        Term("spread", 1.0, lambda s: -s[0].var()), Term("agree", 1.0, lambda s: (s[0] - s[1]).square().mean())
    )
    sgd = lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)  # noqa: E731
    phases = [
        Phase("warm-up", warm, ("spread",), batches, sgd),
        Phase("joint", joint, ("spread", "agree"), batches, on_enter=Network.copy_z_to_y),
    ]
    training = Training(network, objective, phases, History([*objective.terms]))

    def step(phase, t):
        rows = X[phase.batches[t]]
        return network.f(rows), network.h(rows)

    return training, step


class At(Callback):
    """Calls something after a given step of a given phase."""

    def __init__(self, phase, step, call):
        self.phase, self.step, self.call = phase, step, call

    def on_step(self, training):
        if (training.current.name, training.step) == (self.phase, self.step):
            self.call(training)


def test_history_has_every_step_and_blanks_for_inactive_terms():
    training, step = setup()
    train(training, step)
    columns = training.history.columns()
    assert columns["phase"].tolist() == ["warm-up"] * 4 + ["joint"] * 6
    assert columns["step"].tolist() == [1, 2, 3, 4, 1, 2, 3, 4, 5, 6]
    assert columns["epoch"].tolist() == [1, 1, 2, 2, 1, 1, 2, 2, 3, 3]
    assert np.isnan(columns["agree"][:4]).all()
    assert np.isfinite(columns["agree"][4:]).all()
    np.testing.assert_allclose(columns["total"][4:], (columns["spread"] + columns["agree"])[4:], rtol=1e-6)


def test_warm_up_leaves_h_alone_then_copies_f_into_it():
    training, step = setup()
    start = training.network.h.weight.clone()
    seen = {}
    train(
        training,
        step,
        [At("warm-up", 4, lambda t: seen.update(h=t.network.h.weight.clone(), f=t.network.f.weight.clone()))],
    )
    assert torch.equal(seen["h"], start)
    assert not torch.equal(seen["f"], start)
    assert training.history.columns()["agree"][4] == pytest.approx(0.0, abs=1e-12)  # equal right after the copy


@pytest.mark.parametrize("where", [("warm-up", 2), ("warm-up", 4), ("joint", 1), ("joint", 5), ("joint", 6)])
def test_a_restored_run_ends_with_the_same_weights_and_history(tmp_path, where):
    whole, step = setup()
    train(whole, step)

    class Stop(Exception):
        pass

    path = tmp_path / "checkpoint.safetensors"

    def save_and_stop(training):
        save_checkpoint(path, training, {"parameters": {}, "data": ""})
        raise Stop

    first, step = setup()
    with pytest.raises(Stop):
        train(first, step, [At(*where, save_and_stop)])

    second, step = setup()
    saved = load_checkpoint(path)
    second.phase, second.step = saved.phase, saved.step
    train(second, step, restore=saved.restore)
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, second.network.state_dict()[name]), name
    for name, column in whole.history.columns().items():
        np.testing.assert_array_equal(column, second.history.columns()[name])


def test_divergence_is_one_sentence():
    training, step = setup(warm=2)
    training.objective = Objective(
        Term("spread", 1.0, lambda s: s[0].sum() / 0.0), Term("agree", 1.0, lambda s: s[1].sum())
    )
    with pytest.raises(TrainingError, match=r"step 2 of warm-up: training diverged\. Lower learning_rate"):
        train(training, step)


def test_divergence_inside_a_factorisation_is_one_sentence_too():
    X = np.random.default_rng(0).standard_normal((60, 5))
    with pytest.raises(TrainingError, match=r"training diverged\. Lower learning_rate or gamma"):
        make("pro-dsc", n_clusters=3, learning_rate=1e20, hidden_size=8, n_components=4).fit(X)


def test_checkpoint_files_are_checked(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(ModelFileError, match="does not exist"):
        load_checkpoint(path)
    path.write_bytes(b"not a checkpoint")
    with pytest.raises(ModelFileError, match="damaged"):
        load_checkpoint(path)
    training, step = setup()
    train(training, step, [CheckpointCallback(path, {"parameters": {"a": 1}, "data": "x"})])
    saved = load_checkpoint(path)
    assert (saved.phase, saved.step) == (1, 6)
    saved.check_same({"estimator": "E", "parameters": {"a": 1}, "data": "x"}, path)
    with pytest.raises(ModelFileError, match="other data"):
        saved.check_same({"estimator": "E", "parameters": {"a": 1}, "data": "y"}, path)
    with pytest.raises(ModelFileError, match="another a=1, now 2"):
        saved.check_same({"estimator": "E", "parameters": {"a": 2}, "data": "x"}, path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match="damaged"):
        load_checkpoint(path)


def test_a_checkpoint_with_the_name_of_another_phase_is_refused(tmp_path):
    training, step = setup()
    train(training, step)
    save_checkpoint(tmp_path / "c", training, {})
    saved = load_checkpoint(tmp_path / "c")
    saved.history["phase"][0] = "other"
    with pytest.raises(ModelFileError, match="does not fit this network"):
        saved.restore(setup()[0])


def test_a_checkpoint_of_an_older_version_is_refused(tmp_path, monkeypatch):
    training, step = setup()
    train(training, step)
    monkeypatch.setattr("prodsc.training.checkpoint.CHECKPOINT_VERSION", 1)
    save_checkpoint(tmp_path / "old", training, {})
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="older prodsc"):
        load_checkpoint(tmp_path / "old")


def test_states_of_terms_and_callbacks_are_saved_beside_the_network(tmp_path):
    training, step = setup()
    counter = At("joint", 2, lambda training: None)
    counter.state = torch.nn.BatchNorm1d(2)
    memory = torch.nn.BatchNorm1d(3)
    objective = Objective(Term("spread", 1.0, lambda s: -s[0].var(), memory), training.objective.terms["agree"])
    training.objective, training.extra_state = objective, extra_state(objective, [counter])
    assert {*training.extra_state} == {"At", "spread"}
    counter.state.running_mean.fill_(7)
    memory.running_mean.fill_(8)
    train(training, step, [counter])
    save_checkpoint(tmp_path / "c", training, {})
    saved = load_checkpoint(tmp_path / "c")
    assert {*saved.network} == {*training.network.state_dict()} == {"f.weight", "f.bias", "h.weight", "h.bias"}
    counter.state.running_mean.fill_(0)
    memory.running_mean.fill_(0)
    saved.restore(training)
    assert (counter.state.running_mean == 7).all()
    assert (memory.running_mean == 8).all()
