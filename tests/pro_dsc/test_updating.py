"""A model in use: alarms when rows do not fit, clusters for new kinds of rows, numbers that stay."""

import copy

import numpy as np
import pytest

import prodsc
from prodsc.errors import ModelFileError, ParameterError
from prodsc.pro_dsc.monitoring import OUTLIERS, encode

K, DIM = 4, 12


def rows(n, kinds, seed):
    """Rows around one of some directions, and which."""
    random = np.random.default_rng(seed)
    directions = np.linalg.qr(np.random.default_rng(99).normal(size=(DIM, DIM)))[0]
    y = random.choice(kinds, n)
    return (directions[y] + 0.08 * random.normal(size=(n, DIM))).astype(np.float32), y


@pytest.fixture(scope="module")
def fitted():
    X, y = rows(800, range(K), 0)
    model = prodsc.make("pro-dsc", n_clusters=K, random_state=0, epochs=5, hidden_size=64, n_components=16).fit(X)
    assert prodsc.metrics.accuracy(y, model.labels_) == 1.0
    return model, X


@pytest.fixture
def model(fitted):
    return copy.deepcopy(fitted[0])


def test_rows_like_those_of_the_fit_are_no_alarm(model):
    alarms = [prodsc.monitor(model, rows(300, range(K), seed)[0]).alarm for seed in range(20, 30)]
    assert sum(alarms) <= 1


def test_other_sizes_of_clusters_are_no_alarm_and_empty_ones_are_named(model):
    model.rename_clusters([f"kind {c}" for c in range(K)])
    found = prodsc.monitor(model, rows(300, [0, 0, 0, 1, 2], 31)[0])
    assert not found.alarm, found.summary()
    assert len(found.vanished) == 1
    assert f"(kind {found.vanished[0]}) has no rows" in found.summary()


def test_a_new_kind_becomes_a_cluster_and_old_rows_keep_theirs(model, fitted, tmp_path):
    X_old, before = fitted[1], model.predict(fitted[1])
    X, y = rows(500, range(K + 1), 41)
    found = model.update(X)
    assert found.alarm
    assert found.new_clusters == [K]
    assert (y[found.groups[0]] == K).mean() > 0.9
    labels = model.predict(X)
    assert (labels[y == K] == K).mean() > 0.9
    assert (labels[y < K] == K).mean() < 0.01
    assert (model.predict(X_old) == before).mean() >= 0.99
    assert model.predict_proba(X).shape == (500, K + 1)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(1), labels)
    assert model.cluster_names_[K] == f"cluster {K}"
    model.save(tmp_path / "updated")
    again = prodsc.load(tmp_path / "updated")
    np.testing.assert_array_equal(again.predict(X), labels)
    tomorrow = rows(500, range(K + 1), 42)[0]
    assert again.update(tomorrow).new_clusters == []  # it is known now
    assert again.n_clusters_ == K + 1


def test_a_cluster_that_comes_back_is_not_new(model):
    model.update(rows(500, [0, 1, 2, K], 51)[0])
    assert model.n_clusters_ == K + 1
    back = model.update(rows(500, range(K + 1), 52)[0])
    assert back.new_clusters == []


def test_rows_are_new_only_if_no_reference_knows_them(model):
    tomorrow, _ = rows(500, range(K + 1), 55)
    assert prodsc.monitor(model, tomorrow).groups
    model.references_.append(encode(model, rows(500, range(K + 1), 54)[0]))
    assert not prodsc.monitor(model, tomorrow).groups


def test_rows_that_are_known_to_fit_take_the_place_of_training_rows(model):
    X, _ = rows(400, range(K), 56)
    shift = 0.3 * np.random.default_rng(1).normal(size=DIM).astype(np.float32)
    assert prodsc.monitor(model, X + shift).alarm
    assert not prodsc.monitor(model, X + shift, reference=rows(600, range(K), 57)[0] + shift).alarm


