"""Every ratio that prodsc promises, measured on this machine: `make bench`, or some by name.

python benchmarks/bench.py [name ...]

Each measurement runs in a process of its own on one thread; seconds are processor seconds, so that other work on the
machine does not count. Results go to docs/bench.json, each with its date, and docs/bench.md is made from them;
docs/bench_history.json keeps earlier ones, with their commits, for the plots of the site. To add a measurement, write a
function that returns rows and give it a line in MEASUREMENTS.
"""

import contextlib
import json
import os
import platform
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import history

from prodsc import files

KEPT = Path(__file__).parents[1] / "docs" / "bench.json"
PAGE = KEPT.with_suffix(".md")
HEAD = """# Measured speed

Made by `make bench` (`benchmarks/bench.py`) from `bench.json`; do not edit by hand. One thread,
processor seconds. A ratio compares two things measured in turn in the same process.
[scale.md](scale.md) explains the measurements.
"""


class Row(NamedTuple):
    name: str
    measured: str
    aim: str
    met: bool


def step(name: str) -> list[Row]:
    import bench_step

    recipe, aim = bench_step.ROWS[name]
    found = bench_step.ratios(recipe, 4 if recipe == "imagenet-1k" else 9)
    text = f"{found['joint']:.2f}x (warm-up {found['warm-up']:.2f}x) of {found['bare']:.2f} s"
    return [Row(f"{name} / bare forward + backward", text, f"{aim}x", found["joint"] <= aim)]


def default_step() -> list[Row]:
    import bench_step

    found = {k: bench_step.default_ratios(k) for k in (10, 100)}
    return [
        Row(
            f"default step, k {k} / bare forward + backward of both views",
            f"{one['joint']:.2f}x (warm-up {one['warm-up']:.2f}x) of {1e3 * one['bare']:.0f} ms",
            "1.5x",
            max(one["joint"], one["warm-up"]) <= 1.5,
        )
        for k, one in found.items()
    ]


def million() -> list[Row]:
    """The small one first: memory is the most that the process ever had."""
    import bench_labels

    small, large = bench_labels.labelled(100_000), bench_labels.labelled(1_000_000)
    growth = large["seconds"] / small["seconds"]
    seconds = f"{large['seconds']:.0f} s, ACC {large['ACC']:.1f} (100,000 rows: {small['ACC']:.1f})"
    return [
        Row("labels of 1,000,000 x 128, k 100", seconds, "600 s on 2 cores", large["seconds"] <= 600),
        Row("memory of that, the 0.5 GB of data included", f"{large['GB']:.1f} GB", "4 GB", large["GB"] <= 4),
        Row("1,000,000 rows / 100,000 rows", f"{growth:.1f}x of {small['seconds']:.0f} s", "12x", growth <= 12),
    ]


def accuracy_of_labels(name: str) -> list[Row]:
    import bench_labels

    found = bench_labels.accuracy_lost(name)
    text = (
        f"{found['lost']:+.2f} points: exact {found['exact']:.2f} in {found['exact seconds']:.1f} s, "
        f"{found['n_landmarks']:.0f} landmarks {found['landmarks']:.2f} in {found['seconds']:.1f} s"
    )
    return [Row(f"ACC lost by landmarks, {name}", text, "0.5 points", found["lost"] <= 0.5)]


def predict() -> list[Row]:
    import bench_labels

    found = {(width, n): bench_labels.throughput(width, n) for width, n in ((4096, 8192), (512, 8192), (512, 2048))}
    return [
        Row(f"predict / bare forward, hidden_size {width}, a fit of {n:,} rows", f"{ratio:.0%}", "60 %", ratio >= 0.6)
        for (width, n), ratio in found.items()
    ]


def time_to_accuracy(name: str) -> list[Row]:
    import bench_accuracy

    found = bench_accuracy.speedup(name, full="BENCH_FULL" in os.environ)
    how = "run" if "BENCH_FULL" in os.environ else "from the time of its steps"
    text = f"published schedule {found['published']:.0f} s ({how}), ACC {found['target']:.3f}; ours "
    reached = found["ratio"] == found["ratio"]
    if reached:
        text += f"{found['ours']:.0f} s, {found['ratio']:.1f}x"
    else:
        text += f"comes to {found['best']:.3f} in {found['whole']:.0f} s"
    return [Row(f"time to the published schedule's ACC, {name}", text, "5x", reached and found["ratio"] >= 5)]


