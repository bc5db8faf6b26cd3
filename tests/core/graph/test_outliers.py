"""Outlier scores against their definition, and their scale."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from prodsc import PRODSC
from prodsc.cli import main
from prodsc.core.graph import fit_outlier_model, sample_references, strangeness_quantiles
from prodsc.core.graph.outliers import N_NEIGHBOURS, make_references
from prodsc.errors import ModelFileError

FIT = {"hidden_size": 32, "n_components": 16, "warmup_steps": 10, "epochs": 20, "n_init": 3}


def cloud(n, d, seed):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)))


def _reference_factor(rows, x):
    """The local outlier factor by loops: sparsity around x over (the geometric mean of) that around its neighbours."""

    def nearest(point, skip=None):
        distances = [(float((row - point).norm()), j) for j, row in enumerate(rows) if j != skip]
        return sorted(distances)[:N_NEIGHBOURS]

    def sparsity(point, skip=None):
        near = nearest(point, skip)
        return np.log(np.mean([max(d, nearest(rows[j], j)[-1][0]) for d, j in near]))

    near = nearest(x)
    return sparsity(x) - np.mean([sparsity(rows[j], j) for _, j in near]), np.log(np.mean([d for d, _ in near]))


def test_the_factor_is_that_of_the_definition():
    rows, new = cloud(40, 3, 0), cloud(4, 3, 1)
    found = make_references(rows, torch.zeros(40).double()).measure(new, torch.zeros(4).double())
    expected = np.array([_reference_factor(rows, x) for x in new]).T
    np.testing.assert_allclose(torch.stack(found).numpy(), expected, rtol=1e-6)


def test_a_training_row_is_not_its_own_neighbour():
    rows = cloud(40, 3, 0)
    references = make_references(rows, torch.zeros(40).double())
    factor, _ = references.measure(rows[:5], torch.zeros(5).double())
    others = [torch.cat([rows[:i], rows[i + 1 :]]) for i in range(5)]
    expected = [np.log(np.mean([d for d, _ in _near(o, rows[i])])) for i, o in enumerate(others)]
    np.testing.assert_allclose(references.measure(rows[:5], torch.zeros(5).double())[1].numpy(), expected, rtol=1e-6)
    assert factor.isfinite().all()


def _near(rows, x):
    return sorted((float((row - x).norm()), j) for j, row in enumerate(rows))[:N_NEIGHBOURS]


def test_what_lies_outside_the_directions_counts():
    """300 rows near a plane of 2 of 200 dimensions, and one as far outside it as the others are inside."""
    rows = 0.01 * cloud(300, 200, 0)
    rows[:, :2] += cloud(300, 2, 1)
    strange = 0.01 * cloud(1, 200, 2)
    strange[0, 150] = 2.0
    model = fit_outlier_model(rows, rows[:, :2])
    usual = model.strangeness(rows, rows[:, :2])
    assert float(model.strangeness(strange, strange[:, :2])) > float(usual.max())


def test_many_copies_of_a_row_are_no_outliers_and_no_trouble():
    rows = torch.cat([cloud(100, 4, 0), torch.zeros(50, 4).double()])
    model = fit_outlier_model(rows, rows)
    strangeness = model.strangeness(rows, rows)
    assert strangeness.isfinite().all()
    assert strangeness[100:].median() <= strangeness[:100].median()


def test_each_row_is_scored_on_its_own():
    rows, new = cloud(200, 6, 0), cloud(30, 6, 1)
    model = fit_outlier_model(rows, rows[:, :3])
    together = model.strangeness(new, new[:, :3])
    alone = torch.cat([model.strangeness(x[None], x[None, :3]) for x in new])
    torch.testing.assert_close(together, alone, atol=1e-6, rtol=0)


def test_scores_are_shares_of_training_rows():
    strangeness = np.random.default_rng(0).gamma(2.0, size=500)
    model = replace(fit_outlier_model(cloud(30, 3, 0), cloud(30, 3, 0)), quantiles=strangeness_quantiles(strangeness))
    expected = np.array([(strangeness < r).mean() for r in strangeness])
    np.testing.assert_allclose(model.scores(strangeness), expected, atol=0.01)
    assert model.scores(np.array([-1.0, strangeness.max() + 1])).tolist() == [0.0, 1.0]


def test_a_sample_of_the_rows_are_references():
    assert sample_references(1024, 0).tolist() == list(range(1024))
    some = sample_references(3 * 2048, 0)
    assert len(set(some.tolist())) == 2048
    assert (np.diff(some) > 0).all()
    assert sample_references(3 * 2048, 1).tolist() != some.tolist()


@pytest.fixture(scope="module")
def fitted():
    """Three lines in 12 dimensions, and rows that are on none of them."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 60)
    X = np.eye(12)[y] * rng.choice([-1, 1], len(y))[:, None] + 0.1 * rng.standard_normal((len(y), 12))
    strange = np.eye(12)[rng.integers(3, 12, 40)] + 0.1 * rng.standard_normal((40, 12))
    return PRODSC.from_flat(3, **FIT).fit(X[::2]), X[1::2], strange, X[::2]


def test_strange_rows_have_high_scores(fitted):
    model, same, strange, X = fitted
    scores = model.outlier_score(np.vstack([same, strange]))
    assert roc_auc_score(np.repeat([0, 1], [len(same), len(strange)]), scores) > 0.9
    assert ((scores >= 0) & (scores <= 1)).all()
    np.testing.assert_allclose(model.outlier_score(X), model.outlier_score_, atol=1e-3)
    raw = model.outlier_score(strange, raw=True)
    assert raw.max() > model.outlier_score(X, raw=True).max()
    np.testing.assert_allclose([model.outlier_score(row[None], raw=True)[0] for row in strange], raw, rtol=1e-5)


def test_a_saved_model_keeps_its_scores(fitted, tmp_path):
    model, same, strange, _ = fitted
    model.save(tmp_path / "model")
    again = PRODSC.load(tmp_path / "model")
    np.testing.assert_allclose(again.outlier_score(strange), model.outlier_score(strange), atol=1e-3)
    np.savetxt(tmp_path / "new.csv", same, delimiter=",", header=",".join(f"x{i}" for i in range(12)), comments="")
    with pytest.raises(SystemExit):
        main(["predict", str(tmp_path / "model"), str(tmp_path / "new.csv"), "-o", str(tmp_path / "labels.csv")])
    written = np.genfromtxt(tmp_path / "labels.csv", delimiter=",", names=True)
    np.testing.assert_allclose(written["outlier"], model.outlier_score(same), atol=1e-3)
    again.labeller_ = replace(again.labeller_, outliers=None)  # as in a model of an older file
    assert [len(part) for part in again.labelled(same)] == [2]
    with pytest.raises(ModelFileError, match="saved before"):
        again.outlier_score(same)
    again.save(tmp_path / "old")
    np.testing.assert_array_equal(PRODSC.load(tmp_path / "old").predict(same), model.predict(same))
