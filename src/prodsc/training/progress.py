"""Progress of training: phase, step, losses and the time left."""

from typing import Self

from prodsc.progress import ProgressDisplay
from prodsc.training.loop import Callback, Training

LOSS_NAMES = {
    "coding_rate": "coding rate",
    "self_expression": "self-expression",
    "block_diagonal": "block-diagonal",
    "walk_expression": "distance along walks",
    "cross_entropy": "labels",
    "negative_information": "-information",
}  # as shown; other terms keep their name


class ProgressCallback(Callback):
    """Shows phase, step and losses on a `ProgressDisplay`.

    Use it as a context manager, so that live bars are closed on errors.

    Parameters
    ----------
    display : ProgressDisplay, optional
        Where to show them; by default a display of its own.
    """

    def __init__(self, display: ProgressDisplay | None = None):
        self.display = display or ProgressDisplay()

    def __enter__(self) -> Self:
        self.display.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.display.__exit__(*error)

    def on_step(self, training: Training) -> None:
        """Show the losses of this step, unless others were shown a moment ago."""
        name, step, steps = training.current.name, training.step, training.current.steps
        if self.display.is_due(name, step, steps):  # reading the losses waits for the device
            losses = {term: value for term, value in training.history.last().items() if term != "total"}
            detail = "  ".join(f"{LOSS_NAMES.get(term, term)} {value:.4g}" for term, value in losses.items())
            self.display.update(name, step, steps, detail)

    def on_end(self, training: Training) -> None:
        """Say that training is over, and why it ended with steps left."""
        if training.ended_early:
            name, step = training.current.name, training.step
            self.display.update(name, step, step, f"ended early: {training.ended_early}")
