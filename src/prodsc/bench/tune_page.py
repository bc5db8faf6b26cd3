"""The page of a search: how it went, where it was good, the table, the recipe."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from prodsc.bench.label_free import BY_LABELS
from prodsc.bench.provenance import provenance_section
from prodsc.report import drawing
from prodsc.report.figures import WIDTH
from prodsc.report.page import PageFigure, PageSection, PageTable, write_page
from prodsc.report.style import COLOURS, MUTED, style

if TYPE_CHECKING:
    from prodsc.bench.tune import ScoredTrial, TuningResult


def write_tune_page(path: Path, title: str, result: "TuningResult", command: str = "") -> None:
    """Write the page; `command` is shown so that a reader can repeat it."""
    done = [trial for trial in result.trials if np.isfinite(trial.score)]
    facts = {
        "trials": str(len(result.trials)),
        "failed": str(len(result.trials) - len(done)),
        "searched by": result.by,
        "best": f"trial {result.best.name}, score {result.best.score:.2f}",
    }
    use_of_labels = "Labels, where they are known, are shown and not used."
    if result.by == BY_LABELS:
        use_of_labels = "Settings were chosen with the true labels: an upper limit, not a result."
    lead = f"One dot per trial; each fitted PRO-DSC with other settings in a process of its own. {use_of_labels}"
    charts = [PageFigure(progress(done), "How the search went", "Higher is better. The line is the best so far.")]
    if len([trial for trial in done if trial.point]) > 1:
        charts.append(PageFigure(slices(done), "Where it was good", "The same trials by each setting."))
    table = PageTable("All trials, the best first", result.header(), result.rows())
    chosen = [[name, str(value)] for name, value in result.parameters.items()]
    sections = [
        PageSection("search", "Search", lead, charts),
        PageSection(
            "best",
            "The best settings",
            "Also in recipe.toml, for `prodsc fit --recipe`. All other parameters have their defaults.",
            [PageTable(f"Trial {result.best.name}", ["parameter", "value"], chosen)],
        ),
        PageSection("trials", "Trials", "An empty cell: the default.", [table]),
        provenance_section(command),
    ]
    write_page(path, title=title, facts=facts, sections=sections)


def progress(done: "list[ScoredTrial]") -> Figure:
    """The score of every finished trial, and the best so far."""
    numbers = np.array([trial.number for trial in done])
    scores = np.array([trial.score for trial in done])
    with style():
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.step(numbers, np.maximum.accumulate(scores), where="post", color=COLOURS[1], lw=1.5, label="best so far")
        axes.plot(numbers, scores, "o", color=COLOURS[0], ms=5)
        for trial in done:
            if not trial.point:
                axes.axhline(trial.score, color=MUTED, ls="--", lw=1, label="defaults")
        axes.set(xlabel="trial", ylabel="score")
        axes.legend(loc="lower right")
        figure.suptitle("Score by trial")
        drawing.note(figure, "Dots above the dashed line are settings that score higher than the defaults.")
        figure.set_label(f"Scores of {len(done)} trials; best {scores.max():.2f} at trial {numbers[scores.argmax()]}.")
    return figure


def slices(done: "list[ScoredTrial]") -> Figure:
    """Score against each setting that was searched."""
    searched = [trial for trial in done if trial.point]
    names = list(searched[0].point)
    scores = np.array([trial.score for trial in searched])
    across = 3
    down = -(-len(names) // across)
    with style():
        figure = Figure(figsize=(WIDTH, 0.6 + 2.0 * down), layout="constrained")
        panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
        for axes, name in zip(panels, names, strict=False):
            values = np.array([trial.point[name] for trial in searched])
            axes.plot(values, scores, "o", color=COLOURS[0], ms=4)
            axes.plot(values[scores.argmax()], scores.max(), "o", ms=9, mfc="none", mec=COLOURS[1], mew=2)
            axes.set(xscale="log", xlabel=name)
            ends = [values.min(), values.max()]
            axes.set_xticks(ends, [f"{end:.3g}" for end in ends])
            axes.set_xticks([], minor=True)
        for axes in panels[len(names) :]:
            axes.remove()
        figure.suptitle("Score by setting")
        drawing.note(figure, "A slope or a hill in a panel means that the setting matters. The ring is the best trial.")
        figure.set_label(f"{len(names)} scatter plots of score against {', '.join(names)}.")
    return figure
