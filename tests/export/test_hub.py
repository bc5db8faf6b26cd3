"""Models on a server that speaks the protocol of the Hugging Face Hub, on this machine."""

import re
import sys

import numpy as np
import pytest
from hub_server import serve

from conftest import SMALL
from prodsc import PRODSC, export, make
from prodsc.errors import InputError, MissingExtraError, ModelFileError, OutputError
from prodsc.export.hub import readme

pytestmark = pytest.mark.filterwarnings("default")  # warnings of huggingface_hub are its own
REPO = "me/wine-clusters"


@pytest.fixture(scope="module")
def model(blobs):
    return PRODSC.from_flat(3, **SMALL).fit(blobs[0])


@pytest.fixture
def hub(monkeypatch, tmp_path):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    with serve() as (address, held):
        yield {"endpoint": address, "token": "hf_test"}, held


def test_a_model_goes_up_and_comes_down(model, blobs, hub, tmp_path):
    where, held = hub
    address = export.push_to_hub(model, REPO, blobs[0], licence="cc-by-4.0", **where)
    assert address.startswith(f"{where['endpoint']}/{REPO}/commit/")
    assert set(held.files[REPO]) >= {"README.md", "manifest.json", "model.json", "model.safetensors"}
    assert held.private[REPO]
    assert held.tokens == {"Bearer hf_test"}
    again = export.from_hub(REPO, cache_dir=tmp_path, **where)
    assert type(again) is PRODSC
    np.testing.assert_array_equal(again.predict(blobs[0]), model.labels_)


def test_a_second_push_replaces_the_model(model, blobs, hub, tmp_path):
    where, _ = hub
    export.push_to_hub(make("k-means", n_clusters=3).fit(blobs[0]), REPO, blobs[0], **where)
    export.push_to_hub(model, REPO, blobs[0], **where)
    assert type(export.from_hub(REPO, cache_dir=tmp_path, **where)) is PRODSC


def test_only_the_files_of_a_model_are_downloaded(model, blobs, hub, tmp_path):
    where, held = hub
    export.push_to_hub(model, REPO, blobs[0], **where)
    held.files[REPO]["evil.py"] = b"raise SystemExit"
    export.from_hub(REPO, cache_dir=tmp_path, **where)
    assert not [*tmp_path.rglob("evil.py")]


def test_a_model_that_was_changed_on_the_server_is_refused(model, blobs, hub, tmp_path):
    where, held = hub
    export.push_to_hub(model, REPO, blobs[0], **where)
    content = bytearray(held.files[REPO]["model.safetensors"])
    content[-1] ^= 1
    held.files[REPO]["model.safetensors"] = bytes(content)
    with pytest.raises(ModelFileError, match="does not match its digest"):
        export.from_hub(REPO, cache_dir=tmp_path, **where)


def test_the_readme_is_the_card(model, blobs):
    text = readme(model, REPO, blobs[0], licence="mit")
    assert text.startswith("---\nlibrary_name: prodsc\n")
    assert "\nlicense: mit\n---\n" in text
    assert "# Model card" in text
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert f'model = export.from_hub("{REPO}")' in block
    assert "prodsc predict" not in text
    compile(block, "README.md", "exec")


def test_what_cannot_be_reached_is_one_sentence(model, blobs, hub, tmp_path):
    where, _ = hub
    with pytest.raises(ModelFileError, match=r"me/nothing could not be downloaded"):
        export.from_hub("me/nothing", cache_dir=tmp_path, **where)
    with pytest.raises(OutputError, match=r"could not be uploaded"):
        export.push_to_hub(model, REPO, blobs[0], endpoint="http://127.0.0.1:9", token="hf_test")
    with pytest.raises(InputError, match="must be 'user/name'; got 'name'"):
        export.from_hub("name")


def test_without_the_library_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'prodsc\[hub\]'"):
        export.from_hub(REPO)
