"""The published numbers are the paper's: every cell of its tables is read from the LaTeX and compared with the file."""

import re

import pytest

from conftest import SHARED_DATA
from prodsc.errors import InputError, ParameterError
from prodsc.paper.published import COLUMNS, PublishedNumber, parse, published, tables
from prodsc.runs import recipes

PAPER = SHARED_DATA.parent / "paper" / "pro-dsc-iclr2025.tex"
NO_RESULTS = {"table: datasets", "table configuration", "tab:hyper-param for reuters etal"}
MISPRINTS = {"66.7.0": "66.7"}
METHODS = {  # printed name -> ours, where lower case is not enough
    "SC": "spectral", "Spectral Clustering": "spectral", "SSCOMP": "ssc-omp", "DSCNet": "dsc-net",
    "Our PRO-DSC": "pro-dsc", "S^3COMP-C": "s3comp", "J-DSSC": "dssc", "A-DSSC": "dssc",
    "ARSSC-LP": "arssc", "ARSSC-LSP": "arssc", "ARSSC-MCP": "arssc",
}  # fmt: skip
DATASETS = {
    "CIFAR-10": "cifar10", "CIFAR-20": "cifar20", "CIFAR-100": "cifar100", "TinyImgNet-200": "tiny-imagenet",
    "ImgNetDogs-15": "imagenet-dogs", "ImageNet-1k": "imagenet-1k", "MNIST": "mnist", "F-MNIST": "fashion-mnist",
    "Flowers": "flowers", "REUTERS-10k": "reuters-10k", "UCI HAR": "uci-har", "EYale-B": "eyaleb", "ORL": "orl",
    "COIL-100": "coil100",
}  # fmt: skip
METRICS = {"ACC": "ACC", "NMI": "NMI", "Time": "seconds", "Memory": "MiB"}
TERMS = ("coding_rate", "self_expression", "block_diagonal", "l1", "frobenius", "nuclear")  # the ablation's columns


# --- a small reader of the paper's LaTeX ---


