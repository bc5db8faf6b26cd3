"""What the ranks and the single process of test_ranks.py both do."""

import numpy as np
import torch
from torch import nn

from prodsc.training import Callback

STOP_AT = 25  # of 10 + 24 steps
FIT = {
    "hidden_size": 32, "n_components": 16, "batch_size": 45, "epochs": 8, "warmup_steps": 10, "n_init": 2,
    "max_landmarks": 100, "device": "cpu",
}  # fmt: skip
RUN = [
    "--hidden-size",
    "16",
    "--n-components",
    "8",
    "--epochs",
    "400",
    "--n-init",
    "1",
    "--device",
    "cpu",
    "--keep",
    "last",
]
IMAGES = {
    "encoder": "conv", "channels": (4, 4), "kernel_sizes": (3, 3), "pretrain_epochs": 2, "pretrain_batch_size": 11,
    "n_components": 8, "batch_size": 31, "epochs": 2, "warmup_steps": 3, "n_init": 1, "device": "cpu",
}  # fmt: skip


def rows_of(folder):
    return np.concatenate([np.load(path) for path in sorted((folder / "shards").iterdir())])


def weights(model):
    return {name: value.numpy() for name, value in model.network_.state_dict().items()}


def batch_and_network():
    """Seven images through convolution, batch normalisation, and a linear layer with batch normalisation."""
    generator = torch.Generator().manual_seed(0)
    layers = [nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 5), nn.BatchNorm1d(5, momentum=None)]
    network = nn.Sequential(*layers).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return torch.randn(7, 2, 4, 4, generator=generator, dtype=torch.float64), network


def loss(Z):
    """Every row with every other one."""
    return torch.logdet(torch.eye(5, dtype=Z.dtype) + Z.T @ Z) + (Z @ Z.T).tanh().sum()


class Stop(Callback):
    """Asks for an end as a signal would, on this process alone, after so many steps in all."""

    def __init__(self, after):
        self.after = after

    def on_step(self, training):
        import os
        import signal

        from prodsc import ranks

        if len(training.history) == self.after and ranks.first():
            os.kill(os.getpid(), signal.SIGTERM)
