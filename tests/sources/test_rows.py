import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.metrics import adjusted_rand_score

import prodsc
from prodsc.baselines.k_means import KMeansClusterer
from prodsc.errors import InputError
from prodsc.sources.arrays import matched_columns
from prodsc.sources.checks import check_values
from prodsc.sources.rows import RowReader, as_array, check_shape, column_names, column_scale
from prodsc.sources.stored import StoredRows

X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize(
    "given",
    [
        X,
        X.astype(np.float16),
        X.astype(np.float64),
        X.astype(int),
        X.tolist(),
        torch.from_numpy(X),
        torch.from_numpy(X).bfloat16(),
        torch.from_numpy(X).requires_grad_(),
        pd.DataFrame(X),
        pl.DataFrame(X),
        X.astype(object),
    ],
    ids=lambda g: f"{type(g).__module__}-{getattr(g, 'dtype', '')}",
)
def test_any_table_of_numbers(given):
    np.testing.assert_array_equal(as_array(given), X)


def test_a_path_and_a_memory_map_stay_on_disk(tmp_path):
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for given in (tmp_path / "X.npy", mapped):
        assert isinstance(as_array(given), StoredRows)
        np.testing.assert_array_equal(as_array(given), X)
    part = mapped[1:3]  # a view does not say where in the file it is
    assert as_array(part) is part
    changed = np.load(tmp_path / "X.npy", mmap_mode="c")  # nor need a private map agree with the file
    changed[0] = 9
    np.testing.assert_array_equal(as_array(changed)[0], 9)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (np.array([["a", "b"]]), "holds text"),
        (X + 1j, "Complex data not supported"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "takes numbers"),
    ],
)
def test_what_is_not_numbers(given, sentence):
    with pytest.raises(InputError, match=sentence):
        as_array(given)


@pytest.mark.parametrize(
    ("shape", "images", "sentence"),
    [
        ((), False, "single value"),
        ((5,), False, "Reshape your data"),
        ((4, 2, 2), False, r"Reshape it to \(4, 4\), or use encoder='conv'"),
        ((0, 3), False, r"0 sample\(s\)"),
        ((3, 0), False, r"0 feature\(s\)"),
        ((4, 9), True, "takes images"),
    ],
)
def test_shapes(shape, images, sentence):
    with pytest.raises(InputError, match=sentence):
        check_shape(np.zeros(shape), images)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bad_rows_are_counted_and_the_first_named(dtype):
    bad = np.ones((5000, 3), dtype=dtype)
    bad[[17, 4000], 1] = np.nan
    bad[18, 2] = np.inf
    with pytest.raises(InputError, match=r"3 rows with NaN or infinity \(inf\) \(first: row 17, NaN\)"):
        check_values(bad)


def test_bad_rows_beyond_the_first_chunk(monkeypatch):
    monkeypatch.setattr("prodsc.sources.checks.PIECE_SIZE", 16)
    bad = np.ones((100, 4))
    bad[73] = np.inf
    with pytest.raises(InputError, match=r"1 row with .* \(first: row 73, infinity\)"):
        check_values(bad)


def test_summary_over_chunks_is_that_of_the_whole(monkeypatch):
    monkeypatch.setattr("prodsc.sources.checks.PIECE_SIZE", 7 * 3)
    rng = np.random.default_rng(0)
    values = 1e4 + rng.standard_normal((100, 3))
    values[:, 1] = 5
    values[[40, 60]] = 0
    values[:, 1] = 0
    found = check_values(values)
    np.testing.assert_allclose(found.mean, values.mean(0))
    np.testing.assert_allclose(found.std, values.std(0))
    assert (found.n_constant, found.n_zero, found.first_zero) == (1, 2, 40)


