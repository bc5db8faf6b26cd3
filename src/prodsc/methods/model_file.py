"""A fitted model on disk: model.safetensors (every tensor) and model.json (everything else). Never a pickle."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from prodsc import files
from prodsc._version import __version__
from prodsc.errors import ModelFileError, ParameterError
from prodsc.graph import Partition
from prodsc.methods.building import build_network
from prodsc.training.checkpoint import read_safetensors

if TYPE_CHECKING:
    from prodsc.methods.pro_dsc import PRODSC

FORMAT = "prodsc-model"
VERSION = 1
TENSORS, ABOUT = "model.safetensors", "model.json"
OWN_ENCODER = "module"  # stands for a torch module of the user's in model.json

Model = TypeVar("Model", bound="PRODSC")


def plain_parameters(model: "PRODSC") -> dict[str, Any]:
    """The constructor's parameters as JSON can hold them."""
    return {name: _plain(value) for name, value in sorted(model.get_params(deep=False).items())}


def save(model: "PRODSC", folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.unwritable(folder, error) from error
    partition = model.partition_
    tensors: dict[str, Tensor] = {f"network/{name}": value for name, value in model.network_.state_dict().items()}
    tensors |= {
        "partition/landmarks": partition.kernel.landmarks,
        "partition/degrees": partition.degrees,
        "partition/directions": partition.directions,
        "partition/centres": partition.centres,
        "input/centre": model.centre_,
        "input/spread": model.spread_,
        "labels": torch.from_numpy(model.labels_),
    }
    phases = sorted(set(model.history_["phase"].tolist()))
    tensors |= {
        f"history/{name}": torch.from_numpy(np.array([phases.index(p) for p in column]) if name == "phase" else column)
        for name, column in model.history_.items()
    }
    about = {
        "format": FORMAT,
        "format_version": VERSION,
        "prodsc_version": __version__,
        "estimator": type(model).__name__,
        "parameters": plain_parameters(model),
        "n_features_in": model.n_features_in_,
        "feature_names_in": getattr(model, "feature_names_in_", np.array([])).tolist() or None,
        "image_shape": model.image_shape_,
        "n_constant_features": model.n_constant_features_,
        "seed": model.seed_,
        "gamma": model.gamma_,
        "variance": partition.variance,
        "inertia": partition.inertia,
        "phases": phases,
        "history": list(model.history_),  # safetensors does not keep the order
    }
    about["sha256"] = files.write_tensors(folder / TENSORS, tensors)
    files.write_json(folder / ABOUT, about)


def load(cls: type[Model], folder: Path, encoder: nn.Module | None) -> Model:
    about = read_about(folder)
    if about["estimator"] != cls.__name__:
        raise ModelFileError(f"{folder} holds a {about['estimator']}, not a {cls.__name__}. Load it with that class.")
    if not (folder / TENSORS).is_file() or files.sha256(folder / TENSORS) != about["sha256"]:
        raise ModelFileError(
            f"{folder / TENSORS} is missing or damaged: it does not match the checksum in {ABOUT}. "
            "Copy both files again from where the model was saved."
        )
    _, tensors = read_safetensors(folder / TENSORS)
    parameters = dict(about["parameters"])
    if parameters["encoder"] == OWN_ENCODER:
        if encoder is None:
            raise ParameterError(
                f"{folder} was fitted with an encoder of your own; give that module: load(path, encoder=module)."
            )
        parameters["encoder"] = encoder
    model = cls(**parameters)
    model.n_features_in_ = about["n_features_in"]
    if about["feature_names_in"] is not None:
        model.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
    model.image_shape_ = tuple(about["image_shape"]) if about["image_shape"] else None
    model.n_constant_features_ = about["n_constant_features"]
    model.seed_, model.gamma_ = about["seed"], about["gamma"]
    model.centre_, model.spread_ = tensors["input/centre"], tensors["input/spread"]
    model.labels_ = tensors["labels"].numpy()
    history = {name: tensors[f"history/{name}"].numpy() for name in about["history"]}
    model.history_ = history | {"phase": np.array(about["phases"])[history["phase"]]}
    model.device_ = model._device()
    sample = model._rows(np.ones((2, *(model.image_shape_ or (model.n_features_in_,)))))[slice(0, 2)]
    model.network_ = build_network(model, sample, model.seed_)
    model.network_.load_state_dict(_under("network", tensors))
    model.network_.to(model.device_).eval()
    parts = {name: tensor.to(model.device_) for name, tensor in _under("partition", tensors).items()}
    kernel = model._kernel(parts.pop("landmarks"))
    model.partition_ = Partition(kernel, **parts, variance=about["variance"], inertia=about["inertia"])
    return model


def read_about(folder: Path) -> dict[str, Any]:
    """model.json, checked to be ours and not newer than we are."""
    try:
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelFileError(
            f"{folder} holds no saved model ({ABOUT} is not there). Name a folder made by save."
        ) from error
    except (OSError, ValueError) as error:
        raise ModelFileError(
            f"{folder / ABOUT} is damaged ({error}). Copy it again from where it was saved."
        ) from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ModelFileError(f"{folder / ABOUT} is not a prodsc model. Name a folder made by save.")
    if about["format_version"] > VERSION:
        raise ModelFileError(
            f"{folder} was saved by prodsc {about['prodsc_version']} in format {about['format_version']}; this is "
            f"prodsc {__version__}, which reads up to format {VERSION}. Upgrade prodsc."
        )
    return about


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}/"): t for name, t in tensors.items() if name.startswith(f"{prefix}/")}


def _plain(value: Any) -> Any:
    if isinstance(value, nn.Module):
        return OWN_ENCODER
    if isinstance(value, np.random.RandomState):
        return None  # the seed it gave is kept by itself
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple, np.ndarray)) else value
