"""A model card in Markdown: data, method, diagnosis, scores, use, limits, parameters."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prodsc import files
from prodsc._version import __version__
from prodsc.core.metrics import scores
from prodsc.estimators.capabilities import Capability, can
from prodsc.estimators.model_file import plain_parameters
from prodsc.export.targets import check_target
from prodsc.pro_dsc.diagnosis import diagnose
from prodsc.sources.catalogue import SETS
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.rows import as_array
from prodsc.sources.source import RowsInput

CARD_SUFFIXES = (".md", ".markdown")
NO_LICENCE = "not stated: fill it in before you pass the model on; it may not be wider than that of the data allows"


def card(
    path: str | Path,
    model: Any,
    X: RowsInput,
    y: ArrayLike | None = None,
    *,
    title: str | None = None,
    licence: str | None = None,
    folder: str | Path = "run/",
    about: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Write the card of a fitted model.

    Parameters
    ----------
    path : path
        The file to write, ending in .md or .markdown.
    model : estimator
        A fitted model.
    X : array-like or path
        The rows it was fitted on.
    y : array of shape (n,), optional
        Known classes, only to score.
    title : str, optional
        Name of the data.
    licence : str, optional
        Licence of the model.
    folder : path, default="run/"
        Where a reader of the card finds the model.
    about : mapping, optional
        The result.json of a run; adds command, cost and versions.
    force : bool, default=False
        Replace an existing file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputError
        If the file exists or has another ending.
    """
    path = check_target(path, CARD_SUFFIXES, force)
    text = card_text(model, X, y, title=title, licence=licence, folder=folder, about=about)
    files.write_text(path, text.encode("utf-8", "replace").decode("utf-8"))
    return path


def card_text(
    model: Any,
    X: RowsInput,
    y: ArrayLike | None = None,
    *,
    title: str | None = None,
    licence: str | None = None,
    folder: str | Path = "run/",
    about: Mapping[str, Any] | None = None,
) -> str:
    """The card as Markdown; the parameters are those of `card`."""
    array, about = as_array(X), about or {}
    data = about.get("data", {})
    name = title or (Path(data["file"]).name if data else "a feature matrix")
    sizes = np.bincount(model.clusters_, minlength=model.n_clusters_)
    shape = " x ".join(f"{n:,}" for n in array.shape)
    kind = type(model).__name__
    used = about.get("used", {})
    facts = {
        "rows": f"{shape} ({array.dtype})",
        "source": code(data.get("file", "an array in memory")),
        "fingerprint of the rows": code(f"sha256 {data.get('fingerprint') or fingerprint(array)}"),
        "method": kind,
        "clusters": f"{len(sizes)}, of sizes {', '.join(map(str, sizes[:20]))}{', ...' if len(sizes) > 20 else ''}",
        "seed": str(used.get("seed", getattr(model, "seed_", "unknown"))),
        "licence": code(licence) if licence else NO_LICENCE,
    } | _known(str(data.get("file", "")))
    parts = [
        f"# Model card: clusters of {code(name)}",
        "Made by `prodsc export`. Labels were never used to find the clusters.",
        _table(("what", "value"), facts.items()),
        "## Is it sound?\n\n" + _sound(model, array),
        "## Scores\n\n" + _scores(model, y),
        "## How to use it\n\n" + _use(model, folder, array, about.get("versions", {}).get("prodsc", __version__)),
        "## Limits\n\n" + "\n".join(f"- {line}" for line in _limits(model, array)),
        "## Parameters\n\n" + _table(("parameter", "value"), _parameters(model)),
        "## How it was made\n\n" + _made(about),
    ]
    return "\n\n".join(parts) + "\n"


def code(text: object) -> str:
    """Untrusted text as a Markdown code span on one line; nothing in it is read as markup."""
    line = re.sub(r"\s+", " ", str(text)).strip() or " "
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def _known(file: str) -> dict[str, str]:
    """Source and licence of the data, when they are a named data set."""
    for about in SETS:
        if about.name == file or (Path(file).name,) in about.files:
            return {"data": code(about.title), "their source": code(about.source), "their licence": code(about.licence)}
    return {}


def _table(head: Sequence[str], rows: Any) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _sound(model: Any, array: np.ndarray) -> str:
    if not can(model, Capability.DIAGNOSE):
        return f"Not measured: `diagnose` is for PRO-DSC and SEDSC, and this is {type(model).__name__}."
    diagnosis = diagnose(model, array)
    rows = [(f.name, f"{f.value:.4g}", f.expected, f.meaning) for f in diagnosis.findings]
    plain = [[re.sub(r"([|<*_])", r"\\\1", cell) for cell in row] for row in rows]
    table = _table(("measured", "value", "expected", "what it is"), plain)
    said = "\n".join(f"- {sentence}" for sentence in diagnosis.sentences())
    return f"{said}\n\n{table}"


