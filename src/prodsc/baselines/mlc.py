"""MLC: manifold linearising and clustering, CPP's objective on a small network per head."""

from dataclasses import replace

import numpy as np

from prodsc.baselines.cpp import CPP
from prodsc.pro_dsc.config import Config


class MLC(CPP):
    """CPP with no shared pre-feature: f and h are multi-layer perceptrons of one hidden layer (MLC, ICCV 2023).

    The defaults are the setting of PRO-DSC's figure on synthetic data: two or three dimensions in, the sphere out.
    """

    departures = ""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        heads: str = "separate",
        head_hidden_size: int | None = 100,
        n_components: int = 3,
        scaling: str = "none",
        eta: float = 0.175,
        half_steps: int = 5,
        beta: float = 0.025,
        eps: float = 0.1,
        batch_size: int = 200,
        epochs: int | str = 1000,
        warmup_steps: int = 50,
        learning_rate: float = 5e-3,
        learning_rate_h: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        weight_decay_h: float = 5e-3,
        label_affinity: str = "coefficients",
        max_landmarks: int = 4096,
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        super().__init__(
            n_clusters,
            heads=heads,
            n_components=n_components,
            scaling=scaling,
            eta=eta,
            half_steps=half_steps,
            beta=beta,
            eps=eps,
            batch_size=batch_size,
            epochs=epochs,
            warmup_steps=warmup_steps,
            learning_rate=learning_rate,
            learning_rate_h=learning_rate_h,
            momentum=momentum,
            weight_decay=weight_decay,
            weight_decay_h=weight_decay_h,
            label_affinity=label_affinity,
            max_landmarks=max_landmarks,
            n_init=n_init,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.head_hidden_size = head_hidden_size

    def _make_config(self, n_rows: int) -> Config:
        return replace(super()._make_config(n_rows), encoder="none")
