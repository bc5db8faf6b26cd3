"""Layers are nested, names are the user's, and files for other programs hold what the fit found."""

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pyarrow.parquet
import pytest

from conftest import SMALL
from prodsc import PRODSC, adapters, make
from prodsc.core.graph import nested_layers
from prodsc.errors import InputError, OutputError


@pytest.fixture(scope="module")
def fitted(blobs):
    return PRODSC.from_flat(3, **SMALL).fit(blobs[0])


@pytest.fixture(scope="module")
def pairs():
    """Eight groups of directions: two by two close, and these pairs in two halves."""
    rng = np.random.default_rng(0)
    axes = np.eye(16)
    centres = [axes[half] + 0.5 * axes[2 + 2 * half + pair] + 0.2 * axes[8 + c % 2]
               for c, (half, pair) in enumerate((h, p) for h in (0, 1) for p in (0, 1) for _ in (0, 1))]  # fmt: skip
    labels = np.repeat(np.arange(8), np.arange(20, 12, -1))
    return np.stack(centres)[labels] + 0.01 * rng.standard_normal((len(labels), 16)), labels


def test_layers_are_unions_of_close_clusters_and_halve_in_number(pairs):
    Z, labels = pairs
    fine, middle, coarse = nested_layers(Z, labels)
    assert (fine == labels).all()
    assert [len(set(layer)) for layer in (fine, middle, coarse)] == [8, 4, 2]
    for clusters, unions in ((fine, middle), (middle, coarse)):
        assert all(len(set(unions[clusters == c])) == 1 for c in set(clusters))
    assert (middle == labels // 2).all()  # the largest first
    assert (coarse == labels // 4).all()
    assert len(nested_layers(Z, labels, min_clusters=4)) == 2


def test_layers_do_not_depend_on_the_length_of_rows(pairs):
    Z, labels = pairs
    scaled = Z * np.random.default_rng(1).uniform(0.1, 10, (len(Z), 1))
    for layer, other in zip(nested_layers(Z, labels), nested_layers(scaled, labels), strict=True):
        assert (layer == other).all()


def test_rows_in_no_cluster_stay_in_none(pairs):
    Z, labels = pairs
    some = np.where(np.arange(len(labels)) % 7 == 0, -1, labels)
    layers = nested_layers(Z, some)
    assert all(((layer == -1) == (some == -1)).all() for layer in layers)
    assert len(nested_layers(Z, np.full(len(Z), -1))) == 1
    assert len(nested_layers(Z, np.zeros(len(Z), dtype=int))) == 1


def test_a_data_map_has_a_place_and_names_for_every_row(fitted, blobs):
    mapped = adapters.data_map(fitted, blobs[0], names=["red", "green", "blue"])
    assert mapped.coordinates.shape == (150, 2)
    assert np.isfinite(mapped.coordinates).all()
    assert (mapped.layers[0] == fitted.labels_).all()
    assert mapped.label_layers[0].tolist() == [["red", "green", "blue"][c] for c in fitted.labels_]
    np.testing.assert_allclose(mapped.confidence, fitted.confidence_, atol=1e-6)
    four = adapters.data_map(make("k-means", n_clusters=4).fit(blobs[0]), blobs[0], names={0: "big"})
    assert [len(set(layer)) for layer in four.label_layers] == [4, 2]
    assert "big" in four.label_layers[0]
    assert {name.rpartition(" and ")[2] for name in four.names[1]} <= {"1 more", "2 more", *four.names[0]}


def test_names_must_fit_the_clusters(fitted, blobs):
    with pytest.raises(InputError, match="names has 2 entries for 3 clusters"):
        adapters.data_map(fitted, blobs[0], names=["a", "b"])
    with pytest.raises(InputError, match="two clusters have the name 'a'"):
        adapters.data_map(fitted, blobs[0], names=["a", "a", "b"])


def test_a_method_without_predict_needs_the_rows_of_its_fit(blobs):
    model = make("ensc", n_clusters=3).fit(blobs[0])
    assert (adapters.data_map(model, blobs[0]).layers[0] == model.labels_).all()
    with pytest.raises(InputError, match="X has 10 rows for 150 labels"):
        adapters.data_map(model, blobs[0][:10])


def test_the_file_for_embedding_atlas(fitted, blobs, tmp_path):
    texts = {"text": [f"row {i}" for i in range(150)], "x": np.zeros(150)}
    import pandas as pd

    out = adapters.embedding_atlas(tmp_path / "map.parquet", fitted, blobs[0], table=pd.DataFrame(texts), n_neighbors=5)
    table = pyarrow.parquet.read_table(out)
    assert table.column_names == ["text", "x", "x_", "y", "cluster", "confidence", "neighbors"]
    assert table["cluster"].to_pylist() == [f"cluster {c}" for c in fitted.labels_]
    Z = fitted.transform(blobs[0]).astype(np.float64)
    for i in (0, 77, 149):
        near = table["neighbors"][i].as_py()
        cosines = Z @ Z[i]
        cosines[i] = -np.inf
        assert near["ids"] == np.argsort(-cosines)[:5].tolist()
        np.testing.assert_allclose(near["distances"], 1 - cosines[near["ids"]], atol=1e-5)
    with pytest.raises(OutputError, match="exists"):
        adapters.embedding_atlas(out, fitted, blobs[0])
    with pytest.raises(InputError, match="the table has 3 rows and X has 150"):
        adapters.embedding_atlas(tmp_path / "b.parquet", fitted, blobs[0], table=np.ones((3, 2)))


def test_tasks_of_label_studio_come_back_as_known_labels(tmp_path):
    names = ['<b> & "quotes"', "two"]
    config = adapters.label_studio(tmp_path / "t.json", ["a", "b", "c"], [0, 1, -1], [0.9, 0.5, 0.1], names=names)
    choices = [choice.get("value") for choice in ElementTree.fromstring(config).iter("Choice")]
    assert choices == [*names, "Unlabelled"]
    tasks = json.loads((tmp_path / "t.json").read_text())
    assert [task["data"] for task in tasks] == [{"text": t, "row": i} for i, t in enumerate("abc")]
    assert tasks[0]["predictions"][0]["score"] == 0.9
    assert "predictions" not in tasks[2]
    for task, chosen in zip(tasks, (1, 1, None), strict=True):
        result = task.get("predictions", [{"result": []}])[0]["result"]
        if chosen is not None:
            result[0]["value"]["choices"] = [names[chosen]]
            task["annotations"] = [{"result": result, "was_cancelled": False}]
    (tmp_path / "done.json").write_text(json.dumps(tasks))
    assert adapters.read_label_studio(tmp_path / "done.json") == {0: "two", 1: "two"}
    assert adapters.read_label_studio(tmp_path / "done.json", names) == {0: 1, 1: 1}
    with pytest.raises(InputError, match="which is not in names"):
        adapters.read_label_studio(tmp_path / "done.json", ["one"])
    (tmp_path / "other.json").write_text('{"a": 1}')
    with pytest.raises(InputError, match="is not an export of a project"):
        adapters.read_label_studio(tmp_path / "other.json")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"labels": [0]}, "labels must be one whole number for each of the 2 items"),
        ({"labels": [0.5, 1]}, "labels must be one whole number"),
        ({"labels": [0, 1], "confidence": [1.0]}, "confidence must be one number"),
        ({"labels": [0, 1], "kind": "audio"}, "kind must be one of text, image"),
    ],
)
def test_wrong_tasks_are_refused(tmp_path, arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        adapters.label_studio(tmp_path / "t.json", ["a", "b"], **arguments)
    assert not (tmp_path / "t.json").exists()
