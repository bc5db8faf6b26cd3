"""The callback protocol of scikit-learn 1.9: tasks in order, stops obeyed, nothing left on the estimator."""

import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import SMALL
from prodsc import PRODSC, make

callback = pytest.importorskip("sklearn.callback", reason="callbacks came with scikit-learn 1.9")


class Recorder:
    """Writes down what happens; may ask to stop."""

    max_propagation_depth = None

    def __init__(self, stop=lambda context: False):
        self.events, self.stop = [], stop

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        assert X is not None
        labels = getattr(fitted_estimator, "labels_", None)
        self.events.append(("end", context.task_name) if labels is None else ("end", context.task_name, len(labels)))
        return self.stop(context)

    def count(self, *event):
        return self.events.count(event)


def clusterer(**changes):
    return PRODSC.from_flat(3, **(SMALL | {"epochs": 6} | changes))


def test_the_tasks_of_a_fit(blobs):
    recorder = Recorder()
    model = clusterer(keep_weights="last").set_callbacks(recorder).fit(blobs[0])
    steps = len(model.history_["total"])
    assert recorder.events[:4] == [("setup", "fit"), ("begin", "fit"), ("begin", "warm-up"), ("begin", "step")]
    assert recorder.events[-3:] == [("end", "joint"), ("end", "fit", 150), ("teardown", "fit")]
    assert recorder.count("begin", "step") == recorder.count("end", "step") == steps
    assert recorder.count("end", "warm-up") == recorder.count("end", "joint") == 1
    assert (model.labels_ == clusterer(keep_weights="last").fit(blobs[0]).labels_).all()  # listening changes nothing


def test_a_stop_at_a_step_ends_the_phase_and_a_stop_at_a_phase_ends_training(blobs):
    at_step = Recorder(lambda context: context.task_name == "step" and context.task_id == 4)
    model = clusterer(keep_weights="last").set_callbacks(at_step).fit(blobs[0])
    assert model.history_["phase"].tolist() == ["warm-up"] * 5 + ["joint"] * 5
    at_phase = Recorder(lambda context: context.task_name == "warm-up")
    model = clusterer(keep_weights="last").set_callbacks(at_phase).fit(blobs[0])
    assert set(model.history_["phase"]) == {"warm-up"}
    assert len(model.labels_) == 150


def test_a_failed_fit_tears_down_and_leaves_nothing(blobs):
    recorder = Recorder()
    model = clusterer().set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(blobs[0] * float("nan"))
    assert recorder.events[-1] == ("teardown", "fit")
    assert [name for name in vars(model) if name.startswith("_")] == ["_skl_callbacks"]


def test_callbacks_reach_an_estimator_inside_a_pipeline(blobs):
    recorder = Recorder()
    pipeline = make_pipeline(StandardScaler(), clusterer())
    pipeline.set_callbacks(recorder).fit(blobs[0])
    assert recorder.count("setup", "fit") == 1
    assert recorder.count("end", "joint") == 1
    assert not [name for name in vars(pipeline[-1]) if name.startswith("_") and not name.endswith("_")]


def test_methods_without_training_and_copies(blobs):
    recorder = Recorder()
    model = make("k-means", n_clusters=3).set_callbacks(recorder)
    model.fit(blobs[0])
    assert recorder.events == [("setup", "fit"), ("begin", "fit"), ("end", "fit", 150), ("teardown", "fit")]
    model.set_callbacks()
    clone(model).fit(blobs[0])
    assert len(recorder.events) == 4


def test_the_scoring_monitor_scores_the_fitted_estimator(blobs):
    monitor = callback.ScoringMonitor(scoring="adjusted_rand_score")
    X, y = blobs
    model = clusterer().set_callbacks(monitor).fit(X, y)
    from sklearn.metrics import adjusted_rand_score

    (line,) = monitor.get_logs().data
    assert line["adjusted_rand_score"] == pytest.approx(adjusted_rand_score(y, model.labels_))