def _scores(model: Any, y: ArrayLike | None) -> str:
    if y is None:
        return "No classes are known for these rows, so the clusters cannot be scored; how sound the fit is, see above."
    known = scores(np.asarray(y), model.clusters_)
    line = ", ".join(f"{name} {value:.4f}" for name, value in known.items())
    return f"{line}, of one fit against known classes, which were used only for this."


def _use(model: Any, folder: str | Path, array: np.ndarray, version: str) -> str:
    columns = " x ".join(str(n) for n in array.shape[1:])
    place = re.sub(r"[\x00-\x1f`\"\\]", "_", str(folder))  # inside a block of code and a string
    new_rows = can(model, Capability.PREDICT)
    code_lines = ["from prodsc import load", "", f'model = load("{place}")']
    code_lines.append("model.predict(X_new)  # the cluster of each row" if new_rows else "model.labels_")
    if can(model, Capability.PROBABILITIES):
        code_lines.append("model.predict_proba(X_new).max(1)  # confidence")
    same = f"New rows must have the same {columns} columns, made in the same way (same encoder, same preparation)."
    sections = [
        same if new_rows else "The model holds the cluster of each row it was fitted on, and labels no other rows.",
        "```python\n" + "\n".join(code_lines) + "\n```",
        f'```console\n$ prodsc predict "{place}" new.npy -o labels.csv\n```' if new_rows else "",
        "The model is two files, `model.safetensors` and `model.json`; no pickle. "
        f"It is a {type(model).__name__} of prodsc {version}.",
    ]
    return "\n\n".join(filter(None, sections))


def _limits(model: Any, array: np.ndarray) -> list[str]:
    lines = [
        _about_k(model),
        "Every row gets a cluster, also a row that resembles none of them" + _see_also(model),
        *_about_confidence(model),
        "Clusters reflect the input columns. They are not classes of people or things, and groups that the input "
        "describes poorly are clustered poorly: check border cases before you base a decision on them.",
    ]
    partition = getattr(model, "partition_", None)
    landmarks = len(array) if partition is None else len(partition.kernel.landmarks)
    if len(array) > landmarks:
        lines.append(
            f"Labels use the affinities of all {len(array):,} rows with {landmarks:,} of them: an approximation "
            "of exact spectral clustering."
        )
    if not can(model, Capability.PREDICT):
        lines.append("This method cannot label new rows.")
    return lines


def _see_also(model: Any) -> str:
    """Where a reader finds out which rows fit badly."""
    if can(model, Capability.OUTLIER_SCORE):
        return "; see `outlier_score` and the confidence."
    return "; see the confidence." if can(model, Capability.PROBABILITIES) else "."


def _about_confidence(model: Any) -> list[str]:
    if can(model, Capability.OUTLIER_SCORE):  # methods of the PRO-DSC family calibrate their probabilities
        return [
            "Confidence is calibrated without classes, by how often neighbouring rows share a cluster. It stays too "
            "high where a class was split or two were merged."
        ]
    return ["Confidence is not calibrated."] if can(model, Capability.PROBABILITIES) else []


def _about_k(model: Any) -> str:
    curve = model.k_curve_ if can(model, Capability.K_CURVE) else None
    if curve is not None:
        return f"The number of clusters, {model.n_clusters_}, was estimated from the data ({curve.summary()})"
    return f"The number of clusters, {model.n_clusters_}, was given and not estimated from the data."


def _parameters(model: Any) -> list[tuple[str, str]]:
    given = [(name, code(value)) for name, value in plain_parameters(model).items()]
    return [*given, ("gamma at the end", f"{model.gamma_:.6g}")] if can(model, Capability.DIAGNOSE) else given


def _made(about: Mapping[str, Any]) -> str:
    if not about:
        return f"In Python, with prodsc {__version__}."
    versions = ", ".join(f"{name} {number}" for name, number in about.get("versions", {}).items())
    lines = [
        f"- command: {code(about.get('command') or 'not recorded')}",
        f"- recipe: {code(about['recipe'])}" if about.get("recipe") else "",
        f"- finished: {code(about.get('finished', 'not recorded'))}",
        f"- {about.get('seconds', 0):.0f} s, peak memory {about.get('peak_memory_mb', 0):.0f} MB",
        f"- versions: {code(versions)}",
        *(f"- note: {code(note)}" for note in about.get("notes", ())),
    ]
    return "\n".join(filter(None, lines))
