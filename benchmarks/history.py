"""Measurements over commits: docs/bench_history.json, and the figures and page that the site makes of it.

    python benchmarks/history.py            # collect every version of docs/bench.json that git knows

`make bench` adds its own measurements. One entry is one measurement at one commit: name, value, aim, unit, met, when,
commit and machine. Values of different machines are in one figure with different marks.
"""

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Any

from prodsc import files

ROOT = Path(__file__).parents[1]
BENCH = ROOT / "docs" / "bench.json"
HISTORY = ROOT / "docs" / "bench_history.json"
NUMBER = r"([+-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?)"
Entry = dict[str, Any]


def number_and_unit(text: str) -> tuple[float, str] | None:
    """The first number of an aim such as "under 2000 MB", and its unit."""
    found = re.search(NUMBER + r"\s*(x\b|%|[A-Za-z]+)?", text)
    return None if found is None else (_number(found[1]), found[2] or "")


def value_in(measured: str, unit: str) -> float | None:
    """The first number in a measurement that has this unit; None if there is none, as in a measurement that failed."""
    found = re.search(NUMBER + r"\s*" + re.escape(unit) + (r"(?![A-Za-z])" if unit != "%" else ""), measured)
    return None if found is None else _number(found[1])


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def entries_of(kept: dict[str, Any], commit: str, only: set[str] | None = None) -> list[Entry]:
    """What a version of bench.json says, one entry for each row that has a number."""
    entries = []
    for group, found in kept.items():
        for name, measured, aim, met in found["rows"] if only is None or group in only else ():
            target = number_and_unit(aim)
            value = None if target is None else value_in(measured, target[1])
            if target is not None and value is not None:
                about = {"when": found["when"], "commit": commit, "machine": found["machine"]}
                entries.append({"name": name, "value": value, "aim": target[0], "unit": target[1], "met": met, **about})
    return entries


def add(entries: list[Entry]) -> None:
    """Add entries to the file; a measurement of the same name and time is there once."""
    known = {(entry["name"], entry["when"]): entry for entry in [*read(), *reversed(entries)]}
    ordered = sorted(known.values(), key=lambda entry: (entry["name"], entry["when"]))
    lines = ",\n".join(json.dumps(entry) for entry in ordered)
    files.write_text(HISTORY, f"[\n{lines}\n]\n")


def read() -> list[Entry]:
    """All entries of the file, by name and then by time."""
    return json.loads(HISTORY.read_text(encoding="utf-8")) if HISTORY.exists() else []


def git(*words: str) -> str:
    """What a git command prints."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def from_git() -> list[Entry]:
    """The entries of every version of bench.json, the oldest first, with the commit that brought each."""
    path = BENCH.relative_to(ROOT).as_posix()
    entries: dict[tuple[str, str], Entry] = {}
    for commit in reversed(git("log", "--format=%h", "--", path).split()):
        for entry in entries_of(json.loads(git("show", f"{commit}:{path}")), commit):
            entries.setdefault((entry["name"], entry["when"]), entry)
    return list(entries.values())


def page(pictures: Path, link: str) -> str:
    """Draw every measurement that bench.json still has, and give the Markdown that shows the figures.

    Parameters
    ----------
    pictures : Path
        The folder to draw into.
    link : str
        The same folder as the page has to call it.
    """
    current = {name for group in json.loads(BENCH.read_text(encoding="utf-8")).values() for name, *_ in group["rows"]}
    series: dict[str, list[Entry]] = defaultdict(list)
    for entry in read():
        if entry["name"] in current:
            series[entry["name"]].append(entry)
    parts = []
    for i, (name, entries) in enumerate(series.items()):
        draw(entries, pictures / f"speed-{i}.svg")
        newest = entries[-1]
        alternative = f"{name}: {len(entries)} measurements, the newest {newest['value']:g} {newest['unit']}"
        parts.append(f"## {name}\n\n![{alternative}]({link}/speed-{i}.svg)\n")
    return "\n".join(parts)


def draw(entries: list[Entry], path: Path) -> None:
    """One measurement over commits, and its aim."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 2.4), layout="constrained")
    ax = figure.add_subplot()
    places = range(len(entries))
    ax.plot(places, [entry["value"] for entry in entries], color="0.7", lw=1, zorder=1)
    for marker, machine in zip("osD^v", dict.fromkeys(entry["machine"] for entry in entries), strict=False):
        for i, entry in enumerate(entries):
            if entry["machine"] == machine:
                ax.scatter(i, entry["value"], marker=marker, color="C2" if entry["met"] else "C3", zorder=2)
    aim = entries[-1]["aim"]
    ax.axhline(aim, color="C0", lw=0.8, ls="--")
    ax.annotate(f"aim {aim:g}", (1, aim), xycoords=("axes fraction", "data"), fontsize=7, color="C0")
    ax.set_xticks(places, [f"{e['commit']}\n{e['when'][5:10]}" for e in entries], fontsize=6)
    ax.set_ylabel(entries[-1]["unit"] or "value", fontsize=8)
    ax.tick_params(axis="y", labelsize=7)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    add(from_git())
    print(f"{HISTORY.name}: {len(read())} measurements")
