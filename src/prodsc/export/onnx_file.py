"""A model as an ONNX file: `predict` and `predict_proba` without PyTorch, in any program that runs ONNX."""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from prodsc import files
from prodsc._version import __version__
from prodsc.errors import ParameterError, require
from prodsc.estimators.model_file import plain_parameters
from prodsc.export.targets import check_target

ONNX_SUFFIXES = (".onnx",)
INPUT, LABELS, PROBABILITIES = "rows", "labels", "probabilities"  # the names in the file


def onnx(path: str | Path, model: Any, *, force: bool = False) -> Path:
    """Write a model that labels rows by a network as an ONNX file.

    The file takes rows as `predict` does, of shape (n, n_features), and gives `labels` (int64, n) and `probabilities`
    (float32, n x n_clusters). The scaling of the rows is part of it. Rows are float32, or float64 where float32 would
    lose the differences between the fitted rows.

    Parameters
    ----------
    path : path
        The file to write, ending in .onnx.
    model : estimator
        A fitted model of a method that labels by a network, such as walk, scan, turtle, temi or edesc.
    force : bool, default=False
        Replace an existing file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ParameterError
        If the method does not label rows by a network.
    MissingExtraError
        If onnx or onnxscript is not installed (extra `onnx`).
    """
    path = check_target(path, ONNX_SUFFIXES, force)
    check_labels_by_network(model)
    for library in ("onnx", "onnxscript"):
        require(library, extra="onnx", caller="the export to ONNX")
    network = LabelsAndProbabilities(model.label_network()).eval()
    sample = torch.ones(2, *(model.image_shape_ or (model.n_features_in_,)), dtype=model.centre_.dtype)
    with _quiet(), torch.inference_mode(False):
        program = torch.onnx.export(
            network,
            (sample,),
            input_names=[INPUT],
            output_names=[LABELS, PROBABILITIES],
            dynamic_shapes=({0: torch.export.Dim("n")},),
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    program.model.metadata_props.update(_about(model))
    with files.atomic(path) as part:
        program.save(str(part))
    return path


def check_labels_by_network(model: Any) -> None:
    """Raise one sentence when the method of a model does not label rows by a network."""
    if not model.labels_by_network:
        raise ParameterError(
            f"the export to ONNX needs a method that labels rows by a network with one output for each cluster; "
            f"{type(model).__name__} does not. Use walk, scan, turtle, temi or edesc."
        )


class LabelsAndProbabilities(nn.Module):
    """Rows to labels and probabilities.

    Parameters
    ----------
    logits : nn.Module
        Rows to logits.
    """

    def __init__(self, logits: nn.Module):
        super().__init__()
        self.logits = logits

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Labels of shape (n,) and probabilities of shape (n, k)."""
        probabilities = torch.softmax(self.logits(X), dim=1)
        return probabilities.argmax(1), probabilities


def _about(model: Any) -> dict[str, str]:
    """What a reader of the file may want to know, as text."""
    names = getattr(model, "feature_names_in_", None)
    return {
        "prodsc_version": __version__,
        "estimator": type(model).__name__,
        "n_clusters": str(model.n_clusters_),
        "parameters": json.dumps(plain_parameters(model)),
        "feature_names": json.dumps(None if names is None else [str(name) for name in names]),
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's notes about libraries that are not installed and about its own future."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