def test_scalings():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((50, 3)) * [1, 10, 100] + 3
    summary = check_values(values)
    centre, spread = torch.from_numpy(summary.mean).float(), torch.from_numpy(summary.std).float()
    unit = RowReader(values, "unit")[np.arange(50)]
    torch.testing.assert_close(unit.norm(dim=1), torch.ones(50))
    centred = RowReader(values, "centred", centre, spread)[slice(0, 50)]
    torch.testing.assert_close(centred.norm(dim=1), torch.ones(50))
    around = torch.from_numpy(values).float() - centre
    torch.testing.assert_close(centred * around.norm(dim=1, keepdim=True), around)
    standard = RowReader(values, "standard", centre, spread)[slice(0, 50)]
    torch.testing.assert_close(standard.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(standard.std(0, correction=0), torch.ones(3), atol=1e-4, rtol=0)
    whole = RowReader(values, "global", centre, spread)[slice(0, 50)]
    torch.testing.assert_close(whole * float(around.square().mean().sqrt()), around)
    np.testing.assert_allclose(RowReader(values, "none")[slice(0, 2)], values[:2], rtol=1e-6)


def test_one_scale_for_all_columns_leaves_out_constant_ones():
    values = np.random.default_rng(0).standard_normal((50, 3)) * [1e-3, 1e-3, 0] + 3
    model = KMeansClusterer(2, scaling="global").fit(values)
    rows = model._reader(values)[slice(None)]
    assert float(rows[:, :2].square().mean()) == pytest.approx(1, rel=1e-2)
    assert (rows[:, 2] == 0).all()


@pytest.mark.parametrize("shape", [(2, 5, 6), (2, 5, 6, 3), (2, 3, 5, 6)])
def test_images_are_channels_first_and_bytes_become_fractions(shape):
    images = RowReader(np.full(shape, 255, dtype=np.uint8))[slice(0, 2)]
    assert images.shape == (2, 3 if len(shape) == 4 else 1, 5, 6)
    assert (images == 1).all()


def test_the_callers_array_is_left_alone():
    given = X.copy()
    batch = RowReader(given, "unit")[slice(0, 4)]
    batch.zero_()
    np.testing.assert_array_equal(given, X)


# ---- columns by name -------------------------------------------------------------------------------------------------

NAMES = ["a", "b", "c"]


def table_file(path, frame):
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path


def named_inputs(folder, names, values):
    frame = pd.DataFrame(values, columns=names)
    return {
        "pandas": frame,
        "polars": pl.DataFrame(values, schema=list(names)),
        "csv": table_file(folder / "table.csv", frame),
        "text path": str(table_file(folder / "other.csv", frame)),
        "parquet": table_file(folder / "table.parquet", frame),
    }


@pytest.mark.parametrize("kind", ["pandas", "polars", "csv", "text path", "parquet"])
def test_columns_are_named_and_put_in_order(tmp_path, kind):
    given = named_inputs(tmp_path, ["c", "a", "b"], X[:, [2, 0, 1]])[kind]
    assert column_names(given) == ["c", "a", "b"]
    np.testing.assert_array_equal(as_array(given), X[:, [2, 0, 1]])
    np.testing.assert_array_equal(as_array(given, columns=NAMES), X)


@pytest.mark.parametrize("kind", ["pandas", "polars", "csv", "parquet"])
@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["a", "b"], "fitted on, but it lacks c; rename or add"),
        (["a", "b", "z"], "3 columns that the model was fitted on, but it lacks c and also has z; rename"),
        (["a", "b", "c", "z"], r"but it also has z; drop them \(--drop\), or name the one with labels"),
    ],
)
def test_a_wrong_column_is_one_sentence(tmp_path, kind, names, sentence):
    given = named_inputs(tmp_path, names, np.ones((4, len(names)), np.float32))[kind]
    with pytest.raises(InputError, match=sentence) as caught:
        as_array(given, columns=NAMES)
    assert "\n" not in str(caught.value)


def test_a_column_that_appears_twice_cannot_be_matched():
    frame = pd.DataFrame(np.ones((2, 4)), columns=["a", "b", "c", "c"])
    with pytest.raises(InputError, match="the column c appears more than once"):
        as_array(frame, columns=NAMES)
    assert as_array(frame, columns=["a", "b", "c", "c"]).shape == (2, 4)  # but the very same names need no matching


@pytest.mark.parametrize(
    "given", [X, X.tolist(), torch.from_numpy(X), pd.DataFrame(X)], ids=["array", "list", "tensor", "numbered"]
)
def test_columns_without_names_are_taken_as_they_are(given):
    assert column_names(given) is None
    np.testing.assert_array_equal(as_array(given, columns=NAMES), X)


def test_names_of_two_types_are_refused():
    with pytest.raises(InputError, match="only 2 of 3 are text"):
        column_names(pd.DataFrame(X, columns=["a", "b", 3]))


def test_no_names_in_a_file_without_a_header_or_with_vectors(tmp_path):
    (tmp_path / "bare.csv").write_text("1.5,2\n3,4\n")
    assert column_names(tmp_path / "bare.csv") is None
    pl.DataFrame({"id": [1, 2], "vector": [[1.0, 2.0], [3.0, 4.0]]}).write_parquet(tmp_path / "vectors.parquet")
    assert column_names(tmp_path / "vectors.parquet") is None
    np.save(tmp_path / "X.npy", X)
    assert column_names(tmp_path / "X.npy") is None


