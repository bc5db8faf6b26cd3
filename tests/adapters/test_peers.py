"""Round trips with other libraries, where they are installed: `make test-peers` installs those that can live together.

Each test gives the other library what a user would, lets it work, and compares what it holds with the fit.
"""

import json

import numpy as np
import pytest
from sklearn.cluster import HDBSCAN
from sklearn.pipeline import Pipeline

from conftest import SMALL
from prodsc import PRODSC, adapters, export
from prodsc.errors import InputError, MissingExtraError

pytestmark = pytest.mark.filterwarnings("default")  # warnings of other libraries are theirs

TOPICS = {
    "sea": "boat harbour wave sailor tide",
    "bread": "flour oven yeast dough crust",
    "music": "violin melody concert rhythm choir",
}


def clusterer(n_clusters=3):
    return PRODSC.from_flat(n_clusters, **SMALL)


@pytest.fixture(scope="module")
def texts():
    """90 short texts about three topics, 20-dimensional vectors of them, and their topics."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.standard_normal((3, 20))
    topics = np.repeat(np.arange(3), 30)
    words = [topic.split() for topic in TOPICS.values()]
    documents = [" ".join(rng.permutation(words[t])[:4]) + f" number{i}" for i, t in enumerate(topics)]
    return documents, (centres[topics] + rng.standard_normal((90, 20))).astype(np.float32), topics


def same_partition(a, b):
    return len({*zip(a, b, strict=True)}) == len({*a}) == len({*b})


def test_bertopic_takes_an_estimator_as_its_hdbscan_model(texts):
    bertopic = pytest.importorskip("bertopic")
    from bertopic.dimensionality import BaseDimensionalityReduction

    documents, X, topics = texts
    model = bertopic.BERTopic(
        umap_model=BaseDimensionalityReduction(), hdbscan_model=clusterer(), embedding_model=None, min_topic_size=2
    )
    found, _ = model.fit_transform(documents, embeddings=X)
    assert same_partition(found, topics)
    for topic, vocabulary in enumerate(TOPICS.values()):
        number = found[topics.tolist().index(topic)]
        assert {word for word, _ in model.get_topic(number)[:3]} <= set(vocabulary.split())
    new, _ = model.transform(documents[:5], embeddings=X[:5])
    assert list(new) == list(found[:5])


def test_toponymy_takes_layers(texts):
    pytest.importorskip("toponymy")
    from toponymy.clustering import ClusterLayerText

    documents, X, _ = texts
    layers, tree = adapters.ToponymyLayers(clusterer(6)).fit_predict(X[:, :2], X, ClusterLayerText)
    fine, coarse = (layer.cluster_labels for layer in layers)
    assert [len(set(fine)), len(set(coarse))] == [6, 3]
    for parent, children in tree.items():
        if parent[0] == 1:
            for layer, cluster in children:
                assert layer == 0
                assert set(coarse[fine == cluster]) == {parent[1]}
    np.testing.assert_allclose(layers[0].centroid_vectors[0], X[fine == 0].mean(0), atol=1e-4)
    exemplars, rows = layers[0].make_exemplar_texts(documents, X, method="central")
    assert [set(fine[each]) for each in rows] == [{c} for c in range(6)]
    assert exemplars[0][0] in documents


def test_datamapplot_draws_coordinates_and_layers(texts, tmp_path):
    datamapplot = pytest.importorskip("datamapplot")
    import matplotlib as mpl

    mpl.use("Agg")
    _, X, _ = texts
    mapped = adapters.data_map(clusterer(4).fit(X), X, names=["north", "south", "east", "west"])
    figure, _ = datamapplot.create_plot(mapped.coordinates, mapped.label_layers[0], force_matplotlib=True)
    written = " ".join(text.get_text() for axes in figure.axes for text in axes.texts)
    assert all(name in written for name in ("north", "south", "east", "west"))
    page = datamapplot.create_interactive_plot(mapped.coordinates, *mapped.label_layers)
    page.save(str(tmp_path / "map.html"))
    assert (tmp_path / "map.html").stat().st_size > 10_000


def test_embedding_atlas_opens_the_parquet_file(texts, tmp_path):
    pytest.importorskip("embedding_atlas")
    import pandas as pd
    from click.testing import CliRunner
    from embedding_atlas.cli import main

    documents, X, _ = texts
    path = tmp_path / "map.parquet"
    adapters.embedding_atlas(path, clusterer().fit(X), X, table=pd.DataFrame({"text": documents}))
    words = [path, "--x", "x", "--y", "y", "--neighbors", "neighbors", "--export-application", tmp_path / "site.zip"]
    done = CliRunner().invoke(main, [*map(str, words), "--text", "text", "--disable-projection"])
    assert done.exit_code == 0, done.output
    import zipfile

    site = zipfile.ZipFile(tmp_path / "site.zip")
    (stored,) = [name for name in site.namelist() if name.endswith("dataset.parquet")]
    with site.open(stored) as file:
        frame = pd.read_parquet(file)
    assert len(frame) == 90
    assert {"x", "y", "neighbors", "cluster", "confidence", "text"} <= set(frame.columns)
    assert len(frame["neighbors"][0]["ids"]) == 15


def test_cleanlab_finds_the_weak_group_by_cluster_ids(texts):
    cleanlab = pytest.importorskip("cleanlab")
    pytest.importorskip("datasets")
    _, X, topics = texts
    labels = clusterer().fit(X).labels_
    given = topics.copy()
    weak = np.flatnonzero(topics == 2)
    given[weak] = 0  # the labels of one group are wrong
    probabilities = np.eye(3)[topics] * 0.9 + 0.1 / 3
    lab = cleanlab.Datalab({"label": given.tolist()}, label_name="label", verbosity=0)
    lab.find_issues(pred_probs=probabilities, issue_types={"underperforming_group": {"cluster_ids": labels}})
    flagged = lab.get_issues("underperforming_group")["is_underperforming_group_issue"].to_numpy()
    assert (flagged == (topics == 2)).all()


def test_fiftyone_holds_the_clusters(texts):
    fiftyone = pytest.importorskip("fiftyone")
    _, X, _ = texts
    model = clusterer().fit(X)
    try:
        dataset = fiftyone.Dataset()
    except fiftyone.core.config.FiftyOneConfigError as error:
        pytest.skip(f"FiftyOne has no database here: {error}")
    try:
        dataset.add_samples([fiftyone.Sample(filepath=f"/images/{i}.jpg") for i in range(90)], progress=False)
        adapters.fiftyone(dataset, model.labels_, model.confidence_, names=["a", "b", "c"])
        assert dataset.values("cluster.label") == ["abc"[c] for c in model.labels_]
        np.testing.assert_allclose(dataset.values("cluster.confidence"), model.confidence_)
        assert dataset.count_values("cluster.label") == {"abc"[c]: int((model.labels_ == c).sum()) for c in range(3)}
    finally:
        dataset.delete()


class Samples(list):
    """As much of a FiftyOne data set as needs no database."""

    def set_values(self, field, values):
        for sample, value in zip(self, values, strict=True):
            sample[field] = value


def test_fiftyone_classifications_without_a_database():
    fiftyone = pytest.importorskip("fiftyone")
    samples = Samples({} for _ in range(3))
    adapters.fiftyone(samples, [1, -1, 0], [0.5, 0.1, 1.0], names=["a", "b"], field="group")
    assert samples[1]["group"] is None
    assert isinstance(samples[0]["group"], fiftyone.Classification)
    assert (samples[0]["group"].label, samples[0]["group"].confidence) == ("b", 0.5)
    with pytest.raises(InputError, match="there are 3 samples and labels of shape"):
        adapters.fiftyone(samples, [0, 1])


def test_label_studio_accepts_configuration_and_predictions(texts, tmp_path):
    sdk = pytest.importorskip("label_studio_sdk.label_interface")
    documents, X, _ = texts
    model = clusterer().fit(X)
    config = adapters.label_studio(tmp_path / "tasks.json", documents, model.labels_, model.confidence_)
    interface = sdk.LabelInterface(config)
    interface.validate()
    for task in json.loads((tmp_path / "tasks.json").read_text()):
        assert interface.validate_task({"data": task["data"]})
        (prediction,) = task["predictions"]
        assert interface.validate_prediction(prediction)


def test_latentscope_takes_the_cluster_column_of_an_exported_table(texts, tmp_path, monkeypatch):
    cluster = pytest.importorskip("latentscope.scripts.cluster")
    ingest = pytest.importorskip("latentscope.scripts.ingest")
    import pandas as pd

    documents, X, _ = texts
    model = clusterer().fit(X)
    monkeypatch.setenv("LATENT_SCOPE_DATA", str(tmp_path))
    (tmp_path / "topics" / "umaps").mkdir(parents=True)
    export.table(tmp_path / "labelled.parquet", pd.DataFrame({"text": documents}), model.labels_)
    ingest.ingest_file("topics", str(tmp_path / "labelled.parquet"), "text")
    places = adapters.data_map(model, X).coordinates
    pd.DataFrame(places, columns=["x", "y"]).to_parquet(tmp_path / "topics" / "umaps" / "umap-001.parquet")
    (tmp_path / "topics" / "umaps" / "umap-001.json").write_text(json.dumps({"embedding_id": "none"}))
    cluster.clusterer("topics", "umap-001", 5, 5, 0, "cluster", method="kmeans")
    stored = pd.read_parquet(tmp_path / "topics" / "clusters" / "cluster-001.parquet")
    assert (stored["cluster"] == model.labels_).all()


def test_a_pipeline_with_umap_before_and_hdbscan_after(texts):
    umap = pytest.importorskip("umap")
    _, X, topics = texts
    pipeline = Pipeline(
        [
            ("umap", umap.UMAP(n_components=5, random_state=0, n_jobs=1)),
            ("prodsc", clusterer()),
            ("hdbscan", HDBSCAN(min_cluster_size=10, copy=True)),
        ]
    )
    found = pipeline.fit_predict(X)
    assert same_partition(found[found >= 0], topics[found >= 0])
    assert (found >= 0).mean() > 0.8
    assert pipeline["prodsc"].n_features_in_ == 5
    assert pipeline["prodsc"].transform(pipeline["umap"].transform(X)).shape == (90, SMALL["n_components"])


def test_without_toponymy_one_sentence_says_how_to_get_it(texts, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "toponymy.clustering", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'prodsc\[toponymy\]'"):
        adapters.ToponymyLayers(clusterer()).fit(texts[1], texts[1])
