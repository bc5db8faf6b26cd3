"""Prints by how many MB the resident memory grows in a fit and in labelling of the rows in a folder.

A process of its own: in one that has run other tests, memory that they freed hides or adds to what a fit takes.
"""

import json
import sys
import threading
import time

import numpy as np
import psutil

from prodsc import PRODSC
from prodsc.sources import fingerprint, rows

OPTIONS = {"hidden_size": 8, "n_components": 16, "batch_size": 500, "max_landmarks": 200, "n_init": 3}
OPTIONS |= {"epochs": 1, "warmup_steps": 0, "device": "cpu"}


class PeakMemory(threading.Thread):
    """The largest resident memory above that at the start, in MB."""

    def __enter__(self):
        self.process, self.stopped = psutil.Process(), False
        self.start_mb = self.top = self.process.memory_info().rss / 2**20
        self.start()
        return self

    def run(self):
        while not self.stopped:
            self.top = max(self.top, self.process.memory_info().rss / 2**20)
            time.sleep(0.003)

    def __exit__(self, *_):
        self.stopped = True
        self.join()
        self.grew = self.top - self.start_mb


def main(folder):
    rows.CHUNK_BYTES = fingerprint.BLOCK_BYTES = 2**20
    n_columns = rows.as_array(folder).shape[1]
    PRODSC.from_flat(2, **OPTIONS).fit(np.random.default_rng(0).normal(size=(1000, n_columns)))  # what torch keeps
    with PeakMemory(daemon=True) as fitting:
        model = PRODSC.from_flat(2, **OPTIONS).fit(folder, checkpoint=f"{folder}.checkpoint")
    with PeakMemory(daemon=True) as labelling:
        n_labels = sum(len(labels) for labels, *_ in model.labelled(folder))
    print(json.dumps({"fitting": fitting.grew, "labelling": labelling.grew, "labels": n_labels}))


if __name__ == "__main__":
    main(sys.argv[1])