def test_shifted_rows_are_an_alarm_and_no_new_cluster(model):
    X, _ = rows(400, range(K), 61)
    shift = 0.3 * np.random.default_rng(1).normal(size=DIM).astype(np.float32)
    found = model.update(X + shift)
    assert found.alarm
    assert found.new_clusters == []
    assert model.n_clusters_ == K


def test_noise_raises_the_share_of_outliers(model):
    X, _ = rows(400, range(K), 71)
    X[:100] = np.random.default_rng(2).normal(size=(100, DIM))
    found = prodsc.monitor(model, X)
    share = next(r for r in found.readings if r.name == OUTLIERS and r.cluster is None)
    assert share.alarm
    assert share.value > 0.15 > share.expected


def test_what_monitor_finds_is_json(model):
    import json

    found = model.update(rows(500, range(K + 1), 41)[0])
    content = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert content["alarm"] is True
    assert content["new_clusters"] == [K]
    assert sum(content["sizes"]) == content["n_rows"] == 500


def test_bad_requests_get_one_sentence(model, fitted):
    with pytest.raises(ParameterError, match="false_alarms"):
        prodsc.monitor(model, fitted[1], false_alarms=0.0)
    model.references_ = []
    with pytest.raises(ModelFileError, match="Fit it again"):
        prodsc.monitor(model, fitted[1])


def test_a_model_without_a_label_head_is_monitored_but_not_updated(fitted):
    X = fitted[1]
    spectral = prodsc.make("pro-dsc", n_clusters=K, start="warm-up", warmup_steps=5, epochs=3, hidden_size=16).fit(X)
    assert prodsc.monitor(spectral, X).n_rows == len(X)
    with pytest.raises(ParameterError, match="label head"):
        spectral.update(X)


# ---- align -----------------------------------------------------------------------------------------------------------


def test_a_refit_gets_the_numbers_and_names_of_the_older_model(model, fitted):
    X = fitted[1]
    model.rename_clusters([f"kind {c}" for c in range(K)])
    turned = copy.deepcopy(model)
    new = np.array([2, 0, 3, 1])
    from prodsc.pro_dsc.updating import renumber

    renumber(turned, new)
    np.testing.assert_array_equal(turned.predict(X), new[model.predict(X)])
    renamed = prodsc.align(turned, model, X)
    np.testing.assert_array_equal(renamed, np.argsort(new))
    np.testing.assert_array_equal(turned.predict(X), model.predict(X))
    np.testing.assert_array_equal(turned.labels_, model.labels_)
    assert turned.cluster_names_ == model.cluster_names_


def test_a_refit_with_more_clusters_gets_further_numbers(model, fitted):
    X, y = rows(900, range(K + 1), 81)
    refit = prodsc.make("pro-dsc", n_clusters=K + 1, random_state=1, epochs=5, hidden_size=64, n_components=16).fit(X)
    prodsc.align(refit, model, fitted[1])
    assert (refit.predict(fitted[1]) == model.predict(fitted[1])).mean() > 0.99
    assert (refit.predict(X)[y == K] == K).mean() > 0.99


def test_a_refit_with_fewer_clusters_keeps_the_lost_ones_by_name(model, fitted, tmp_path):
    X, _ = rows(700, range(K - 1), 91)
    refit = prodsc.make("pro-dsc", n_clusters=K - 1, random_state=1, epochs=5, hidden_size=64, n_components=16).fit(X)
    model.rename_clusters([f"kind {c}" for c in range(K)])
    prodsc.align(refit, model, X)
    assert refit.n_clusters_ == K
    assert refit.cluster_names_ == model.cluster_names_
    np.testing.assert_array_equal(refit.predict(X), model.predict(X))
    assert refit.predict_proba(X).shape == (700, K)
    refit.save(tmp_path / "aligned")
    np.testing.assert_array_equal(prodsc.load(tmp_path / "aligned").predict(X), refit.predict(X))
