"""The page of a comparison: the table, a bar per method, how much methods agree, how it was made."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from prodsc.bench.label_free import BY_LABELS
from prodsc.bench.provenance import provenance_section
from prodsc.registry import departures_of
from prodsc.report import drawing
from prodsc.report.figures import WIDTH
from prodsc.report.page import PageFigure, PageSection, PageTable, write_page
from prodsc.report.style import COLOURS, style

if TYPE_CHECKING:
    from prodsc.bench.compare import ComparisonTable


def write_compare_page(path: Path, title: str, table: "ComparisonTable", command: str = "") -> None:
    """Write the page; `command` is shown so that a reader can repeat it."""
    runs = sum(summary.runs for summary in table.summaries)
    failed = runs - sum(len(summary.values.get("seconds", ())) for summary in table.summaries)
    facts = {"methods": str(len(table.summaries)), "runs": str(runs), "failed": str(failed)}
    if table.by:
        facts["tuned by"] = table.by
    charts = [
        PageFigure(
            bars(table, metric), f"{metric}: {hint}", "One bar per method, mean over seeds; the line is the std."
        )
        for metric, hint in ((table.metrics[0], "higher is better"), ("seconds", "shorter is faster"))
        if any(summary.values.get(metric) for summary in table.summaries)
    ]
    use_of_labels = "Labels score the results and are not used to find them."
    if table.by == BY_LABELS:
        use_of_labels = "Parameters were chosen with the true labels: an upper limit, not a result."
    lead = f"Every run has a process of its own and the same rows. {use_of_labels}"
    scores = PageTable("Mean ± std over seeds", table.header(), table.rows())
    sections = [PageSection("scores", "Scores", lead, [scores, *charts])]
    names, cells = table.agreement_table()
    if len(names) > 1:
        lead = "NMI of the labels of two methods, in percent, mean over seeds: 100 when they found the same groups."
        pairs = PageTable("Pairs of methods", ["", *names], cells)
        sections.append(PageSection("agree", "Do methods agree?", lead, [pairs]))
    if table.chosen:
        lead = f"Chosen among the grids of the paper by {table.by}."
        rows = [[name, ", ".join(f"{p} = {v}" for p, v in values.items())] for name, values in table.chosen.items()]
        chosen = PageTable("Parameters that were chosen", ["method", "parameters"], rows)
        sections.append(PageSection("chosen", "Tuning", lead, [chosen]))
    if departures := departures_of(summary.method for summary in table.summaries):
        lead = "Defaults that differ from the settings of a method's authors."
        listed = PageTable("Departures", ["method", "what differs"], [[*pair] for pair in departures.items()])
        sections.append(PageSection("departures", "Authors' settings", lead, [listed]))
    sections.append(provenance_section(command))
    write_page(path, title=title, facts=facts, sections=sections)


def bars(table: "ComparisonTable", metric: str) -> Figure:
    """Methods from best to worst; a method without a finished run has no bar."""
    done = [summary for summary in table.summaries if summary.values.get(metric)]
    means = np.array([summary.mean(metric) for summary in done], dtype=float)
    stds = np.array([summary.std(metric) for summary in done], dtype=float)
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
        figure.suptitle(drawing.wrapped(f"Methods by {metric}"))
        best = done[order[-1]]
        figure.set_label(f"Bar chart of {metric}; best: {best.method} with {best.cell(metric)}.")
    return figure
