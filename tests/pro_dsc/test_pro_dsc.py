"""The estimator as a user meets it."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from conftest import SMALL, union_of_subspaces
from prodsc import PRODSC, SEDSC
from prodsc.core import metrics, theory
from prodsc.errors import InputError, ModelFileError, ParameterError
from prodsc.pro_dsc import labeller as labelling
from prodsc.pro_dsc.defaults import AUTO_RULES
from prodsc.pro_dsc.options import LossOptions
from prodsc.training import Callback
from prodsc.training.guard import CollapseGuard
from prodsc.training.stopping import BestWeightsCallback


@pytest.fixture(scope="module")
def fitted(blobs):
    return PRODSC.from_flat(3, **SMALL).fit(blobs[0])


def test_finds_clear_groups_without_labels(blobs, fitted):
    X, y = blobs
    assert metrics.accuracy(y, fitted.labels_) > 0.95
    np.testing.assert_array_equal(np.bincount(fitted.labels_), sorted(np.bincount(fitted.labels_), reverse=True))
    np.testing.assert_array_equal(PRODSC.from_flat(3, **SMALL).fit(X, y[::-1]).labels_, fitted.labels_)  # y is ignored


def test_same_seed_same_labels_other_seed_other_weights(blobs, fitted):
    X, _ = blobs
    again, other = PRODSC.from_flat(3, **SMALL).fit(X), PRODSC.from_flat(3, **SMALL, random_state=1).fit(X)
    np.testing.assert_array_equal(again.labels_, fitted.labels_)
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
    assert not np.allclose(other.transform(X), fitted.transform(X))


def test_no_global_random_state_is_touched(blobs):
    torch_before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    PRODSC.from_flat(3, **SMALL).fit(blobs[0])
    assert torch.equal(torch_before, torch.random.get_rng_state())
    np.testing.assert_array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002


def test_predict_on_training_rows_and_on_new_rows_one_at_a_time(blobs, fitted):
    X, _ = blobs
    assert (fitted.predict(X) == fitted.labels_).mean() >= 0.999
    new = X + 0.1
    together = fitted.predict(new)
    np.testing.assert_array_equal(np.concatenate([fitted.predict(row[None]) for row in new]), together)
    np.testing.assert_array_equal(fitted.predict(new[::-1]), together[::-1])


def test_predict_never_makes_an_n_by_n_matrix(blobs, fitted, monkeypatch):
    """20 times the rows of training: the largest matrix has as many columns as there are landmarks."""
    widest = 0
    rows = type(fitted.partition_.kernel).rows

    def watched(self, Y):
        nonlocal widest
        found = rows(self, Y)
        widest = max(widest, *found.shape)
        return found

    monkeypatch.setattr(type(fitted.partition_.kernel), "rows", watched)
    labels = fitted.predict(np.tile(blobs[0], (20, 1)))
    assert widest <= 1024
    np.testing.assert_array_equal(labels, np.tile(fitted.labels_, 20))


def test_probabilities(blobs, fitted):
    p = fitted.predict_proba(blobs[0])
    assert p.shape == (150, 3)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(p.argmax(1), fitted.predict(blobs[0]))


def test_transform_gives_unit_rows_with_names(blobs, fitted):
    Z = fitted.transform(blobs[0])
    assert Z.shape == (150, SMALL["n_components"])
    np.testing.assert_allclose(np.linalg.norm(Z, axis=1), 1, rtol=1e-5)
    assert fitted.get_feature_names_out()[0] == "prodsc0"


def test_affinity_and_coefficients(blobs, fitted):
    X, y = blobs
    A, C = fitted.affinity(X), fitted.coefficients(X)
    assert A.shape == C.shape == (150, 150)
    assert (A >= 0).all()
    assert (np.diag(C) == 0).all()
    assert metrics.subspace_preserving_error(torch.from_numpy(C), y) < 40  # chance is 64


@pytest.mark.parametrize("kind", ["float16", "float32", "list", "tensor", "pandas", "polars", "memmap", "path"])
def test_inputs(kind, blobs, tmp_path):
    X = blobs[0].astype(np.float16)
    np.save(tmp_path / "X.npy", X)
    given = {
        "float16": X,
        "float32": X.astype(np.float32),
        "list": X.tolist(),
        "tensor": torch.from_numpy(X),
        "pandas": pd.DataFrame(X, columns=[f"c{i}" for i in range(12)]),
        "polars": pl.DataFrame(X.astype(np.float32), schema=[f"c{i}" for i in range(12)]),
        "memmap": np.load(tmp_path / "X.npy", mmap_mode="r"),
        "path": tmp_path / "X.npy",
    }[kind]
    model = PRODSC.from_flat(3, **SMALL).fit(given)
    np.testing.assert_array_equal(model.labels_, PRODSC.from_flat(3, **SMALL).fit(X.astype(np.float64)).labels_)
    np.testing.assert_array_equal(model.predict(given), model.labels_)
    assert hasattr(model, "feature_names_in_") == (kind in ("pandas", "polars"))


def test_inside_scikit_learn(blobs):
    X, y = blobs
    pipeline = make_pipeline(StandardScaler(), PRODSC.from_flat(3, **SMALL)).fit(X)
    assert metrics.accuracy(y, pipeline.predict(X)) > 0.9
    folds = StratifiedKFold(2)  # the rows are sorted by group
    grid = {"loss__eta": [0.1, 0.2], "n_components": [8]}
    search = GridSearchCV(PRODSC.from_flat(3, **SMALL), grid, scoring="adjusted_rand_score", cv=folds).fit(X, y)
    assert search.best_score_ > 0.5
    assert clone(PRODSC(3, loss=LossOptions(eta=0.3))).loss.eta == 0.3
    assert PRODSC(3, loss={"eta": 0.3}).set_params(loss__beta=5.0).flat_params()["beta"] == 5.0


# ---- the cases that break published code ---------------------------------------------------------------------------


def test_fewer_rows_than_a_batch_do_train(blobs):
    model = PRODSC.from_flat(3, **SMALL | {"batch_size": 4096}).fit(blobs[0])
    assert len(model.history_["step"]) == 10 + 20


def test_last_incomplete_batch_is_dropped(blobs):
    model = PRODSC.from_flat(3, **SMALL | {"batch_size": 40, "epochs": 2}).fit(blobs[0])
    assert (model.history_["phase"] == "joint").sum() == 2 * (150 // 40)


def test_more_clusters_than_a_batch_holds(blobs):
    with pytest.warns(UserWarning, match=r"batch_size=8 is not larger than n_clusters=10"):
        model = PRODSC.from_flat(10, **SMALL | {"batch_size": 8}).fit(blobs[0])
    assert np.isfinite(model.history_["total"]).all()


def test_as_many_clusters_as_rows():
    X = np.random.default_rng(0).standard_normal((6, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert len(PRODSC.from_flat(6, **SMALL).fit(X).labels_) == 6


def test_zero_warm_up_means_no_copy_either(blobs):
    model = PRODSC.from_flat(3, **SMALL | {"warmup_steps": 0, "epochs": 0}).fit(blobs[0])
    assert "warm-up" not in model.history_["phase"]
    assert not torch.allclose(model.network_.f.weight, model.network_.h.weight)
    copied = PRODSC.from_flat(3, **SMALL | {"warmup_steps": 1, "epochs": 0}).fit(blobs[0])
    assert torch.equal(copied.network_.f.weight, copied.network_.h.weight)


def test_separate_learning_rates_and_weight_decays(blobs):
    still = PRODSC.from_flat(3, **SMALL | {"warmup_steps": 0}, learning_rate_h=1e-12, weight_decay_h=0.0).fit(blobs[0])
    start = PRODSC.from_flat(3, **SMALL | {"warmup_steps": 0, "epochs": 0}).fit(blobs[0])
    torch.testing.assert_close(still.network_.h.weight, start.network_.h.weight)
    assert not torch.allclose(still.network_.f.weight, start.network_.f.weight)


@pytest.mark.parametrize("regulariser", ["block-diagonal", "l1", "frobenius", "nuclear", "none"])
@pytest.mark.parametrize("anti_collapse", ["coding-rate", "nuclear", "none"])
def test_every_list_of_terms_trains(regulariser, anti_collapse, blobs):
    model = PRODSC.from_flat(3, regulariser=regulariser, anti_collapse=anti_collapse, **SMALL | {"epochs": 3}).fit(
        blobs[0]
    )
    terms = set(model.history_) - {
        "phase",
        "epoch",
        "step",
        "total",
        *CollapseGuard.columns,
        *BestWeightsCallback.columns,
    }
    assert len(terms) == 1 + (regulariser != "none") + (anti_collapse != "none")
    assert np.isfinite(model.history_["self_expression"][-1])


@pytest.mark.parametrize("label_affinity", ["gram", "coefficients", "neighbours"])
@pytest.mark.parametrize(("normaliser", "half_steps"), [("softmax", 1), ("sinkhorn", 2), ("sinkhorn", 5)])
@pytest.mark.parametrize("form", ["symmetric", "directed"])
def test_every_variant_labels_training_rows_as_predict_does(label_affinity, normaliser, half_steps, form, blobs):
    variant = {"normaliser": normaliser, "half_steps": half_steps, "coefficient_form": form}
    model = PRODSC.from_flat(3, label_affinity=label_affinity, **variant, **SMALL).fit(blobs[0])
    assert (model.predict(blobs[0]) == model.labels_).mean() >= 0.999
    assert metrics.accuracy(blobs[1], model.labels_) > 0.9


def test_more_rows_than_landmarks(blobs, tmp_path):
    X, y = blobs
    model = PRODSC.from_flat(3, max_landmarks=60, **SMALL).fit(X)
    assert 50 <= len(model.partition_.kernel.landmarks) <= 60
    assert metrics.accuracy(y, model.labels_) > 0.95
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(PRODSC.load(tmp_path / "m").predict(X), model.labels_)
    exact = PRODSC.from_flat(3, **SMALL).fit(X)
    assert len(exact.partition_.kernel.landmarks) == len(X), "all rows are landmarks: labels are exact"
    assert (exact.labels_ == model.labels_).mean() > 0.98


def test_a_sample_is_clustered_where_there_are_many_rows(blobs, monkeypatch):
    """Landmarks of the sample tell its affinities; a sharp affinity has the landmarks alone."""
    X, y = blobs
    few_rows = replace(AUTO_RULES, clustered_rows=90, nystroem_landmarks=20, nystroem_landmarks_per_cluster=10)
    monkeypatch.setattr(PRODSC, "auto_rules", few_rows)
    clustered = []
    solve = labelling.spectral_partition

    def watched(kernel, *args, rows=None, **kwargs):
        clustered.append((len(kernel.landmarks), None if rows is None else len(rows)))
        return solve(kernel, *args, rows=rows, **kwargs)

    monkeypatch.setattr("prodsc.pro_dsc.labeller.spectral_partition", watched)
    few = {"max_landmarks": 60, "keep_weights": "last", **SMALL}
    for power, seen in ((1.0, (30, 90)), (2.0, (30, 90)), (4.0, (60, None))):
        model = PRODSC.from_flat(3, power=power, **few).fit(X)
        assert clustered[-1] == seen
        assert metrics.accuracy(y, model.labels_) > 0.95
    PRODSC.from_flat(3, power=1.0, label_affinity="coefficients", **few).fit(X)
    assert clustered[-1] == (60, None)
    known = np.where(np.arange(len(X)) < 5, y, -1)
    PRODSC.from_flat(3, power=1.0, **few).fit(X, known_labels=known)
    assert clustered[-1] == (60, None), "what is known is known of landmarks"


def test_landmarks_that_speak_for_near_rows_only_are_more(blobs, monkeypatch):
    X, y = blobs
    assert PRODSC.from_flat(3, **SMALL).fit(X).resolved_params_["max_landmarks"] == 2048
    assert PRODSC.from_flat(3, power=8.0, **SMALL).fit(X).resolved_params_["max_landmarks"] == 8192
    known = np.where(np.arange(len(X)) < 5, y, -1)
    assert PRODSC.from_flat(3, **SMALL).fit(X, known_labels=known).resolved_params_["max_landmarks"] == 8192
    monkeypatch.setattr(PRODSC, "auto_rules", replace(AUTO_RULES, dense_landmarks=60, dense_landmarks_per_cluster=1))
    assert len(PRODSC.from_flat(3, **SMALL).fit(X).partition_.kernel.landmarks) <= 60
    assert len(PRODSC.from_flat(3, **SMALL).fit(X, known_labels=known).partition_.kernel.landmarks) == len(X)


def test_power_that_is_settled_late_leaves_fewer_landmarks(blobs, monkeypatch):
    monkeypatch.setattr("prodsc.pro_dsc.labeller.choose_power", lambda labels, near, rules: 8.0)
    monkeypatch.setattr(PRODSC, "auto_rules", replace(AUTO_RULES, min_rows_per_cluster=10))
    model = PRODSC.from_flat(3, max_landmarks=100, **SMALL).fit(blobs[0])
    assert model.resolved_params_["power"] == 8
    assert len(model.partition_.kernel.landmarks) == 100
    assert PRODSC.from_flat(3, **SMALL).fit(blobs[0]).resolved_params_["max_landmarks"] == 8192


def test_sedsc_is_the_same_without_the_anti_collapse_term():
    X, _ = union_of_subspaces()
    healthy = PRODSC.from_flat(3, **SMALL | {"epochs": 200}).fit(X)
    collapsed = SEDSC.from_flat(3, on_collapse="ignore", **SMALL | {"epochs": 200}).fit(X)
    assert "coding_rate" not in collapsed.history_
    assert set(collapsed.history_["phase"]) == {"joint"}

    ranks = [float(theory.effective_rank(torch.from_numpy(m.transform(X)))) for m in (healthy, collapsed)]
    assert ranks[0] > 2 * ranks[1]


# ---- encoders ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pictures():
    digits = load_digits(n_class=3)
    return digits.images / 16, digits.target


def test_conv_is_pre_trained_on_reconstruction(pictures):
    X, y = pictures
    small = SMALL | {"channels": (4, 6), "kernel_sizes": (3, 3), "pretrain_epochs": 20, "pretrain_batch_size": 64}
    model = PRODSC.from_flat(3, encoder="conv", label_affinity="coefficients", **small).fit(X)
    curve = model.history_["reconstruction"][model.history_["phase"] == "pre-train"]
    assert len(curve) == 20 * (len(X) // 64)
    assert curve[-1] < 0.7 * curve[0]
    assert np.isnan(model.history_["reconstruction"][-1])
    assert metrics.accuracy(y, model.labels_) > 0.8
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    with pytest.raises(InputError, match=r"rows of shape \(4, 16\), the model was fitted on \(8, 8\)"):
        model.predict(X.reshape(-1, 4, 16))


def test_any_module_as_encoder(pictures):
    X, y = pictures
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.Tanh())
    before = module[1].weight.clone()
    model = PRODSC.from_flat(3, encoder=module, **SMALL).fit(X)
    assert torch.equal(module[1].weight, before)  # the caller's module is not ours to train
    assert metrics.accuracy(y, model.labels_) > 0.7
    flat = PRODSC.from_flat(3, encoder=nn.Linear(64, 20), **SMALL).fit(X.reshape(len(X), -1))
    assert flat.transform(X.reshape(len(X), -1)).shape == (len(X), 16)


def test_no_encoder_and_hidden_layers_in_the_heads():
    X, y = union_of_subspaces(n_classes=2, ambient=5)
    model = PRODSC.from_flat(2, encoder="none", head_hidden_size=40, **SMALL).fit(X)
    assert metrics.accuracy(y, model.labels_) > 0.8
    assert model.network_.f[0].in_features == 5


def test_conv_wants_one_kernel_per_layer(pictures):
    with pytest.raises(ParameterError, match="got 2 and 1"):
        PRODSC.from_flat(3, encoder="conv", channels=(3, 4), kernel_sizes=(3,)).fit(pictures[0])


# ---- bad input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gamma": -1}, r"gamma must be a number above 0 or 'auto', got -1"),
        ({"gamma": "big"}, "gamma must be"),
        ({"n_clusters": 0}, r"n_clusters must be a whole number of at least 1 or 'auto', got 0"),
        ({"n_clusters": 2.5}, "n_clusters must be a whole number"),
        ({"eta": 0}, "eta must be a number above 0"),
        ({"eta": float("nan")}, "eta must be a number above 0"),
        ({"beta": -2}, "beta must be a number of at least 0"),
        ({"momentum": 1}, r"momentum must be a number in \[0, 1\)"),
        ({"normaliser": "sinkhron"}, r"normaliser must be one of 'softmax', 'sinkhorn', got 'sinkhron'"),
        ({"regulariser": None}, "regulariser must be one of"),
        ({"channels": 3}, "channels must be a sequence"),
        ({"batch_size": True}, "batch_size must be"),
        ({"encoder": "vit"}, "encoder must be 'auto', 'mlp'"),
    ],
)
def test_parameters(change, sentence, blobs):
    with pytest.raises(ParameterError, match=sentence):
        PRODSC.from_flat(**{"n_clusters": 3} | change).fit(blobs[0])


def test_data(blobs):
    X, _ = blobs
    broken = X.copy()
    broken[[3, 9], 1] = np.nan
    with pytest.raises(InputError, match=r"2 rows with NaN.*first: row 3"):
        PRODSC.from_flat(3, **SMALL).fit(broken)
    with pytest.raises(InputError, match="fewer than n_clusters=200"):
        PRODSC.from_flat(200, **SMALL).fit(X)
    with pytest.raises(InputError, match="all 12 columns of X are constant"):
        PRODSC.from_flat(3, **SMALL).fit(np.ones((50, 12)))
    zero = X.copy()
    zero[7] = 0
    with pytest.raises(InputError, match=r"1 row of zeros only \(first: row 7\).*scaling='standard'"):
        PRODSC.from_flat(3, **SMALL).check(zero)
    with pytest.warns(UserWarning, match="1 row of zeros only"):
        PRODSC.from_flat(3, **SMALL).fit(zero)
    PRODSC.from_flat(3, scaling="standard", **SMALL).fit(zero)


def test_other_columns_at_predict(blobs, fitted):
    with pytest.raises(InputError, match="X has 13 features, but PRODSC is expecting 12 features"):
        fitted.predict(np.ones((4, 13)))
    broken = blobs[0].copy()
    broken[0, 0] = np.inf
    with pytest.raises(InputError, match="first: row 0, infinity"):
        fitted.predict(broken)


# ---- save and load -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variant",
    [{}, {"label_affinity": "coefficients"}, {"label_affinity": "neighbours"}, {"power": 3.0}, {"scaling": "standard"}],
)
def test_a_loaded_model_does_the_same(variant, blobs, tmp_path):
    X, _ = blobs
    model = PRODSC.from_flat(3, **variant, **SMALL).fit(pd.DataFrame(X, columns=[f"c{i}" for i in range(12)]))
    model.save(tmp_path / "m")
    loaded = PRODSC.load(tmp_path / "m")
    frame = pd.DataFrame(X + 0.2, columns=[f"c{i}" for i in range(12)])
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(loaded.transform(frame), model.transform(frame))
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    assert {n: v for n, v in loaded.get_params().items() if n not in ("channels", "kernel_sizes")} == {
        n: v for n, v in model.get_params().items() if n not in ("channels", "kernel_sizes")
    }
    for name, column in model.history_.items():
        np.testing.assert_array_equal(loaded.history_[name], column)
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == ["manifest.json", "model.json", "model.safetensors"]


def test_a_model_with_an_own_encoder_needs_it_again(pictures, tmp_path):
    X, _ = pictures
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 20), nn.Tanh())
    model = PRODSC.from_flat(3, encoder=module, **SMALL).fit(X)
    model.save(tmp_path)
    with pytest.raises(ParameterError, match="encoder of your own"):
        PRODSC.load(tmp_path)
    np.testing.assert_array_equal(PRODSC.load(tmp_path, encoder=module).predict(X), model.labels_)


def test_damaged_newer_and_foreign_models_are_refused(fitted, tmp_path):
    import json

    from prodsc import load

    with pytest.raises(ModelFileError, match="holds no saved model"):
        load(tmp_path)
    fitted.save(tmp_path)
    about = json.loads((tmp_path / "model.json").read_text())

    def rewritten(**change):
        (tmp_path / "model.json").write_text(json.dumps(about | change))
        return tmp_path

    with pytest.raises(ModelFileError, match=r"format 99.*Upgrade prodsc"):
        load(rewritten(format_version=99))
    with pytest.raises(ModelFileError, match="holds a FUTURE"):
        load(rewritten(estimator="FUTURE"))
    with pytest.raises(ModelFileError, match="holds a PRODSC, not a SEDSC"):
        SEDSC.load(rewritten())
    with pytest.raises(ModelFileError, match="not a prodsc model"):
        load(rewritten(format="other"))
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(ModelFileError, match="is damaged"):
        load(tmp_path)
    fitted.save(tmp_path)
    content = bytearray((tmp_path / "model.safetensors").read_bytes())
    content[-1] ^= 1  # one flipped bit
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelFileError, match="does not match its digest"):
        load(tmp_path)


# ---- checkpoints ---------------------------------------------------------------------------------------------------


class StopAt(Callback):
    def __init__(self, step):
        self.step = step

    def on_step(self, training):
        if training.current.name == "joint" and training.step == self.step:
            raise KeyboardInterrupt


def test_fit_goes_on_from_its_checkpoint(blobs, fitted, tmp_path, monkeypatch):
    X, _ = blobs
    monkeypatch.setattr("prodsc.training.checkpoint.SECONDS", 0.0)
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        PRODSC.from_flat(3, **SMALL).fit(X, checkpoint=path, callbacks=[StopAt(7)])
    resumed = PRODSC.from_flat(3, **SMALL).fit(X, checkpoint=path)
    np.testing.assert_array_equal(resumed.transform(X), fitted.transform(X))
    np.testing.assert_array_equal(resumed.labels_, fitted.labels_)
    np.testing.assert_array_equal(resumed.history_["total"], fitted.history_["total"])
    with pytest.raises(ModelFileError, match="another eta"):
        PRODSC.from_flat(3, eta=0.4, **SMALL).fit(X, checkpoint=path)
    with pytest.raises(ModelFileError, match="other data"):
        PRODSC.from_flat(3, **SMALL).fit(X + 1, checkpoint=path)


def test_scores_recover_subspaces():
    X, y = union_of_subspaces(n_per_class=100, dimension=3, ambient=30)
    labels = PRODSC.from_flat(3, **SMALL | {"epochs": 60}).fit_predict(X)
    assert adjusted_rand_score(y, labels) > 0.9


def test_the_encoder_may_move_more_slowly(blobs):
    """learning_rate_encoder is the encoder's alone: next to nothing leaves it where it was."""
    X, _ = blobs
    start = PRODSC.from_flat(3, **SMALL | {"epochs": 0, "warmup_steps": 0}).fit(X).network_
    slow = PRODSC.from_flat(3, **SMALL, learning_rate_encoder=1e-12, weight_decay=0.0).fit(X).network_
    torch.testing.assert_close(slow.encoder[0].weight, start.encoder[0].weight)
    assert not torch.allclose(slow.f.weight, start.f.weight)
