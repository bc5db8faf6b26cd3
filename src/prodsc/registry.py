"""Methods by their name on the command line, and by the name of the class that a saved model carries."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn

from prodsc.baselines.closed_form import LRR, LSR
from prodsc.baselines.cpp import CPP
from prodsc.baselines.dsc_net import DSCNet
from prodsc.baselines.edesc import EDESC
from prodsc.baselines.evoc import EVoC
from prodsc.baselines.k_means import KMeansClusterer, SphericalKMeans
from prodsc.baselines.leiden import Leiden
from prodsc.baselines.mlc import MLC
from prodsc.baselines.scan import SCAN
from prodsc.baselines.senet import SENet
from prodsc.baselines.sparse import SSC, SSCOMP, EnSC
from prodsc.baselines.spectral import SpectralClusterer
from prodsc.baselines.temi import TEMI
from prodsc.baselines.turtle import TURTLE
from prodsc.baselines.umap_methods import UMAPGMM, UMAPHDBSCAN, UMAPKMeans
from prodsc.errors import ModelFileError, ParameterError, did_you_mean
from prodsc.estimators.base import Clusterer
from prodsc.estimators.model_file import read_about
from prodsc.estimators.parameters import current_names, parameters_of
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.pro_dsc.sedsc import SEDSC

METHODS: dict[str, type[Clusterer]] = {
    "k-means": KMeansClusterer,
    "spherical-k-means": SphericalKMeans,
    "spectral": SpectralClusterer,
    "ssc-omp": SSCOMP,
    "ensc": EnSC,
    "lsr": LSR,
    "ssc": SSC,
    "lrr": LRR,
    "sedsc": SEDSC,
    "pro-dsc": PRODSC,
    "cpp": CPP,
    "mlc": MLC,
    "temi": TEMI,
    "scan": SCAN,
    "turtle": TURTLE,
    "senet": SENet,
    "dsc-net": DSCNet,
    "edesc": EDESC,
    "umap-k-means": UMAPKMeans,
    "umap-gmm": UMAPGMM,
    "umap-hdbscan": UMAPHDBSCAN,
    "evoc": EVoC,
    "leiden": Leiden,
}


def method(name: str) -> type[Clusterer]:
    """Find a method by its name on the command line.

    Parameters
    ----------
    name : str
        For example "pro-dsc" or "k-means".

    Returns
    -------
    type
        The class of the estimator.
    """
    if name not in METHODS:
        raise ParameterError(
            f"there is no method '{name}'{did_you_mean(name, list(METHODS)) or '.'} Known: {', '.join(METHODS)}."
        )
    return METHODS[name]


def departures_of(names: Iterable[str]) -> dict[str, str]:
    """How the defaults of methods differ from their authors' settings; methods without a difference are left out.

    Parameters
    ----------
    names : iterable of str
        Names of methods; others are ignored.

    Returns
    -------
    dict of str to str
        A text by the name of the method, in the order of the names.
    """
    return {name: METHODS[name].departures for name in names if name in METHODS and METHODS[name].departures}


def make(name: str, **parameters: Any) -> Clusterer:
    """Make an estimator by the name of its method: `make("pro-dsc", n_clusters=10, beta=100)`.

    Parameters
    ----------
    name : str
        For example "pro-dsc" or "k-means".
    **parameters
        Parameters by their flat names.

    Returns
    -------
    Clusterer
        The estimator, not fitted.
    """
    known = [parameter.name for parameter in parameters_of(method(name))]
    parameters = current_names(parameters, name)
    for word in parameters:
        if word not in known:
            raise ParameterError(
                f"{name} has no parameter '{word}'{did_you_mean(word, known) or '.'} It has: {', '.join(known)}."
            )
    return METHODS[name].from_flat(**parameters)


def load(path: str | Path, *, encoder: nn.Module | None = None) -> Any:
    """Read a saved model of any method.

    Parameters
    ----------
    path : path
        The folder that `save` wrote.
    encoder : torch.nn.Module or None
        The encoder of your own that the model was fitted with, if it was.

    Returns
    -------
    Clusterer
        The fitted estimator.
    """
    name = read_about(Path(path))["estimator"]
    classes = {method.__name__: method for method in METHODS.values()}
    if name not in classes:
        raise ModelFileError(f"{path} holds a {name}, which this version of prodsc does not know. Upgrade prodsc.")
    return classes[name].load(path, encoder=encoder)
