"""A model as an ONNX file: onnxruntime gives the labels of `predict`, without torch."""

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

import prodsc
from prodsc import export
from prodsc.cli import main
from prodsc.errors import MissingExtraError, OutputError, ParameterError
from prodsc.registry import METHODS

SMALL = {
    "walk": {"steps": 20},
    "scan": {"epochs": 5, "self_label_epochs": 2},
    "turtle": {"steps": 20},
    "temi": {"epochs": 3, "warmup_epochs": 1},
    "edesc": {"pretrain_epochs": 5, "steps": 10},
}
needs_onnx = pytest.mark.skipif(
    not all(map(find_spec, ("onnx", "onnxscript", "onnxruntime"))),
    reason="the extra `onnx` and onnxruntime are not installed",
)


def fitted(name, X, **parameters):
    return prodsc.make(name, n_clusters=3, random_state=0, **SMALL[name], **parameters).fit(X)


def run(path, X):
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    dtype = {"tensor(float)": np.float32, "tensor(double)": np.float64}[session.get_inputs()[0].type]
    return session.run(["labels", "probabilities"], {"rows": np.asarray(X, dtype=dtype)})


def test_methods_that_label_by_a_network_are_these():
    assert {name for name, method in METHODS.items() if method.labels_by_network} >= set(SMALL)


@needs_onnx
@pytest.mark.parametrize("name", SMALL)
def test_onnxruntime_gives_the_same_labels(name, blobs, tmp_path):
    X = blobs[0]
    model = fitted(name, X)
    path = export.onnx(tmp_path / "model.onnx", model)
    for rows in (X, X[:1], -X[:7]):  # any number of rows, also rows that are far from the fitted ones
        labels, probabilities = run(path, rows)
        np.testing.assert_array_equal(labels, model.predict(rows))
        np.testing.assert_allclose(probabilities, model.predict_proba(rows), atol=1e-5)


@needs_onnx
@pytest.mark.parametrize("scaling", ["unit", "centred", "standard", "global", "none"])
def test_the_scaling_is_part_of_the_file(scaling, blobs, tmp_path):
    X = 5 + blobs[0] * np.linspace(0.1, 10, blobs[0].shape[1])
    model = fitted("turtle", X, scaling=scaling)
    labels, probabilities = run(export.onnx(tmp_path / "model.onnx", model), X)
    np.testing.assert_array_equal(labels, model.predict(X))
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-5)


@needs_onnx
def test_columns_that_float32_cannot_tell_apart_are_float64(blobs, tmp_path):
    X = 1e9 + blobs[0]
    model = fitted("turtle", X)
    np.testing.assert_array_equal(run(export.onnx(tmp_path / "model.onnx", model), X)[0], model.predict(X))


@needs_onnx
def test_the_file_says_what_it_is(blobs, tmp_path):
    import onnx

    model = fitted("turtle", blobs[0])
    about = {entry.key: entry.value for entry in onnx.load(export.onnx(tmp_path / "m.onnx", model)).metadata_props}
    assert about["estimator"] == "TURTLE"
    assert about["n_clusters"] == "3"
    assert json.loads(about["parameters"])["steps"] == 20


@needs_onnx
def test_it_labels_where_torch_is_not_installed(blobs, tmp_path):
    model = fitted("turtle", blobs[0])
    export.onnx(tmp_path / "model.onnx", model)
    np.save(tmp_path / "rows.npy", blobs[0].astype(np.float32))
    code = """if True:
        import sys
        sys.modules["torch"] = None  # importing it is an error
        import numpy as np, onnxruntime
        session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
        print(*session.run(["labels"], {"rows": np.load("rows.npy")})[0])
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [*map(int, done.stdout.split())] == model.labels_.tolist()


@needs_onnx
def test_the_command_writes_it_from_any_saved_model(blobs, tmp_path, capfd):
    model = fitted("turtle", blobs[0])
    model.save(tmp_path / "model")
    with pytest.raises(SystemExit) as exit_:
        main(["export", str(tmp_path / "model"), "--onnx", str(tmp_path / "model.onnx")])
    assert exit_.value.code == 0, capfd.readouterr().err
    np.testing.assert_array_equal(run(tmp_path / "model.onnx", blobs[0])[0], model.labels_)
    with pytest.raises(OutputError, match="exists"):
        export.onnx(tmp_path / "model.onnx", model)


def test_other_methods_say_that_they_cannot(blobs, tmp_path):
    model = prodsc.make("k-means", n_clusters=3).fit(blobs[0])
    with pytest.raises(ParameterError, match=r"KMeansClusterer does not\. Use walk"):
        export.onnx(tmp_path / "model.onnx", model)
    with pytest.raises(ParameterError, match="KMeansClusterer does not label rows by a network"):
        model.label_network()
    assert not [*tmp_path.iterdir()]


def test_without_the_library_one_sentence_says_how_to_get_it(blobs, tmp_path, monkeypatch):
    model = fitted("turtle", blobs[0])
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'prodsc\[onnx\]'"):
        export.onnx(tmp_path / "model.onnx", model)
