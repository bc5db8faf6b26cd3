"""The page of a comparison: the table, a bar per method, how much methods agree, how it was made."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from prodsc.report import _parts as parts
from prodsc.report.figures import WIDTH
from prodsc.report.page import Picture, Section, Table, component, write_page
from prodsc.report.style import COLOURS, style

if TYPE_CHECKING:
    from prodsc.bench.compare import ComparisonTable


def write_compare_page(path: Path, title: str, table: "ComparisonTable", command: str = "") -> None:
    from prodsc.system import machine, versions

    runs = sum(line.runs for line in table.lines)
    failed = runs - sum(len(line.values.get("seconds", ())) for line in table.lines)
    facts = {"methods": str(len(table.lines)), "runs": str(runs), "failed": str(failed)}
    if table.by:
        facts["tuned by"] = table.by
    pictures = [
        Picture(bars(table, metric), f"{metric}: {words}", "One bar per method, mean over seeds; the line is the std.")
        for metric, words in ((table.metrics[0], "higher is better"), ("seconds", "shorter is faster"))
        if any(line.values.get(metric) for line in table.lines)
    ]
    honest = "Labels score the results and are not used to find them."
    if "with the true labels" in table.by:
        honest = "Parameters were chosen with the true labels: an upper limit, not a result."
    lead = f"Every run has a process of its own and the same rows. {honest}"
    main = Table("Mean ± std over seeds", table.heads(), table.rows())
    sections = [Section("scores", "Scores", lead, [main, *pictures])]
    names, cells = table.agreements()
    if len(names) > 1:
        lead = "NMI of the labels of two methods, in percent, mean over seeds: 100 when they found the same groups."
        content = [Table("Pairs of methods", ["", *names], cells)]
        sections.append(Section("agree", "Do methods agree?", lead, content))
    if table.chosen:
        lead = f"Chosen among the grids of the paper by {table.by}."
        found = [[name, ", ".join(f"{p} = {v}" for p, v in values.items())] for name, values in table.chosen.items()]
        content = [Table("Parameters that were chosen", ["method", "parameters"], found)]
        sections.append(Section("chosen", "Tuning", lead, content))
    here = {name: str(value) for name, value in machine().items()}
    made = component("made", command, [("Machine", here, True), ("Versions", versions(), False)])
    sections.append(Section("made", "How it was made", "Given again, the command goes on where it was.", [made]))
    write_page(path, title=title, facts=facts, sections=sections)


def bars(table: "ComparisonTable", metric: str) -> Figure:
    """Methods from best to worst; a method that never finished has no bar."""
    done = [line for line in table.lines if line.values.get(metric)]
    means = np.array([line.mean(metric) for line in done], dtype=float)
    stds = np.array([line.std(metric) for line in done], dtype=float)
    order = np.argsort(means if metric != "seconds" else -means)
    with style():
        figure = Figure(figsize=(WIDTH, 0.9 + 0.33 * len(done)), layout="constrained")
        axes = figure.subplots()
        axes.barh(np.arange(len(done)), means[order], xerr=stds[order], color=COLOURS[0], ecolor=COLOURS[1], height=0.6)
        axes.set_yticks(range(len(done)), [done[i].method for i in order])
        for place, i in enumerate(order):
            axes.text(means[i] + stds[i], place, f" {done[i].cell(metric)}", va="center", size=8.5)
        axes.set(xlabel=metric, xlim=(0, None))
        axes.margins(x=0.2)
        if metric == "seconds" and means.max() > 50 * max(means.min(), 1e-3):
            axes.set(xscale="log", xlim=(max(means.min() / 2, 1e-3), means.max() * 4))
        figure.suptitle(parts.wrapped(f"Methods by {metric}"))
        best = done[order[-1]]
        figure.set_label(f"Bar chart of {metric}; best: {best.method} with {best.cell(metric)}.")
    return figure
