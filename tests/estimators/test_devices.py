"""A device that torch does not know or this machine does not have is one sentence, before anything is done."""

import json

import numpy as np
import pytest
import torch

from prodsc import files, load, make, manifest
from prodsc.errors import ParameterError
from prodsc.extract import load_encoder

X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
MISSING = ["gpu", "meta", "cuda:99", "xla"]


@pytest.mark.parametrize("name", MISSING)
def test_a_device_that_is_not_here(name):
    with pytest.raises(ParameterError, match=rf"device='{name}' cannot be used on this machine .* Use 'auto' or 'cpu'"):
        make("k-means", n_clusters=2, device=name).fit(X)
    with pytest.raises(ParameterError, match="cannot be used on this machine"):
        make("pro-dsc", n_clusters=2, device=name).check(X)
    with pytest.raises(ParameterError, match="cannot be used on this machine"):
        load_encoder("efficientnet-lite0", device=name)


def test_a_model_of_another_machine_is_loaded_on_the_cpu(tmp_path):
    model = make("k-means", n_clusters=2).fit(X)
    model.save(tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())
    about["parameters"]["device"] = "cuda:99"
    with manifest.replaced(tmp_path) as path_of:
        files.write_json(path_of("model.json"), about)
    with pytest.warns(UserWarning, match="fitted on cuda:99, which is not here; the CPU is used"):
        loaded = load(tmp_path)
    assert loaded.device_ == torch.device("cpu")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