def test_labels_in_a_file_are_no_column(tmp_path):
    path = table_file(tmp_path / "t.csv", pd.DataFrame(X, columns=NAMES).assign(label=["p", "q", "p", "q"]))
    assert column_names(path) == NAMES
    np.testing.assert_array_equal(as_array(path, columns=NAMES[::-1]), X[:, ::-1])


def test_rows_on_disk_are_reordered_when_they_are_read(tmp_path):
    np.save(tmp_path / "X.npy", X)
    stored = as_array(tmp_path / "X.npy")
    turned = matched_columns(stored, ["c", "a", "b"], NAMES)
    assert isinstance(turned, StoredRows)
    np.testing.assert_array_equal(turned, X[:, [1, 2, 0]])
    np.testing.assert_array_equal(turned[np.array([3, 0])], X[[3, 0]][:, [1, 2, 0]])
    np.testing.assert_array_equal(matched_columns(turned, NAMES, ["c", "a", "b"]), X)
    np.testing.assert_array_equal(stored, X)


# ---- numbers that float32 cannot hold --------------------------------------------------------------------------------


def clouds(mean, spread):
    """Three clouds of rows around a large mean, and their labels."""
    noise = np.random.default_rng(3)
    y = np.repeat([0, 1, 2], 40)
    return mean + spread * (4 * np.eye(3)[y] @ noise.normal(size=(3, 8)) + noise.normal(size=(120, 8))), y


@pytest.mark.parametrize("scaling", ["standard", "centred"])
@pytest.mark.parametrize(("mean", "spread"), [(1e8, 1.0), (-1e12, 10.0), (1e30, 1e26), (0.0, 1e40), (0.0, 1e-40)])
def test_scaling_keeps_the_spread_of_columns_with_a_large_mean(scaling, mean, spread):
    X, _ = clouds(mean, spread)
    rows = RowReader(X, scaling, *column_scale(check_values(X)))[slice(None)]
    assert rows.dtype == torch.float32
    expected = (X - X.mean(0)) / (X.std(0) if scaling == "standard" else spread)
    if scaling == "centred":
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(rows, expected, atol=1e-3 if mean == -1e12 else 1e-5)


def test_columns_of_a_large_mean_are_clustered_right():
    X, y = clouds(1e8, 1.0)
    for scaling in ("standard", "centred"):
        model = prodsc.make("k-means", n_clusters=3, scaling=scaling, random_state=0).fit(X)
        assert adjusted_rand_score(y, model.labels_) == 1.0
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_rows_that_a_scaling_makes_almost_the_same_are_told():
    X, _ = clouds(1e8, 1.0)
    for scaling in ("unit", "none"):
        with pytest.warns(UserWarning, match=rf"times as large as their spread.*scaling='{scaling}'"):
            prodsc.make("k-means", n_clusters=3, scaling=scaling, random_state=0).fit(X)
    prodsc.make("k-means", n_clusters=3, scaling="unit", random_state=0).fit(clouds(100.0, 1.0)[0])  # no warning


@pytest.mark.parametrize("factor", [1e20, 1e100, 1e-20, 1e-100])
def test_rows_of_extreme_length_get_unit_length(factor):
    X, _ = clouds(0.0, 1.0)
    expected = RowReader(X, "unit")[slice(None)]
    np.testing.assert_allclose(RowReader(X * factor, "unit")[slice(None)], expected, atol=1e-6)
    mixed = X * np.where(np.arange(len(X)) % 2, factor, 1.0)[:, None]
    np.testing.assert_allclose(RowReader(mixed, "unit")[slice(None)], expected, atol=1e-6)


def test_ordinary_columns_are_scaled_in_float32_as_ever():
    X, _ = clouds(100.0, 1.0)
    centre, spread = column_scale(check_values(X))
    assert centre.dtype == spread.dtype == torch.float32
    expected = (torch.from_numpy(X).float() - torch.from_numpy(X.mean(0)).float()) / torch.from_numpy(X.std(0)).float()
    torch.testing.assert_close(RowReader(X, "standard", centre, spread)[slice(None)], expected, rtol=0, atol=0)


def test_numbers_that_cannot_be_squared_are_refused():
    X, _ = clouds(0.0, 1.0)
    X[7, 2] = 1e300
    with pytest.raises(InputError, match=r"1 row with a number above 1e150 \(first: row 7\), which cannot be squared"):
        check_values(X)
    X[7, 3] = -1e300  # they cancel in the sum of the row
    with pytest.raises(InputError, match="above 1e150"):
        check_values(X)
    X[7, 2:4] = 1e40
    with pytest.raises(InputError, match="too large for scaling='none': float32 ends at 3e38"):
        RowReader(X, "none")[slice(None)]