@pytest.fixture(scope="module")
def environments():
    """{label: (number, LaTeX)} of every table of the paper, numbered as LaTeX does."""
    if not PAPER.exists():
        pytest.skip(f"{PAPER.name} is not in {PAPER.parent}: the paper is not part of the project")
    source = re.sub(r"(?<!\\)%.*", "", PAPER.read_text(encoding="utf-8"))
    main, appendix = source.split(r"\appendix", 1)
    section_b = appendix.split(r"\section{Experimental Supplementary Material}", 1)[1]  # the counter restarts there
    assert r"\begin{table" not in appendix.removesuffix(section_b)
    found = {}
    for prefix, part in (("", main), ("B.", section_b)):
        for i, body in enumerate(re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", part, re.S), start=1):
            found[re.search(r"\\label\{(.*?)\}", body).group(1)] = (f"{prefix}{i}", body)
    return found


def grid(body):
    """The cells of a tabular as plain text; a cell over several columns is repeated."""
    tabular = re.search(r"\\begin\{tabular\}(.*)\\end\{tabular\}", body, re.S).group(1)
    tabular = re.sub(r"^\{.*?\}\s*\\toprule", "", tabular, flags=re.S)
    tabular = re.sub(r"\\(top|mid|bottom)rule|\\cmidrule\(lr\)\{.*?\}", "", tabular)
    rows = [[c for cell in re.split(r"(?<!\\)&", line) for c in spread(cell)] for line in tabular.split(r"\\")]
    return [row for row in rows if any(row)]


def spread(cell):
    wide = re.fullmatch(r"\s*\\multicolumn\{(\d+)\}\{.*?\}\{(.*)\}\s*", cell, re.S)
    return [plain(wide.group(2))] * int(wide.group(1)) if wide else [plain(cell)]


def plain(cell):
    cell = re.sub(r"~?\\cite[pt]?\{.*?\}|\\multirow\{\d\}\{\*\}|\\rotatebox\{\d+\}", "", cell)
    cell = cell.replace(r"\pm", "±").replace(r"\surd", "√")
    cell = re.sub(r"\\[a-zA-Z]+|[${}]", "", cell)  # the other commands only change the looks
    return " ".join(cell.split())


def numbers(cell):
    """(value, std, starred) as text; None for a cell without a number."""
    if cell in ("-", ""):
        return None
    if cell in ("OOM", "OOT"):
        return cell, "", False
    value, star, std = re.fullmatch(r"([\d.,]+)(\*?)(?: ?± ?([\d.]+))?", cell).groups()
    value = MISPRINTS.get(value, value).replace(",", "")
    return value, std or "", bool(star)


def method(name):
    return METHODS.get(name, name.lower())


def version(name):
    return f"version={name.replace('^', '')}" if METHODS.get(name) in ("s3comp", "dssc", "arssc") else ""


# Each layout gives (dataset, method, variant, metric, cell) of every cell below the headers.


def layout_by_method(rows):
    """Data sets over metrics in the head, a method per line: six of the tables."""
    heads, units, *body = rows
    for name, *cells in body:
        for dataset, unit, cell in zip(heads[1:], units[1:], cells, strict=True):
            if unit:  # the complexity of the cost table has none
                yield DATASETS[dataset], method(name), version(name), METRICS[unit], cell


def layout_byol(rows):
    for dataset, name, _, metric, cell in layout_by_method(rows):
        backbone = "resnet18" if dataset in ("cifar10", "cifar20") else "resnet34"
        yield dataset, name, f"backbone={backbone}" if name == "pro-dsc" else "", metric, cell


def layout_ablation(rows):
    heads, units, *body = rows
    for _, *cells in body:
        terms = "+".join(term for term, mark in zip(TERMS, cells, strict=False) if mark)
        for dataset, metric, cell in zip(heads[7:], units[7:], cells[6:], strict=True):
            yield DATASETS[dataset], "pro-dsc", f"terms={terms}", metric, cell


def layout_learned_features(rows):
    heads, clusterers, *body = rows
    for features, *cells in body:
        for dataset, name, cell in zip(heads[1:], clusterers[1:], cells, strict=True):
            yield DATASETS[dataset], method(name), f"features={features.lower()}", "ACC", cell


def layout_bdr_k(rows):
    for ks, accuracies, informations in (rows[:3], rows[3:]):
        for metric, *cells in (accuracies[1:], informations[1:]):
            for k, cell in zip(ks[2:], cells, strict=True):
                yield DATASETS[accuracies[0]], "pro-dsc", f"k={k}", metric, cell


def layout_encoders(rows):
    heads, units, *body = rows
    for encoder, backbone, *cells in body:
        features = f"features={encoder}-{backbone}".lower().replace(" ", "-").replace("/", "")
        for name, metric, cell in zip(heads[2:], units[2:], cells, strict=True):
            yield "imagenet-1k", method(name), features, metric, cell


LAYOUTS = {
    "byol": layout_byol, "ablation": layout_ablation, "learned-features": layout_learned_features,
    "bdr-k": layout_bdr_k, "encoders": layout_encoders,
}  # fmt: skip


def written(row):
    return row.failure or row.value, "" if row.std is None else row.std


def test_every_table_of_results_is_there(environments):
    labels = {row.label: row for row in published()}
    assert set(labels) == set(environments) - NO_RESULTS
    for label, row in labels.items():
        assert environments[label][0] == row.number


@pytest.mark.parametrize("table", tables())
def test_every_number_is_the_papers(table, environments):
    rows = published(table)
    printed = {}
    for *name, cell in LAYOUTS.get(table, layout_by_method)(grid(environments[rows[0].label][1])):
        if found := numbers(cell):
            value, std, _ = found
            assert tuple(name) not in printed
            printed[tuple(name)] = (value if value.startswith("OO") else float(value), float(std) if std else "")
    assert {(row.dataset, row.method, row.variant, row.metric): written(row) for row in rows} == printed


def test_stars_of_the_byol_table_are_the_runs(environments):
    rows = published("byol")
    cells = list(layout_byol(grid(environments[rows[0].label][1])))
    starred = {tuple(name) for *name, cell in cells if (found := numbers(cell)) and found[2]}
    runs = {(row.dataset, row.method, row.variant, row.metric) for row in rows if row.origin == "run"}
    assert len(starred) == 16
    assert runs == starred | {tuple(name) for *name, _ in cells if name[1] == "pro-dsc"}


def test_references_are_keys_of_the_paper(environments):
    source = PAPER.read_text(encoding="utf-8")
    keys = {key.strip() for group in re.findall(r"\\cite[a-z]*\{(.*?)\}", source) for key in group.split(",")}
    assert {row.reference for row in published() if row.reference} <= keys


# --- without the paper ---

# rows, sum of values, sum of stds: a changed digit shows even where the paper is absent
TOTALS = {
    "clip": (127, 8469.5, 8.8), "cost": (21, 52272.4, 0), "ablation": (42, 3116.9, 0), "byol": (94, 4234.8, 6.3),
    "learned-features": (48, 2594.1, 0), "out-of-domain": (24, 1970.7, 0), "bdr-k": (28, 2430.6, 0),
    "encoders": (16, 941.3, 0), "reuters-har": (34, 2197.0, 4.2), "faces-objects": (54, 4301.9, 5.4),
}  # fmt: skip


def test_totals():
    assert tables() == list(TOTALS)
    for table, total in TOTALS.items():
        rows = published(table)
        values, stds = (sum(getattr(row, name) or 0 for row in rows) for name in ("value", "std"))
        assert (len(rows), round(values, 1), round(stds, 1)) == total, table


@pytest.mark.parametrize(
    ("table", "dataset", "accuracy", "information"),
    [
        ("faces-objects", "orl", (83.2, 2.2), (92.7, 0.6)),
        ("faces-objects", "eyaleb", (96.0, 0.3), (95.7, 0.8)),
        ("faces-objects", "coil100", (82.8, 0.9), (95.0, 0.6)),
        ("reuters-har", "uci-har", (87.1, 0.4), (80.9, 1.2)),
        ("clip", "cifar10", (97.2, 0.2), (92.8, 0.4)),
    ],
)
def test_golden_numbers(table, dataset, accuracy, information):
    rows = published(table, dataset, "pro-dsc")
    assert [(row.metric, row.value, row.std) for row in rows] == [("ACC", *accuracy), ("NMI", *information)]
    assert {(row.unit, row.origin) for row in rows} == {("%", "run")}


def test_failures_have_no_value():
    (row,) = published("clip", "imagenet-1k", "dsc-net", "ACC")
    assert (row.failure, row.value, row.std) == ("OOM", None, None)
    (row,) = published("faces-objects", "coil100", "agcsc", "NMI")
    assert (row.failure, row.value, row.std) == ("OOT", None, None)


def test_origins():
    cited = {(row.table, row.method) for row in published() if row.origin == "cited"}
    assert {table for table, _ in cited} == {"clip", "byol", "reuters-har", "faces-objects"}
    assert {method for table, method in cited if table == "clip"} == {"temi"}
    assert {row.origin for row in published(method="pro-dsc")} == {"run"}
    assert {(row.table, row.method) for row in published() if not row.origin} == {("faces-objects", "agcsc")}


def test_data_sets_are_those_of_the_recipes():
    assert {row.dataset for row in published()} <= set(recipes.names())


def test_names_are_checked_and_combinations_are_free():
    assert published(dataset="orl", metric="seconds") == []
    assert {row.table for row in published(dataset="mnist")} == {"out-of-domain"}
    with pytest.raises(
        ParameterError, match=r"the table 'faces-object'; did you mean 'faces-objects'\? Known: clip, cost"
    ):
        published("faces-object")
    with pytest.raises(ParameterError, match=r"the metric 'acc'. Known: ACC, NMI, MiB, seconds"):
        published(metric="acc")
    with pytest.raises(ParameterError, match=r"did you mean 'pro-dsc'\?"):
        published(method="prodsc")


LINE = "t,1,l,orl,k-means,,ACC,%,57.0,,run,,"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            LINE.replace("57.0", "57.0.1"),
            "mine.csv, line 2: value must be a number of at least 0, OOM or OOT, got '57.0.1'",
        ),
        (LINE.replace("57.0", "nan"), "value must be a number"),
        (LINE.replace("57.0", "-1"), "value must be a number of at least 0"),
        (LINE.replace("57.0,", "57.0,x"), "std must be a number of at least 0, got 'x'"),
        (LINE.replace("57.0,", "OOM,1"), r"a failed run \(OOM\) has no std"),
        (LINE.replace("57.0", ""), "value is empty. Leave the whole row out"),
        (LINE.replace("orl", ""), "dataset is empty"),
        (LINE.replace("orl", " orl"), "dataset ' orl' begins or ends with a space"),
        (LINE.replace("ACC", "acc"), "metric must be one of ACC, NMI, seconds, MiB, got 'acc'"),
        (LINE.replace("%", "s"), "ACC is in %, got 's'"),
        (LINE.replace("run", "ran"), "origin must be run, cited or empty, got 'ran'"),
        (LINE + ",", "13 cells are needed, got 14"),
        (f"{LINE}\n{LINE}", "mine.csv, line 3: repeats line 2"),
        (LINE.replace("orl", '"orl'), "not valid CSV"),
    ],
)
def test_mistakes_speak(line, said):
    with pytest.raises(InputError, match=said):
        parse(f"{','.join(COLUMNS)}\n{line}\n", "mine.csv")


def test_header_is_checked():
    with pytest.raises(InputError, match=r"mine.csv: the header must be table,number,.* got value,table"):
        parse("value,table\n", "mine.csv")
    assert parse(f"{','.join(COLUMNS)}\n{LINE}\n", "mine.csv") == (
        PublishedNumber("t", "1", "l", "orl", "k-means", "", "ACC", "%", 57.0, None, "run", ""),
    )
