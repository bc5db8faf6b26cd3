"""The page of a comparison: the table, and a bar per method."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from prodsc.report import _parts as parts
from prodsc.report.figures import WIDTH
from prodsc.report.page import Table, write_page
from prodsc.report.style import COLOURS, style

if TYPE_CHECKING:
    from prodsc.experiments.compare import ComparisonTable


def write_compare_page(path: Path, title: str, table: "ComparisonTable") -> None:
    main = Table("Mean ± std over seeds", table.heads(), table.rows())
    runs = sum(line.runs for line in table.lines)
    failed = runs - sum(len(line.values.get("seconds", ())) for line in table.lines)
    facts = {"methods": str(len(table.lines)), "runs": str(runs), "failed": str(failed)}
    if table.by:
        facts["tuned by"] = table.by
    pictures = []
    for metric, words in ((table.metrics[0], "higher is better"), ("seconds", "shorter is faster")):
        if any(line.values.get(metric) for line in table.lines):
            picture = bars(table, metric)
            pictures.append(
                (picture, f"{metric}: {words}", "One bar per method, mean over seeds; the line is the std.")
            )
    write_page(path, title=title, facts=facts, tables=[main], figures=pictures)


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
            axes.text(means[i], place, f" {done[i].cell(metric)}", va="center", size=8.5)
        axes.set(xlabel=metric, xlim=(0, None))
        axes.margins(x=0.2)
        if metric == "seconds" and means.max() > 50 * max(means.min(), 1e-3):
            axes.set(xscale="log", xlim=(max(means.min() / 2, 1e-3), means.max() * 4))
        figure.suptitle(parts.wrapped(f"Methods by {metric}"))
        best = done[order[-1]]
        figure.set_label(f"Bar chart of {metric}; best: {best.method} with {best.cell(metric)}.")
    return figure
