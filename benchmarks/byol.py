"""CIFAR-10 images without any pre-trained encoder: BYOL on a narrow ResNet-18, then fine-tuning with the PRO-DSC loss.

python benchmarks/byol.py [name=value ...]       names and defaults: `Run` below

A short run (about 15 minutes of one core), to see the losses fall and the clusters rise; not the paper's numbers, which
took ResNet-18 of width 64, more images and many more epochs. Interrupt it and start it again with the same values: it
goes on from the files in `folder`. Labels only score.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize
from snapshots import shared

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.paper.augment import Augmented, generator_of
from prodsc.paper.byol import BYOLSettings, encode, pretrain
from prodsc.paper.resnet import resnet18
from prodsc.training import Callback, Training


@dataclass(frozen=True)
class Run:
    images: int = 10_000
    width: int = 8
    epochs: int = 11
    batch_size: int = 64  # smaller than the published 256, and a larger learning rate: few steps must do
    learning_rate: float = 0.1
    target_momentum: float = 0.99  # the published 0.996 needs more steps than this to move the target
    hidden_size: int = 512
    projection_size: int = 128
    tune_epochs: int = 8
    tune_learning_rate: float = 0.05
    tune_components: int = 64
    seed: int = 0
    looks: int = 5  # at the features while they are learned
    folder: str = "benchmarks/out/byol"


class Look(Callback):
    """k-means of the features now and then, written into the history, which a checkpoint keeps."""

    columns = ("ACC", "NMI")

    def __init__(self, X: np.ndarray, y: np.ndarray, times: int):
        self.X, self.y, self.times = X, y, times

    def on_step(self, training: Training) -> None:
        steps = training.current.steps
        if training.step % -(-steps // self.times) and training.step != steps:
            return
        encoder = training.network.encoder
        assert isinstance(encoder, torch.nn.Module)
        found = clustered(normalize(encode(encoder, self.X)), self.y)
        training.history.annotate(**found)
        loss = training.history.values()[-20:, 0].mean()
        print(
            f"  step {training.step} of {steps}: loss {loss:.3f}, ACC {found['ACC']:.3f}, NMI {found['NMI']:.3f}",
            flush=True,
        )


def clustered(rows: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Scores of k-means, the mean over three seeds."""
    found = [metrics.scores(y, KMeans(10, n_init=3, random_state=seed).fit(rows).labels_) for seed in range(3)]
    return {name: float(np.mean([f[name] for f in found])) for name in Look.columns}


def main(run: Run) -> None:
    torch.set_num_threads(1)
    X, y = shared("cifar10")
    X, y = X[: run.images], y[: run.images]
    folder = Path(run.folder)
    folder.mkdir(parents=True, exist_ok=True)
    pixels = X.reshape(len(X), -1).astype(np.float32) / 255
    start = resnet18(generator_of(run.seed), width=run.width)
    table = {
        "pixels, k-means": clustered(pixels, y),
        "pixels as unit rows, k-means": clustered(normalize(pixels), y),
        "ResNet-18 before training, k-means": clustered(normalize(encode(start, X)), y),
    }

    began = time.process_time()
    settings = BYOLSettings(
        epochs=run.epochs,
        batch_size=run.batch_size,
        hidden_size=run.hidden_size,
        projection_size=run.projection_size,
        learning_rate=run.learning_rate,
        target_momentum=run.target_momentum,
    )
    looks = [Look(X, y, run.looks)]
    pre = pretrain(start, X, settings, seed=run.seed, callbacks=looks, checkpoint=folder / "byol.safetensors")
    print(f"BYOL: {time.process_time() - began:.0f} s of one core in this session")
    for step in np.flatnonzero(np.isfinite(pre.history["ACC"])):
        loss = pre.history["prediction"][max(0, step - 19) : step + 1].mean()
        table[f"BYOL, step {step + 1} (loss {loss:.2f}), k-means"] = {c: pre.history[c][step] for c in Look.columns}

    began = time.process_time()
    model = PRODSC.from_flat(
        10,
        encoder=Augmented(pre.encoder, seed=run.seed),
        n_components=run.tune_components,
        learning_rate=run.tune_learning_rate,
        batch_size=256,
        epochs=run.tune_epochs,
        random_state=run.seed,
        device="cpu",
    ).fit(X, checkpoint=folder / "fine-tune.safetensors")
    print(f"fine-tuning: {time.process_time() - began:.0f} s of one core in this session")
    for name in ("coding_rate", "self_expression", "block_diagonal", "effective_rank"):
        column = model.history_[name][np.isfinite(model.history_[name])]
        print(f"  {name}: {column[0]:.3f} to {column[-1]:.3f}")
    table["fine-tuned, PRO-DSC's labels"] = metrics.scores(y, model.labels_)
    table["fine-tuned, k-means of Z"] = clustered(model.transform(X), y)

    print(f"\n| {len(X)} images of CIFAR-10, width {run.width} | ACC | NMI |\n|---|---|---|")
    for what, found in table.items():
        print(f"| {what} | {found['ACC']:.3f} | {found['NMI']:.3f} |")


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    main(Run(**{name: type(getattr(Run, name))(value) for name, value in given.items()}))
