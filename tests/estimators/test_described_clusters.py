"""What a fitted estimator says about its clusters: exemplars, names, a score, a report."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from prodsc import PRODSC, diagnose, estimate_k, load, make, open_source
from prodsc.core.metrics import ari
from prodsc.errors import InputError

QUICK = {"epochs": 5, "network": {"hidden_size": 32}, "n_components": 16, "scaling": "standard"}


@pytest.fixture(scope="module")
def table(blobs):
    return pd.DataFrame(blobs[0].astype(np.float32), columns=["age", "income", *"abcdefghij"])


@pytest.fixture(scope="module")
def model(table):
    return PRODSC(3, **QUICK).fit(table)


def test_exemplars_are_rows_of_their_cluster(model):
    assert [len(rows) for rows in model.exemplars_] == [8, 8, 8]
    for cluster, rows in enumerate(model.exemplars_):
        assert (model.labels_[rows] == cluster).all()


def test_names_come_from_columns_and_survive_a_file(model, tmp_path):
    assert all(name.startswith(("high ", "low ")) for name in model.cluster_names_)
    model.save(tmp_path)
    again = load(tmp_path)
    assert again.cluster_names_ == model.cluster_names_
    np.testing.assert_array_equal(again.exemplars_, model.exemplars_)


def test_names_come_from_texts_or_from_a_function(model, table, blobs):
    model = PRODSC(3, **QUICK).fit(table)
    words = np.array(["invoice refund", "login password", "parcel late"])[model.labels_]
    assert model.name_clusters(texts=list(words)) == ["invoice, refund", "login, password", "late, parcel"]
    heard = []
    named = model.name_clusters(table, texts=list(words), namer=lambda e: heard.append(e) or f"{e.size} rows")
    assert [len(e.texts) for e in heard] == [8, 8, 8]
    assert heard[1].keywords == ["login", "password"]
    assert heard[0].columns[0][0] in table.columns
    assert named[0] == f"{(model.labels_ == 0).sum()} rows"
    with pytest.raises(InputError, match="texts has 2 rows, and the model was fitted on 150"):
        model.name_clusters(texts=["a", "b"])


def test_numbered_columns_give_no_names(blobs):
    frame = pd.DataFrame(blobs[0], columns=[f"emb_{j}" for j in range(12)])
    assert PRODSC(3, **QUICK).fit(frame).cluster_names_ == ["cluster 0", "cluster 1", "cluster 2"]


def test_clusters_are_renamed(model, table, tmp_path):
    model = PRODSC(3, **QUICK).fit(table)
    old = list(model.cluster_names_)
    (tmp_path / "names.json").write_text(json.dumps({"names": {"1": "gold"}}))
    assert model.rename_clusters(tmp_path / "names.json").cluster_names_ == [old[0], "gold", old[2]]
    assert model.rename_clusters({0: "big"}).cluster_names_[:2] == ["big", "gold"]
    (tmp_path / "bad.json").write_text("{")
    for given, words in (
        ({7: "x"}, "there is no cluster '7'"),
        ({0: 3}, "must be text, got 3"),
        (tmp_path / "none.json", "does not exist"),
        (tmp_path / "bad.json", "is not JSON"),
    ):
        with pytest.raises(InputError, match=words):
            model.rename_clusters(given)


def test_a_search_of_scikit_learn_needs_no_scorer(blobs):
    X, y = blobs
    search = GridSearchCV(make("k-means", n_clusters=3), {"n_clusters": [2, 3]}, cv=2).fit(X)
    assert search.best_score_ <= 1
    model = make("k-means", n_clusters=3).fit(X)
    assert model.score(X, y) == pytest.approx(ari(y, model.labels_))
    assert model.score(X) > 0.8
    assert not hasattr(make("ssc-omp", n_clusters=3), "score")


def test_what_is_printed_is_a_short_table(model, table, blobs):
    assert repr(diagnose(model, table)).count("\n") < 12
    curve = estimate_k(blobs[0])
    assert repr(curve).count("\n") <= 7
    assert str(curve.k) in repr(curve)


def test_a_report_shows_and_saves_itself(table, blobs, tmp_path):
    table = table.assign(
        key=[f"K{i}" for i in range(150)], note=np.array(["late parcel", "lost key", "wet shoe"])[blobs[1]]
    )
    source = open_source(table, id="key", text="note")
    model = PRODSC(3, **QUICK).fit(source)
    report = model.report(source, columns={"town": np.array(["Graz"] * 150)})
    assert all(name.startswith(("key, lost", "late, parcel", "shoe, wet")) for name in report.names)
    path = report.save(tmp_path / "r.html")
    page = path.read_text()
    for word in ("K77", "late parcel", "key, lost", "town", "What was found"):
        assert word in page
    assert page.index('id="map"') < page.index('id="found"') < page.index('id="clusters"') < page.index('id="sound"')
    assert report._repr_html_().startswith("<iframe srcdoc=")
    assert len(repr(report)) < 100
    with pytest.raises(InputError, match="images has 1 images for 150 rows"):
        model.report(source, images=np.zeros((1, 4, 4)))
