"""A file larger than memory may hold: peak memory of fit and predict, and how long training waits for the disk.

python benchmarks/out_of_core.py [gigabytes, 6] [npy|folder|parquet ..., npy]

Makes clustered rows of 4,096 numbers (as wide as embeddings of large language models) under $TMPDIR, runs the two
commands on them, and removes everything. Memory is what the system counts as resident (VmHWM of /proc/PID/status:
private pages, shared libraries and mapped files), so nothing is hidden in a memory map; beside it stands the private
part (RssAnon).
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WIDTH, CLUSTERS, BLOCK = 4096, 10, 4096
AIM_MB = 2000


def blocks(n: int) -> Iterator[np.ndarray]:
    """RowReader near ten random subspaces of five dimensions."""
    rng = np.random.default_rng(0)
    bases = rng.standard_normal((CLUSTERS, 5, WIDTH), np.float32)
    noise = 0.3 * rng.standard_normal((BLOCK, WIDTH), np.float32)
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        codes, which = rng.standard_normal((size, 5), np.float32), rng.integers(CLUSTERS, size=size)
        yield np.einsum("nk,nkd->nd", codes, bases[which]) + np.roll(noise[:size], start, axis=1)


def make(kind: str, folder: Path, n: int) -> Path:
    if kind == "npy":
        path = folder / "X.npy"
        with path.open("wb") as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (n, WIDTH)}
            np.lib.format.write_array_header_2_0(file, header)
            for block in blocks(n):
                file.write(block.data)
        return path
    if kind == "folder":
        path = folder / "shards"
        path.mkdir()
        for i, block in enumerate(blocks(n)):
            np.save(path / f"{i:05d}.npy", block)
        return path
    path = folder / "X.parquet"
    with pq.ParquetWriter(path, pa.schema([("X", pa.list_(pa.float32(), WIDTH))])) as writer:
        for block in blocks(n):
            column = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), WIDTH)
            writer.write_table(pa.table({"X": column}))
    return path


def command(*words: object, cache: Path) -> tuple[float, float, float]:
    """Seconds, peak resident and peak private memory in MB of one prodsc command; its progress is shown."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "prodsc", *map(str, words)], env=os.environ | {"XDG_CACHE_HOME": str(cache)}
    )
    peaks = {"VmHWM": 0.0, "RssAnon": 0.0}

    def watch() -> None:
        while process.poll() is None:
            try:
                lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            except OSError:
                return
            for line in lines:
                name, _, value = line.partition(":")
                if name in peaks:
                    peaks[name] = max(peaks[name], int(value.split()[0]) / 1024)
            time.sleep(0.02)

    watching = threading.Thread(target=watch)
    watching.start()
    code = process.wait()
    watching.join()
    if code:
        raise SystemExit(f"prodsc {words[0]} ended with {code}")
    return time.perf_counter() - began, peaks["VmHWM"], peaks["RssAnon"]


def waiting(path: Path, steps: int = 20) -> tuple[float, float]:
    """Share of training time spent waiting for rows of a file that is not in the page cache: without and with reading
    ahead."""
    from prodsc import PRODSC
    from prodsc.sources.rows import RowReader
    from prodsc.training import Callback

    class Enough(Callback):
        def on_step(self, training):  # type: ignore[no-untyped-def]
            if len(training.history) >= steps:
                raise KeyboardInterrupt

    shares, take, prefetch = [], RowReader.__getitem__, RowReader.prefetch
    stored = RowReader(np.load(path, mmap_mode="r")).array
    for ahead in (False, True):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
        waited = 0.0

        def timed(self: RowReader, rows: np.ndarray) -> object:
            nonlocal waited
            began = time.perf_counter()
            X = take(self, rows)
            waited += time.perf_counter() - began
            return X

        RowReader.__getitem__, RowReader.prefetch = timed, prefetch if ahead else lambda self, rows: None  # type: ignore
        stored.cache["statistics"] = _nothing_wrong(stored.shape[1])  # the pass over all rows is not what is measured
        began = time.perf_counter()
        try:
            PRODSC.from_flat(CLUSTERS, warmup_steps=0, epochs=1, on_collapse="ignore").fit(stored, callbacks=[Enough()])
        except KeyboardInterrupt:
            shares.append(waited / (time.perf_counter() - began))
    RowReader.__getitem__, RowReader.prefetch = take, prefetch  # type: ignore[method-assign]
    return shares[0], shares[1]


def _nothing_wrong(width: int) -> object:
    from prodsc.sources.checks import RunningStatistics

    return RunningStatistics(1, np.zeros(width), np.zeros(width), np.zeros(width), np.ones(width))


def measure(gigabytes: float = 6, kinds: tuple[str, ...] = ("npy",)) -> list[tuple[str, str, str, bool]]:
    """(name, measured, aim, met) of everything; removes the files it makes."""
    found: list[tuple[str, str, str, bool]] = []
    n = int(gigabytes * 1e9 / (4 * WIDTH))
    for kind in kinds:
        folder = Path(tempfile.mkdtemp(prefix="prodsc-out-of-core-"))
        try:
            began = time.perf_counter()
            path = make(kind, folder, n)
            print(f"{kind}: {n:,} x {WIDTH:,} made in {time.perf_counter() - began:.0f} s", flush=True)
            run, aim = folder / "run", f"under {AIM_MB} MB"
            fit = (
                "fit",
                path,
                "-k",
                CLUSTERS,
                "--out",
                run,
                "--epochs",
                1,
                "--hidden-size",
                128,
            )  # minutes, not an hour
            for words in (fit, ("predict", run, path, "-o", folder / "labels.csv")):
                seconds, resident, private = command(*words, cache=folder / "cache")
                shown = f"{resident:.0f} MB resident ({private:.0f} private), {seconds:.0f} s"
                found.append((f"{words[0]} on {gigabytes:g} GB {kind}", shown, aim, resident < AIM_MB))
                print("  ".join(found[-1][:3]), flush=True)
            if kind == "npy":
                without, ahead = waiting(path)
                shown = f"{ahead:.1%} ({without:.1%} without reading ahead)"
                found.append(("training waits for a cold disk", shown, "under 5 % of its time", ahead < 0.05))
                print("  ".join(found[-1][:3]), flush=True)
        finally:
            shutil.rmtree(folder)
    return found


if __name__ == "__main__":
    measure(float(sys.argv[1]) if len(sys.argv) > 1 else 6, tuple(sys.argv[2:]) or ("npy",))
