"""What each of two ranks does for test_ranks.py: python two_ranks.py FOLDER. The last thing that rank 1 does is die."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import torch
from setting import FIT, IMAGES, RUN, STOP_AT, Stop, batch_and_network, loss, rows_of, weights

from prodsc import PRODSC, ranks
from prodsc.cli import main
from prodsc.extract import extract
from prodsc.sources.checks import check_values
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.readers import read


def gradients(save):
    """Of one batch of 7 rows, in double precision: the shares are 3 and 4 rows."""
    X, network = batch_and_network()
    with ranks.global_batch_norm(network):
        loss(ranks.gather(network(X[ranks.share(len(X))]), len(X))).backward()
    ranks.sum_gradients(network)
    save("gradients", **{name: p.grad for name, p in network.named_parameters()}, **dict(network.named_buffers()))


def words(save):
    said = ranks.texts("Käse" if ranks.first() else "")
    anyone = [ranks.any_of(False), ranks.any_of(not ranks.first())]
    save("words", said=said, anyone=anyone, shares=[(s.start, s.stop) for s in ranks.shares(7)])


def fits(save, folder):
    """From memory; from files, stopped at a checkpoint; and labels of files."""
    model = PRODSC.from_flat(3, **FIT, random_state=None if ranks.first() else 7)
    model.random_state = np.random.RandomState(5 if ranks.first() else 6)  # the first rank's seed counts
    model.fit(rows_of(folder))
    save("fit", **weights(model), labels=model.labels_, confidence=model.confidence_, seed=model.seed_)
    save("labelled", labels=model.predict(folder / "shards"))
    conv = PRODSC.from_flat(3, **IMAGES).fit(np.load(folder / "images.npy"))
    save("conv", **weights(conv))
    try:
        PRODSC.from_flat(3, **FIT).fit(folder / "shards", callbacks=[Stop(STOP_AT)], checkpoint=folder / "checkpoint")
    except KeyboardInterrupt as stop:
        save("stopped", said=str(stop))
    rows = read(folder / "shards").X
    save("survey", mean=check_values(rows).mean, fingerprint=fingerprint(rows))


def extraction(save, folder):
    class Means:
        name, kind = "means", "images"

        def prepare(self, image):
            return np.asarray(image, dtype=np.float32)

        def embed(self, images):
            return torch.tensor(np.stack([image.mean((1, 2)) for image in images]))

    found = extract(folder / "images.npy", Means(), folder / "features.npy", batch_size=4)
    save("extracted", rows=len(found.X))


def die(folder):
    """A fit from the command line; rank 1 is killed as soon as there is a checkpoint."""
    if not ranks.first():

        def wait():
            while not (folder / "run" / "checkpoint.safetensors").exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=wait, daemon=True).start()
    main(["fit", str(folder / "shards"), "-k", "3", "--out", str(folder / "run"), "--quiet", *RUN])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    ranks.join()

    def save(what, **found):
        np.savez(folder / f"{what}-{ranks.rank()}.npz", **{k: np.asarray(v) for k, v in found.items()})

    gradients(save)
    words(save)
    fits(save, folder)
    extraction(save, folder)
    die(folder)
