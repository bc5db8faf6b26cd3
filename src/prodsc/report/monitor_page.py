"""The page of `prodsc monitor`: whether new rows fit a model, the numbers and their bands, the rows to look at."""

from collections.abc import Sequence
from pathlib import Path

from prodsc.pro_dsc.monitoring import Monitoring, Reading
from prodsc.report.page import PageSection, PageTable, write_page

MEANINGS = {
    "share of outliers": "rows that are stranger than 95 % of the training rows",
    "mean residual": "what training rows leave unexpressed of a row",
    "coding rate": "how many directions the encoded rows take up",
    "share of new neighbours": "new rows among the 15 nearest rows, old and new, of a new row",
}


def write_monitor_page(path: Path, title: str, found: Monitoring, facts: dict[str, str], most_rows: int = 20) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
        The HTML file.
    title : str
        Title of the page.
    found : Monitoring
        What `monitor` found.
    facts : dict of str
        Shown under the title.
    most_rows : int
        Rows of a new group that are listed.
    """
    verdict = "ALARM: rows do not fit" if found.alarm else "rows fit"
    overall = [reading for reading in found.readings if reading.cluster is None]
    by_cluster = [reading for reading in found.readings if reading.cluster is not None]
    lead = (
        "A number outside of its band is an alarm. The bands come from the training rows, and are as wide as one false "
        f"alarm in {1 / found.false_alarms:.0f} batches asks for."
    )
    meanings = PageTable("What the numbers mean", ["number", "meaning"], [[*pair] for pair in MEANINGS.items()])
    sections = [PageSection("all", "All rows", lead, [_table("All rows", overall, found), meanings])]
    if found.groups:
        lead = "These rows lie together where the model has seen none. The method update makes a cluster of each group."
        groups = [
            [f"group {i}", f"{len(rows):,}", ", ".join(map(str, rows[:most_rows]))]
            for i, rows in enumerate(found.groups)
        ]
        table = PageTable("Groups of rows", ["group", "rows", "the first row numbers"], groups)
        sections.append(PageSection("new", "New kinds of rows", lead, [table]))
    lead = "Other sizes than at the fit are no alarm. A cluster with few rows, here or at the fit, is not tested."
    items = [_sizes(found), _table("Numbers by cluster", by_cluster, found)]
    sections.append(PageSection("clusters", "Clusters", lead, items))
    write_page(path, title=title, facts={"verdict": verdict, **facts}, sections=sections)


def _sizes(found: Monitoring) -> PageTable:
    shares = [*found.expected_shares, *[0.0] * (len(found.sizes) - len(found.expected_shares))]
    cells = [
        [f"{c} {found.names[c]}", f"{size:,}", f"{size / found.n_rows:.1%}", f"{share:.1%}", _note(found, c)]
        for c, (size, share) in enumerate(zip(found.sizes, shares, strict=True))
    ]
    return PageTable("Sizes", ["cluster", "rows", "share", "share at the fit", ""], cells)


def _note(found: Monitoring, cluster: int) -> str:
    return "vanished" if cluster in found.vanished else "new" if cluster in found.new_clusters else ""


def _table(caption: str, readings: Sequence[Reading], found: Monitoring) -> PageTable:
    cells = [
        [
            "all rows" if reading.cluster is None else f"{reading.cluster} {found.names[reading.cluster]}",
            reading.name,
            f"{reading.value:.4g}",
            f"{reading.low:.4g} to {reading.high:.4g}",
            "ALARM" if reading.alarm else "",
        ]
        for reading in sorted(readings, key=lambda reading: not reading.alarm)
    ]
    return PageTable(caption, ["rows", "number", "value", "band", ""], cells)
