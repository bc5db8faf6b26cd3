"""The page of a search: how it went, where it was good, the table, the recipe."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from prodsc.report import _parts as parts
from prodsc.report.figures import WIDTH
from prodsc.report.page import Picture, Section, Table, component, write_page
from prodsc.report.style import COLOURS, MUTED, style

if TYPE_CHECKING:
    from prodsc.bench.tune import Tried, Tuning


def write_tune_page(path: Path, title: str, found: "Tuning", command: str = "") -> None:
    from prodsc.bench.unlabelled import BY_LABELS
    from prodsc.system import machine, versions

    done = [one for one in found.tried if np.isfinite(one.score)]
    facts = {
        "trials": str(len(found.tried)),
        "failed": str(len(found.tried) - len(done)),
        "searched by": found.by,
        "best": f"trial {found.best.name}, score {found.best.score:.2f}",
    }
    honest = "Labels, where they are known, are shown and not used."
    if found.by == BY_LABELS:
        honest = "Settings were chosen with the true labels: an upper limit, not a result."
    lead = f"One dot per trial; each fitted PRO-DSC with other settings in a process of its own. {honest}"
    pictures = [Picture(progress(done), "How the search went", "Higher is better. The line is the best so far.")]
    if len([one for one in done if one.place]) > 1:
        pictures.append(Picture(slices(done), "Where it was good", "The same trials by each setting."))
    table = Table("All trials, the best first", found.heads(), found.rows())
    chosen = [[name, str(value)] for name, value in found.parameters.items()]
    sections = [
        Section("search", "Search", lead, pictures),
        Section(
            "best",
            "The best settings",
            "Also in recipe.toml, for `prodsc fit --recipe`. What is not named here is as by default.",
            [Table(f"Trial {found.best.name}", ["parameter", "value"], chosen)],
        ),
        Section("trials", "Trials", "An empty cell: as by default.", [table]),
    ]
    here = {name: str(value) for name, value in machine().items()}
    made = component("made", command, [("Machine", here, True), ("Versions", versions(), False)])
    sections.append(Section("made", "How it was made", "Given again, the command goes on where it was.", [made]))
    write_page(path, title=title, facts=facts, sections=sections)


def progress(done: "list[Tried]") -> Figure:
    """The score of every finished trial, and the best so far."""
    numbers = np.array([one.number for one in done])
    scores = np.array([one.score for one in done])
    with style():
        figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
        axes = figure.subplots()
        axes.step(numbers, np.maximum.accumulate(scores), where="post", color=COLOURS[1], lw=1.5, label="best so far")
        axes.plot(numbers, scores, "o", color=COLOURS[0], ms=5)
        for one in done:
            if not one.place:
                axes.axhline(one.score, color=MUTED, ls="--", lw=1, label="defaults")
        axes.set(xlabel="trial", ylabel="score")
        axes.legend(loc="lower right")
        figure.suptitle("Score by trial")
        parts.note(figure, "Dots above the dashed line are settings that score higher than the defaults.")
        figure.set_label(f"Scores of {len(done)} trials; best {scores.max():.2f} at trial {numbers[scores.argmax()]}.")
    return figure


def slices(done: "list[Tried]") -> Figure:
    """Score against each setting that was searched."""
    tried = [one for one in done if one.place]
    names = list(tried[0].place)
    scores = np.array([one.score for one in tried])
    across = 3
    down = -(-len(names) // across)
    with style():
        figure = Figure(figsize=(WIDTH, 0.6 + 2.0 * down), layout="constrained")
        panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
        for axes, name in zip(panels, names, strict=False):
            values = np.array([one.place[name] for one in tried])
            axes.plot(values, scores, "o", color=COLOURS[0], ms=4)
            axes.plot(values[scores.argmax()], scores.max(), "o", ms=9, mfc="none", mec=COLOURS[1], mew=2)
            axes.set(xscale="log", xlabel=name)
            ends = [values.min(), values.max()]
            axes.set_xticks(ends, [f"{end:.3g}" for end in ends])
            axes.set_xticks([], minor=True)
        for axes in panels[len(names) :]:
            axes.remove()
        figure.suptitle("Score by setting")
        parts.note(figure, "A slope or a hill in a panel: that setting matters. The ring is the best trial.")
        figure.set_label(f"{len(names)} scatter plots of score against {', '.join(names)}.")
    return figure
