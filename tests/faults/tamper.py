"""Damaged models and checkpoints: refused with a sentence, or the labels are those of the undamaged file.

`python tamper.py 1000` tries that many (make faults).
"""

import json
import random
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from faults.scenarios import SCENARIOS, TINY, X, model_of, quick
from prodsc import load, make
from prodsc.errors import ProdscError
from prodsc.runs.run import CHECKPOINT

Damage = Callable[[random.Random, Path], str]


def flip_bits(rng: random.Random, path: Path) -> str:
    content = bytearray(path.read_bytes())
    places = [rng.randrange(len(content)) for _ in range(rng.choice((1, 1, 1, 8)))]
    for place in places:
        content[place] ^= 1 << rng.randrange(8)
    path.write_bytes(content)
    return f"bits flipped in {path.name} at {places}"


def truncate(rng: random.Random, path: Path) -> str:
    size = rng.randrange(path.stat().st_size)
    path.write_bytes(path.read_bytes()[:size])
    return f"{path.name} cut to {size} bytes"


def remove(rng: random.Random, path: Path) -> str:
    path.unlink()
    return f"{path.name} removed"


def swap_values(rng: random.Random, path: Path) -> str:
    """Two values of the same kind exchanged, in the file or in its parameters."""
    content = json.loads(path.read_text())
    table = content["parameters"] if "parameters" in content and rng.random() < 0.7 else content
    a, b = rng.sample(sorted(table), 2)
    table[a], table[b] = table[b], table[a]
    path.write_text(json.dumps(content))
    return f"{a} and {b} exchanged in {path.name}"


def change_value(rng: random.Random, path: Path) -> str:
    content = json.loads(path.read_text())
    table = content["parameters"] if "parameters" in content and rng.random() < 0.5 else content
    name = rng.choice(sorted(table))
    table[name] = rng.choice([None, -1, 0, 1e308, "unknown", "unit", [], {}, True, [[[]]], "x" * 1000])
    path.write_text(json.dumps(content))
    return f"{name}={str(table[name])[:20]!r} in {path.name}"


def drop_key(rng: random.Random, path: Path) -> str:
    content = json.loads(path.read_text())
    table = content["parameters"] if "parameters" in content and rng.random() < 0.3 else content
    name = rng.choice(sorted(table))
    del table[name]
    path.write_text(json.dumps(content))
    return f"{name} dropped from {path.name}"


BINARY: tuple[Damage, ...] = (flip_bits, flip_bits, truncate)
TEXT: tuple[Damage, ...] = (flip_bits, truncate, remove, swap_values, change_value, drop_key)


class Tampering:
    """Undamaged files, and what happens with damaged copies of them.

    Parameters
    ----------
    place : Path
        A folder to work in.
    """

    def __init__(self, place: Path):
        self.place = place
        model_of(2).save(place / "model")
        self.predicted = load(place / "model").predict(X)
        stopped = place / "stopped"
        stopped.mkdir()
        SCENARIOS["fit --resume"].before(stopped)
        self.checkpoint = stopped / "run" / CHECKPOINT
        self.labels = make("pro-dsc", **TINY).fit_predict(X)

    def attempt(self, seed: int) -> tuple[str, str]:
        """One damaged copy: what was done to it, and "refused", "same", or what went wrong."""
        rng = random.Random(seed)
        use = self._resumed if seed % 3 == 0 else self._loaded
        done, result = use(rng)
        return done, result

    def _loaded(self, rng: random.Random) -> tuple[str, str]:
        folder = self.place / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.place / "model", folder)
        path = folder / rng.choice(["model.json", "model.json", "model.safetensors", "manifest.json"])
        done = rng.choice(BINARY if path.suffix == ".safetensors" else TEXT)(rng, path)
        return done, self._outcome(lambda: load(folder).predict(X), self.predicted)

    def _resumed(self, rng: random.Random) -> tuple[str, str]:
        path = self.place / "copy.safetensors"
        shutil.copyfile(self.checkpoint, path)
        done = rng.choice(BINARY)(rng, path)
        return done, self._outcome(lambda: make("pro-dsc", **TINY).fit(X, checkpoint=path).labels_, self.labels)

    @staticmethod
    def _outcome(use: Callable[[], Any], expected: np.ndarray) -> str:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                labels = use()
        except ProdscError as error:
            return "refused" if "\n" not in str(error) else f"not one sentence: {error}"
        except Exception as error:
            return f"traceback of {type(error).__name__}: {error}"
        return "same" if np.array_equal(labels, expected) else "other labels"


def main(n: int) -> int:
    """Try n damaged files; print how they ended and return the number of failures."""
    quick()
    with tempfile.TemporaryDirectory(prefix="prodsc-tamper-") as place:
        tampering = Tampering(Path(place))
        results = [(seed, *tampering.attempt(seed)) for seed in range(n)]
    counts = Counter(result if result in ("refused", "same") else "failed" for *_, result in results)
    for seed, done, result in results:
        if result not in ("refused", "same"):
            print(f"seed {seed}, {done}: {result}", file=sys.stderr)
    print(f"{n} damaged models and checkpoints: {dict(counts)}")
    return counts["failed"]


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)))
