"""A fitted model on disk: model.safetensors (every tensor) and model.json (everything else). Never a pickle.

manifest.json has the digests of both. Models of version 0.1 have no manifest; model.json has the digest of the tensors.
"""

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from prodsc import files, manifest
from prodsc._version import __version__
from prodsc.choices import SCALINGS
from prodsc.core.graph import HeadPartition, Kernel, OutlierModel, Partition, References
from prodsc.errors import ModelFileError, ParameterError, ProdscError, reason_of
from prodsc.estimators.capabilities import Capability, can, method_of
from prodsc.estimators.parameters import check_parameters, current_names

if TYPE_CHECKING:
    from prodsc.estimators.base import Clusterer

MODEL_FORMAT = "prodsc-model"
MODEL_VERSION = 2
WITHOUT_MANIFEST = 1  # the format of version 0.1
TENSORS, ABOUT = "model.safetensors", "model.json"
OWN_ENCODER = "module"  # stands for a torch module of the user's in model.json

Model = TypeVar("Model", bound="Clusterer")


def plain_parameters(model: "Clusterer") -> dict[str, Any]:
    """The parameters by their flat names, as JSON can hold them."""
    return {name: _plain(value) for name, value in sorted(model.flat_params().items())}


def save(model: "Clusterer", folder: Path) -> None:
    tensors, facts = model._state()
    tensors |= {
        "input/centre": model.centre_,
        "input/spread": model.spread_,
        "labels": torch.from_numpy(model.labels_),
    }
    about = {
        "format": MODEL_FORMAT,
        "format_version": MODEL_VERSION,
        "prodsc_version": __version__,
        "estimator": type(model).__name__,
        "parameters": plain_parameters(model),
        "n_clusters": model.n_clusters_,
        "n_features_in": model.n_features_in_,
        "feature_names_in": getattr(model, "feature_names_in_", np.array([])).tolist() or None,
        "image_shape": model.image_shape_,
        "scaling": model.scaling_,
        "scaling_reason": model.scaling_reason_,
        "remarks": model.remarks_,
        "n_constant_features": model.n_constant_features_,
        "seed": model.seed_,
        "cluster_names": list(model.cluster_names_),
        "exemplars": [rows.tolist() for rows in model.exemplars_],
        **facts,
    }
    with manifest.replaced(folder) as path_of:
        files.write_tensors(path_of(TENSORS), tensors)
        files.write_json(path_of(ABOUT), about)


def load(cls: type[Model], folder: Path, encoder: nn.Module | None) -> Model:
    about = read_about(folder)
    if about["estimator"] != cls.__name__:
        raise ModelFileError(f"{folder} holds a {about['estimator']}, not a {cls.__name__}. Load it with that class.")
    _, tensors = files.read_tensors(_checked_tensors(folder, about))
    try:
        parameters = dict(about["parameters"])
        if parameters.get("encoder") == OWN_ENCODER:
            if encoder is None:
                raise ParameterError(
                    f"{folder} was fitted with an encoder of your own; give that module: load(path, encoder=module)."
                )
            parameters["encoder"] = encoder
        _check_facts(about, tensors)
        check_parameters(cls, current_names(parameters, str(folder)), str(folder))
        model = _restored(cls.from_flat(**parameters), tensors, about)
        _try_it(model)
        return model
    except ProdscError:
        raise
    except Exception as error:  # a model of version 0.1 that was changed by hand can fail anywhere
        if encoder is not None:
            raise
        raise ModelFileError(
            f"the model in {folder} is damaged ({type(error).__name__}: {reason_of(error)}). "
            "Copy the whole folder again from where it was saved."
        ) from error


def _checked_tensors(folder: Path, about: dict[str, Any]) -> Path:
    """The file of tensors, after its digest and that of model.json are checked."""
    if manifest.read_manifest(folder) is None and about["format_version"] == WITHOUT_MANIFEST:
        if not (folder / TENSORS).is_file() or files.sha256(folder / TENSORS) != about.get("sha256"):
            raise ModelFileError(
                f"{folder / TENSORS} is missing or damaged: it does not match the digest in {ABOUT}. "
                "Copy both files again from where the model was saved."
            )
        return folder / TENSORS
    if manifest.read_manifest(folder) is None:
        raise ModelFileError(
            f"{folder / manifest.MANIFEST} is missing. Copy the whole folder again from where the model was saved."
        )
    manifest.verified(folder, ABOUT)
    return manifest.verified(folder, TENSORS)


