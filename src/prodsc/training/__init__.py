"""The training loop, with phases as data; history, checkpoints, progress and stopping rules are callbacks."""

from prodsc.training.batches import Batches
from prodsc.training.history import History
from prodsc.training.loop import Callback, Phase, Training, train
from prodsc.training.step import Step

__all__ = ["Batches", "Callback", "History", "Phase", "Step", "Training", "train"]
