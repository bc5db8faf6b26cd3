"""Two gloo processes beside one process on the same batches: how far apart the weights are.

python benchmarks/bench_ranks.py
"""

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

STEPS = (30, 60)  # epochs of one batch each, after 10 steps of warm-up


def fit(epochs: int, nudge: float = 0.0) -> dict[str, np.ndarray]:
    """The weights of a small fit; a nudge moves one of them after the first step."""
    import torch

    from prodsc import PRODSC
    from prodsc.training import Callback

    class Nudge(Callback):
        def on_step(self, training):  # type: ignore[no-untyped-def]
            if len(training.history) == 1:
                with torch.no_grad():
                    training.network.encoder[0].weight[0, 0] += nudge

    rng = np.random.default_rng(0)
    centres = 4 * rng.standard_normal((3, 12))
    X = centres[rng.integers(3, size=150)] + rng.standard_normal((150, 12))
    options = {
        "hidden_size": 32,
        "n_components": 16,
        "warmup_steps": 10,
        "epochs": epochs,
        "n_init": 1,
        "device": "cpu",
    }
    model = PRODSC.from_flat(3, **options).fit(X, callbacks=[Nudge()])
    return {name: value.numpy() for name, value in model.network_.state_dict().items()}


def on_two(epochs: int) -> dict[str, np.ndarray]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    here = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights.npz"
        command = [sys.executable, __file__, str(epochs), str(path)]
        started = [subprocess.Popen(command, env=here | {"RANK": str(i)}) for i in range(2)]
        if any(process.wait() for process in started):
            raise SystemExit("a rank failed")
        return dict(np.load(path))


def apart(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    return max(float(np.abs(a[name].astype(np.float64) - b[name]).max()) for name in a)


def differences() -> dict[int, tuple[float, float]]:
    """By the number of steps: of two processes from one, and of one process from itself after a nudge of 1e-7."""
    return {10 + n: (apart(fit(n), on_two(n)), apart(fit(n), fit(n, 1e-7))) for n in STEPS}


if __name__ == "__main__":
    if len(sys.argv) > 1:
        from prodsc import ranks

        ranks.join()
        found = fit(int(sys.argv[1]))
        if ranks.first():
            np.savez(sys.argv[2], **found)
    else:
        for steps, (two, nudged) in differences().items():
            print(f"{steps} steps: two processes {two:.1e}, a nudge of 1e-7 {nudged:.1e}", flush=True)