def out_of_core(kind: str) -> list[Row]:
    """A file of 6 GB is made and removed; fit and predict run as a user runs them. Seconds are of the wall here."""
    import out_of_core

    with contextlib.redirect_stdout(sys.stderr):
        return [Row(*row) for row in out_of_core.measure(kinds=(kind,))]


def two_processes() -> list[Row]:
    import bench_ranks

    return [
        Row(
            f"weights of two gloo processes - of one, {steps} steps",
            f"{two:.1e} (one weight moved by 1e-7: {nudged:.1e})",
            "1e-5",
            two <= 1e-5,
        )
        for steps, (two, nudged) in bench_ranks.differences().items()
    ]


MEASUREMENTS: dict[str, Callable[[], list[Row]]] = {
    "step-1": lambda: step("step, n 1024, d 128, k 10"),
    "step-2": lambda: step("step, n 1500, d 128, k 100"),
    "step-3": lambda: step("step, n 2048, d 1024, k 1000"),
    "step-default": default_step,
    "labels-million": million,
    "labels-digits": lambda: accuracy_of_labels("digits"),
    "labels-cifar10": lambda: accuracy_of_labels("cifar10_efflite0"),
    "labels-mnist": lambda: accuracy_of_labels("mnist"),
    "labels-hapt": lambda: accuracy_of_labels("har_hapt561"),
    "labels-subspaces": lambda: accuracy_of_labels("subspaces"),
    "predict": predict,
    "accuracy-orl": lambda: time_to_accuracy("orl"),
    "accuracy-cifar10": lambda: time_to_accuracy("cifar10_efflite0"),
    "out-of-core": lambda: out_of_core("npy"),
    "out-of-core-folder": lambda: out_of_core("folder"),
    "out-of-core-parquet": lambda: out_of_core("parquet"),
    "two-processes": two_processes,
}


def machine() -> str:
    import psutil
    import torch

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    memory = psutil.virtual_memory().total / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.system()}, torch {torch.__version__}"


def measured(name: str) -> list[Row]:
    """In a process of its own; one that fails is a row that says so."""
    here = {"OMP_NUM_THREADS": "1", **os.environ}
    command = [sys.executable, __file__, "--here", name]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=here)
    if found.returncode:
        return [Row(name, f"failed (exit code {found.returncode})", "", False)]
    return [Row(*row) for row in json.loads(found.stdout.splitlines()[-1])]


def page(kept: dict[str, dict[str, object]]) -> str:
    lines = [HEAD]
    for name in MEASUREMENTS:
        for row in map(Row._make, kept.get(name, {}).get("rows", [])):  # type: ignore[attr-defined]
            met = "met" if row.met else "**not met**"
            text = f"- {row.name}: **{row.measured}** (aim {row.aim}: {met}; {kept[name]['when']})"
            lines.append(textwrap.fill(text, 100, subsequent_indent="  "))
    machines = sorted({str(entry["machine"]) for entry in kept.values()})
    return "\n".join([*lines, "", "Machine: " + "; ".join(machines) + ".", ""])


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        sys.exit(f"there is no measurement '{unknown[0]}'. Known: {', '.join(MEASUREMENTS)}.")
    for name in names or MEASUREMENTS:
        rows = measured(name)
        for row in rows:
            print(f"{row.name}: {row.measured} (aim {row.aim}: {'met' if row.met else 'NOT MET'})", flush=True)
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}  # again: another process may have added to it
        kept[name] = {"rows": rows, "when": time.strftime("%Y-%m-%d %H:%M"), "machine": machine()}
        files.write_text(KEPT, json.dumps(kept, indent=1) + "\n")
        files.write_text(PAGE, page(kept))
        history.add(history.entries_of(kept, history.git("rev-parse", "--short", "HEAD").strip(), only={name}))
    print(f"\n{PAGE.read_text()}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(MEASUREMENTS[sys.argv[2]]()))
    else:
        main(sys.argv[1:])