def _restored(model: Model, tensors: dict[str, Tensor], about: dict[str, Any]) -> Model:
    """The model with what it has learned."""
    model.n_clusters_ = about.get("n_clusters") or about["parameters"]["n_clusters"]  # older files: as it was given
    model.n_features_in_ = about["n_features_in"]
    if about["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
    model.image_shape_ = tuple(about["image_shape"]) if about["image_shape"] else None
    model.n_constant_features_ = about["n_constant_features"]
    model.scaling_ = about.get("scaling", model.scaling)  # older files: as it was given
    model.scaling_reason_ = str(about.get("scaling_reason", ""))
    model.remarks_ = list(map(str, about.get("remarks", [])))
    model.seed_ = about["seed"]
    model.centre_, model.spread_ = tensors["input/centre"], tensors["input/spread"]
    model.labels_ = tensors["labels"].numpy()
    unnamed = [f"cluster {cluster}" for cluster in range(model.n_clusters_)]
    model.cluster_names_ = list(map(str, about.get("cluster_names", unnamed)))  # not in older files
    model.exemplars_ = [np.array(rows, dtype=np.intp) for rows in about.get("exemplars", [[]] * model.n_clusters_)]
    model.device_ = _device_here(model)
    model._restore(tensors, about)
    return model


def _device_here(model: "Clusterer") -> torch.device:
    """The device of the fit, or the CPU if this machine does not have it."""
    try:
        return model._choose_device()
    except ParameterError:
        warnings.warn(f"the model was fitted on {model.device}, which is not here; the CPU is used.", stacklevel=6)
        return torch.device("cpu")


def _check_facts(about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Raise a ValueError if what model.json says of the rows cannot be."""
    d, names, shape = about["n_features_in"], about["feature_names_in"], about["image_shape"]
    if not isinstance(d, int) or tensors["input/centre"].shape != (d,) or tensors["input/spread"].shape != (d,):
        raise ValueError(f"the number of columns is {d!r:.20}, and the tensors have another")
    if names is not None and (len(names) != d or not all(isinstance(name, str) for name in names)):
        raise ValueError("the names of the columns are no texts, or too many or few")
    if shape and (not all(isinstance(length, int) and length > 0 for length in shape) or math.prod(shape) != d):
        raise ValueError("the shape of the images is not that of the columns")
    if about.get("scaling", SCALINGS[0]) not in SCALINGS:
        raise ValueError(f"the scaling is {about['scaling']!r:.20}, which is not one of {', '.join(SCALINGS)}")
    if tensors["labels"].ndim != 1 or tensors["labels"].is_floating_point():
        raise ValueError("the labels are no whole numbers")
    k = about.get("n_clusters") or about["parameters"]["n_clusters"]
    if not isinstance(k, int) or not 1 <= k <= max(len(tensors["labels"]), 1):
        raise ValueError(f"the number of clusters is {k!r:.20} for {len(tensors['labels'])} rows")


def _try_it(model: "Clusterer") -> None:
    """Label one row: what a damaged model cannot do is found when it is loaded, and not when it is used."""
    if not can(model, Capability.PREDICT):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = np.ones((1, *(model.image_shape_ or (model.n_features_in_,))), np.float32)
        method_of(model, Capability.PREDICT)(row)


def read_about(folder: Path) -> dict[str, Any]:
    """model.json, checked to be ours and not newer than we are."""
    path = folder / ABOUT
    try:
        with suppress(ModelFileError):  # the format is checked first, `load` checks the digests
            path = manifest.verified(folder, ABOUT)
        about = files.read_json(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelFileError(
            f"{folder} holds no saved model ({ABOUT} is not there). Name a folder made by save."
        ) from error
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged ({error}). Copy it again from where it was saved.") from error
    if not isinstance(about, dict) or about.get("format") != MODEL_FORMAT:
        raise ModelFileError(f"{path} is not a prodsc model. Name a folder made by save.")
    version = about.get("format_version")
    if not isinstance(version, int) or not isinstance(about.get("estimator"), str):
        raise ModelFileError(
            f"{path} is damaged: it has no format or no method. Copy it again from where it was saved."
        )
    if version > MODEL_VERSION:
        raise ModelFileError(
            f"{folder} was saved by prodsc {about.get('prodsc_version')} in format {version}; this is "
            f"prodsc {__version__}, which reads up to format {MODEL_VERSION}. Upgrade prodsc."
        )
    return about


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with prefix/, without it."""
    return {name.removeprefix(f"{prefix}/"): t for name, t in tensors.items() if name.startswith(f"{prefix}/")}


def training_state(network: nn.Module, history: dict[str, np.ndarray]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights and history; safetensors does not keep the order of names, so the columns are listed beside."""
    phases = sorted(set(history["phase"].tolist()))
    tensors = {f"network/{name}": value for name, value in network.state_dict().items()}
    for name, column in history.items():
        values = np.array([phases.index(p) for p in column]) if name == "phase" else column
        tensors[f"history/{name}"] = torch.from_numpy(values)
    return tensors, {"phases": phases, "history": list(history)}


def restore_history(tensors: dict[str, Tensor], facts: dict[str, Any]) -> dict[str, np.ndarray]:
    history = {name: tensors[f"history/{name}"].numpy() for name in facts["history"]}
    return history | {"phase": np.array(facts["phases"])[history["phase"]]}


def partition_state(partition: Partition | HeadPartition) -> tuple[dict[str, Tensor], dict[str, Any]]:
    if isinstance(partition, HeadPartition):
        tensors = {"partition/landmarks": partition.kernel.landmarks, "partition/order": partition.order}
        return tensors, {"temperature": partition.temperature}
    tensors = {
        "partition/landmarks": partition.kernel.landmarks,
        "partition/degrees": partition.degrees,
        "partition/directions": partition.directions,
        "partition/centres": partition.centres,
    }
    return tensors, {"variance": partition.variance, "inertia": partition.inertia}


def restore_partition(
    kernel: Callable[[Tensor], Kernel], tensors: dict[str, Tensor], facts: dict[str, Any], device: torch.device
) -> Partition:
    parts = {name: tensor.to(device) for name, tensor in under("partition", tensors).items()}
    return Partition(kernel(parts.pop("landmarks")), **parts, variance=facts["variance"], inertia=facts["inertia"])


def restore_head_partition(
    kernel: Callable[[Tensor], Kernel], tensors: dict[str, Tensor], facts: dict[str, Any], device: torch.device
) -> HeadPartition:
    parts = {name: tensor.to(device) for name, tensor in under("partition", tensors).items()}
    return HeadPartition(kernel(parts["landmarks"]), parts["order"], facts["temperature"])


def outlier_state(outliers: OutlierModel | None) -> dict[str, Tensor]:
    if outliers is None:
        return {}
    views = {"of_input": outliers.of_input, "of_points": outliers.of_points}
    of_views = {f"{view}/{name}": value for view, each in views.items() for name, value in vars(each).items()}
    plain = {name: getattr(outliers, name) for name in ("mean", "directions", "centre", "spread")}
    tensors = plain | of_views | {"quantiles": torch.from_numpy(outliers.quantiles)}
    return {f"outliers/{name}": value for name, value in tensors.items()}


def restore_outliers(tensors: dict[str, Tensor], device: torch.device) -> OutlierModel | None:
    parts = under("outliers", tensors)  # none in a model saved before there were such scores
    if not parts:
        return None
    quantiles = parts.pop("quantiles").numpy()
    parts = {name: tensor.to(device) for name, tensor in parts.items()}
    views = {view: References(**under(view, parts)) for view in ("of_input", "of_points")}
    plain = {name: tensor for name, tensor in parts.items() if "/" not in name}
    return OutlierModel(**plain, **views, quantiles=quantiles)  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, nn.Module):
        return OWN_ENCODER
    if isinstance(value, np.random.RandomState):
        return None  # the seed it gave is kept by itself
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple, np.ndarray)) else value
