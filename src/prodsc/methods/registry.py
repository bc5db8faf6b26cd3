"""Estimators by the name that a saved model carries."""

from pathlib import Path

from torch import nn

from prodsc.errors import ModelFileError
from prodsc.methods.model_file import read_about
from prodsc.methods.pro_dsc import PRODSC
from prodsc.methods.sedsc import SEDSC

ESTIMATORS: dict[str, type[PRODSC]] = {"PRODSC": PRODSC, "SEDSC": SEDSC}


def load(path: str | Path, *, encoder: nn.Module | None = None) -> PRODSC:
    """The model saved in a folder, whatever estimator it is."""
    name = read_about(Path(path))["estimator"]
    if name not in ESTIMATORS:
        raise ModelFileError(f"{path} holds a {name}, which this version of prodsc does not know. Upgrade prodsc.")
    return ESTIMATORS[name].load(path, encoder=encoder)
