"""A fit as scikit-learn's callbacks see it (scikit-learn 1.9): a task with phases, and phases with steps."""

from typing import Any, Self

from prodsc.training import Callback, Training


class FitTasks(Callback):
    """Calls the callbacks of scikit-learn at the begin and end of the fit, of each phase and of each step.

    A callback that returns True at the end of a step ends the phase; at the end of a phase it ends training. `fit` then
    goes on to the labels.

    Parameters
    ----------
    estimator : estimator
        The estimator whose callbacks are called.
    X, y
        What its `fit` was given; callbacks may score with them.
    """

    def __init__(self, estimator: Any, X: Any, y: Any):
        self.estimator, self.data = estimator, {"X": X, "y": y}
        self.root = estimator._init_callback_context(max_subtasks=None)
        self.root.call_on_fit_task_begin(estimator=estimator, **self.data)
        self.phase: Any = None  # the contexts of the phase and the step that run
        self.step: Any = None
        self.phase_index = -1
        self.stopped_phase, self.stopped = False, False

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any) -> Self | None:
        """The tasks of a fit that has callbacks or is part of a meta-estimator's fit; else None."""
        asked = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
        return cls(estimator, X, y) if asked and hasattr(estimator, "set_callbacks") else None

    def ends_phase(self, training: Training) -> bool:
        """Whether a callback has asked to stop."""
        if training.phase != self.phase_index:
            self._end_phase()
        return self.stopped or self.stopped_phase

    def on_batch(self, training: Training) -> None:
        """A step begins, and with the first one of a phase the phase."""
        if self.phase is None:
            self.phase_index = training.phase
            left = training.current.steps - training.step
            self.phase = self.root.subcontext(task_name=training.current.name, max_subtasks=left)
            self.phase.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        self.step = self.phase.subcontext(task_name="step")
        self.step.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def on_step(self, training: Training) -> None:
        """A step ends."""
        self.stopped_phase = self.step.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def on_end(self, training: Training) -> None:
        """The last phase ends."""
        self._end_phase()

    def end(self) -> None:
        """The fit ends: callbacks that ask for it get the fitted estimator."""
        self.root.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes={}, **self.data)

    def _end_phase(self) -> None:
        if self.phase is not None:
            self.stopped |= self.phase.call_on_fit_task_end(estimator=self.estimator, **self.data)
            self.phase, self.stopped_phase = None, False
