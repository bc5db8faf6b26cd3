"""Label Studio: clusters as predictions that people correct, and their corrections as known labels of the next fit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from prodsc import files
from prodsc._version import __version__
from prodsc.adapters.data_map import UNLABELLED, Names, cluster_names
from prodsc.errors import InputError
from prodsc.export.targets import check_target

KINDS = {"text": "Text", "image": "Image"}  # what a task shows -> the tag of Label Studio
CHOICE, OBJECT = "cluster", "shown"  # the names of the two tags in the configuration


def label_studio(
    path: str | Path,
    items: Sequence[str],
    labels: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    kind: str = "text",
    names: Names = None,
    force: bool = False,
) -> str:
    """Write tasks for Label Studio, each with its cluster as the prediction.

    Parameters
    ----------
    path : path
        The file to write, ending in .json. Import it into a project.
    items : sequence of str
        The text of each row, or the address of its image.
    labels : array of shape (n,)
        The cluster of each row; rows with a negative label get no prediction.
    confidence : array of shape (n,), optional
        Confidence of each label: Label Studio can show the least sure tasks first.
    kind : {"text", "image"}, default="text"
        What the items are.
    names : mapping or sequence of str, optional
        The name of each cluster.
    force : bool, default=False
        Replace an existing file.

    Returns
    -------
    str
        The labelling configuration of the project (XML).

    Raises
    ------
    InputError
        If there is not one label and one confidence for each item, or `kind` is not known.
    """
    target = check_target(path, (".json",), force)
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    clusters = np.asarray(labels)
    if clusters.shape != (len(items),) or clusters.dtype.kind not in "iu":
        raise InputError(f"labels must be one whole number for each of the {len(items)} items; got {clusters.shape}.")
    sure = None if confidence is None else np.asarray(confidence, dtype=np.float64)
    if sure is not None and sure.shape != clusters.shape:
        raise InputError(f"confidence must be one number for each of the {len(items)} items; got {sure.shape}.")
    named = cluster_names(clusters, names)
    tasks = []
    for row, (item, cluster) in enumerate(zip(items, clusters.tolist(), strict=True)):
        task: dict[str, Any] = {"data": {kind: str(item), "row": row}}
        if cluster >= 0:
            task["predictions"] = [_prediction(named[cluster], None if sure is None else float(sure[row]))]
        tasks.append(task)
    files.write_json(target, tasks)
    return _configuration(kind, named)


def read_label_studio(path: str | Path, names: Sequence[str] | None = None) -> dict[int, Any]:
    """Read what people chose, to be the `known_labels` of the next fit.

    Parameters
    ----------
    path : path
        A JSON file that a project of `label_studio` exported.
    names : sequence of str, optional
        Names in the order of their numbers; with it the labels are these numbers.

    Returns
    -------
    dict
        From row to the name (or number) that was chosen. Rows that nobody annotated are not in it, and of several
        annotations the last counts.

    Raises
    ------
    InputError
        If the file is not such an export.
    """
    chosen: dict[int, Any] = {}
    try:
        for task in files.read_json(path):
            for annotation in task.get("annotations", []):
                if annotation.get("was_cancelled"):
                    continue
                for result in annotation["result"]:
                    if result["type"] == "choices" and result["from_name"] == CHOICE:
                        (chosen[int(task["data"]["row"])],) = result["value"]["choices"]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"{path} is not an export of a project that `label_studio` configured ({type(error).__name__}: {error}). "
            "Export it as JSON."
        ) from error
    if names is None:
        return chosen
    numbers = {name: number for number, name in enumerate(names)}
    unknown = sorted({name for name in chosen.values() if name not in numbers})
    if unknown:
        raise InputError(f"{path} has the choice {unknown[0]!r}, which is not in names; add it to names.")
    return {row: numbers[name] for row, name in chosen.items()}


def _prediction(name: str, sure: float | None) -> dict[str, Any]:
    result = {"from_name": CHOICE, "to_name": OBJECT, "type": "choices", "value": {"choices": [name]}}
    prediction: dict[str, Any] = {"model_version": f"prodsc {__version__}", "result": [result]}
    return prediction if sure is None else prediction | {"score": sure}


def _configuration(kind: str, names: Sequence[str]) -> str:
    choices = "".join(f"    <Choice value={quoteattr(name)}/>\n" for name in (*names, UNLABELLED))
    return (
        f'<View>\n  <{KINDS[kind]} name="{OBJECT}" value="${kind}"/>\n'
        f'  <Choices name="{CHOICE}" toName="{OBJECT}" choice="single">\n{choices}  </Choices>\n</View>\n'
    )
