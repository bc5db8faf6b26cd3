"""Each format gives back values, types and labels; each bad file gives one sentence and never runs code."""

import pickle
import re
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse
import torch
from safetensors.torch import save_file

from prodsc.errors import InputError, MissingExtraError
from prodsc.sources.formats import OPENERS
from prodsc.sources.readers import read

DATA = Path(__file__).parents[2].parent / "shared" / "data"

rng = np.random.default_rng(0)
X = rng.normal(size=(12, 5)).astype(np.float32)
Y = np.array([7, 7, 3, 3, 3, 9, 9, 7, 3, 9, 9, 7])
CODES = np.array([1, 1, 0, 0, 0, 2, 2, 1, 0, 2, 2, 1])  # of 3, 7, 9


def frame(X=X, **more):
    return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]).assign(**more)


def save_mat73(path, **arrays):
    """What MATLAB's `save -v7.3` writes: 512 bytes of its own, then HDF5 with every array transposed."""
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_group("#refs#")
        for name, array in arrays.items():
            if array.size:
                file[name] = array.T
            else:
                file[name] = np.array(array.shape, np.uint64)
                file[name].attrs["MATLAB_empty"] = np.uint8(1)
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
    with path.open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")


def save_h5ad(path, X=X, y=Y, name="label", index="_index"):
    """What AnnData 0.8 and later write."""
    with h5py.File(path, "w") as file:
        if scipy.sparse.issparse(X):
            group = file.create_group("X")
            group.attrs.update({"encoding-type": f"{X.format}_matrix", "shape": X.shape})
            group["data"], group["indices"], group["indptr"] = X.data, X.indices, X.indptr
        else:
            file["X"] = X
        values, codes = np.unique(y, return_inverse=True)
        obs = file.create_group(f"obs/{name}")
        obs["codes"] = codes.astype(np.int8)
        obs["categories"] = [f"type {v}" for v in values]
        file["obs/_index"] = [f"cell {i}" for i in range(X.shape[0])]
        file["obs/batch"] = np.arange(X.shape[0]) % 2
        file["var/" + index] = [f"gene {j}" for j in range(X.shape[1])]
        file["var"].attrs["_index"] = index


def save_safetensors(path, X, y):
    save_file({"features": torch.tensor(X), "labels": torch.tensor(y)}, path)


WRITERS = {
    ".npz": lambda path, X, y: np.savez_compressed(path, X=X, y=y, split=np.zeros(len(X))),
    ".pt": lambda path, X, y: torch.save({"features": torch.tensor(X), "ys": torch.tensor(y)}, path),
    ".pth": lambda path, X, y: torch.save({"data": torch.tensor(X), "target": torch.tensor(y)}, path),
    ".safetensors": save_safetensors,
    ".parquet": lambda path, X, y: frame(X, label=y).to_parquet(path),
    ".csv": lambda path, X, y: frame(X, label=y).to_csv(path, index=False),
    ".tsv": lambda path, X, y: frame(X, y=y).to_csv(path, index=False, sep="\t"),
    ".mat": lambda path, X, y: scipy.io.savemat(path, {"fea": X, "gnd": y[:, None]}),
    ".h5ad": save_h5ad,
}


def refused(path, *sentence, labels=None):
    with pytest.raises(InputError) as caught:
        read(path, labels=labels)
    message = str(caught.value)
    assert "\n" not in message
    assert message[-1] in ".?"
    for part in sentence:
        assert re.search(part, message), message
    return message


# ---- every format round-trips ----------------------------------------------------------------------------------------


def test_every_suffix_is_tested():
    assert set(WRITERS) | {".npy"} == set(OPENERS)


@pytest.mark.parametrize("suffix", WRITERS)
def test_values_type_and_labels_come_back(suffix, tmp_path):
    path = tmp_path / f"file{suffix}"
    WRITERS[suffix](path, X, Y)
    found = read(str(path))
    assert found.path == path
    assert found.X.dtype == (np.float64 if suffix in (".csv", ".tsv") else np.float32)  # text has no type
    np.testing.assert_array_equal(found.X.astype(np.float32), X)
    assert found.y.dtype == np.int64
    np.testing.assert_array_equal(found.y, CODES)
    columns = {".parquet": "c{}", ".csv": "c{}", ".tsv": "c{}", ".h5ad": "gene {}"}.get(suffix)
    assert found.columns == (None if columns is None else [columns.format(j) for j in range(5)])


@pytest.mark.parametrize(
    ("suffix", "dtype"),
    [
        (suffix, dtype)
        for suffix in (".npz", ".pt", ".safetensors", ".mat", ".h5ad")
        for dtype in ("float16", "float64", "uint8", "int32")
        if (suffix, dtype) != (".mat", "float16")  # MATLAB has none
    ],
)
def test_types_of_arrays_are_kept(suffix, dtype, tmp_path):
    path, values = tmp_path / f"file{suffix}", (abs(X) * 50).astype(dtype)
    WRITERS[suffix](path, values, Y)
    found = read(path.rename(path.with_suffix(suffix.upper()))).X
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8", "bool"])
def test_npy_stays_a_memory_map(dtype, tmp_path):
    images = (rng.normal(size=(6, 4, 3)) * 20).astype(np.int8).astype(dtype)
    np.save(tmp_path / "X.npy", images)
    found = read(tmp_path / "X.npy")
    assert isinstance(found.X, np.memmap)
    assert not found.X.flags.writeable
    assert (found.X.dtype, found.y, found.columns) == (dtype, None, None)
    np.testing.assert_array_equal(found.X, images)


def test_types_that_torch_lacks_become_those_it_has(tmp_path):
    np.save(tmp_path / "swapped.npy", X.astype(">f4"))
    np.save(tmp_path / "long.npy", X.astype(np.longdouble))
    np.savez(tmp_path / "swapped.npz", X=X.astype(">f4"))
    for name, dtype in (("swapped.npy", "=f4"), ("long.npy", "=f8"), ("swapped.npz", "=f4")):
        found = read(tmp_path / name).X
        assert found.dtype == np.dtype(dtype)
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, X)


def test_npz_takes_the_known_name_or_the_only_matrix(tmp_path):
    np.savez(tmp_path / "known.npz", other=X[:, :2], embeddings=X, extra=X)
    np.testing.assert_array_equal(read(tmp_path / "known.npz").X, X)
    np.savez(tmp_path / "only.npz", clip=X, ids=np.arange(12), names=np.array(["a"] * 12), kind=np.zeros((12, 1)))
    np.testing.assert_array_equal(read(tmp_path / "only.npz").X, X)
    np.savez(tmp_path / "plain.npz", X)
    np.testing.assert_array_equal(read(tmp_path / "plain.npz").X, X)


def test_npz_of_half_floats_makes_no_wider_copy(tmp_path):
    big = np.zeros((2000, 1280), np.float16)
    np.savez_compressed(tmp_path / "big.npz", X=big, y=np.zeros(2000, np.int16))
    tracemalloc.start()
    try:
        read(tmp_path / "big.npz")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.5 * big.nbytes  # a float32 copy beside it would take 3 times as much, a float64 copy 5


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_npz_of_scipy_sparse_is_made_dense(form, tmp_path):
    scipy.sparse.save_npz(tmp_path / "X.npz", scipy.sparse.csr_matrix(X * (X > 0)).asformat(form))
    np.testing.assert_array_equal(read(tmp_path / "X.npz").X, X * (X > 0))


def test_torch_files_of_every_kind(tmp_path):
    for name, held in {
        "tensor": torch.tensor(X, requires_grad=True),
        "list": {"x": torch.tensor(X), "labels": Y.tolist()},
        "sparse": {"X": torch.tensor(X).to_sparse()},
        "slice": torch.tensor(np.hstack([X, X]))[:, :5],
    }.items():
        torch.save(held, tmp_path / f"{name}.pt")
        np.testing.assert_array_equal(read(tmp_path / f"{name}.pt").X, X)
    np.testing.assert_array_equal(read(tmp_path / "list.pt").y, CODES)
    torch.save(torch.tensor(X), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    np.testing.assert_array_equal(read(tmp_path / "old.pt").X, X)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_bfloat16_becomes_float32(suffix, tmp_path):
    held = {"features": torch.tensor(X).bfloat16()}
    path = tmp_path / f"half{suffix}"
    torch.save(held, path) if suffix == ".pt" else save_file(held, path)
    found = read(path).X
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, held["features"].float().numpy())


def test_torch_file_is_mapped_and_the_result_outlives_the_reader(tmp_path, monkeypatch):
    asked = {}
    load = torch.load
    monkeypatch.setattr(torch, "load", lambda *args, **options: asked.update(options) or load(*args, **options))
    torch.save({"features": torch.tensor(X), "ys": torch.tensor(Y)}, tmp_path / "f.pt")
    found = read(tmp_path / "f.pt")
    assert asked["mmap"] is True
    assert asked["weights_only"] is True
    (tmp_path / "f.pt").unlink()
    np.testing.assert_array_equal(found.X, X)


# ---- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "dtype"),
    [
        ({"a": "float32", "b": "float32"}, "float32"),
        ({"a": "float16", "b": "float16"}, "float16"),
        ({"a": "float32", "b": "float64"}, "float64"),
        ({"a": "uint8", "b": "bool"}, "float32"),
        ({"a": "float16", "b": "int8"}, "float32"),
        ({"a": "float32", "b": "int64"}, "float32"),
    ],
)
def test_parquet_uses_the_narrowest_float_that_is_exact(columns, dtype, tmp_path):
    table = pd.DataFrame({name: (abs(X[:, 0]) * 9).astype(kind) for name, kind in columns.items()})
    table.to_parquet(tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet").X
    assert found.dtype == dtype
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, table.to_numpy(dtype="float64"))


@pytest.mark.parametrize(("value", "dtype"), [(2**24, "float32"), (-(2**24) - 1, "float64"), (2**53 + 2, "float64")])
def test_parquet_integers_stay_exact(value, dtype, tmp_path):
    pd.DataFrame({"a": [1, value], "b": np.float32([1, 2])}).to_parquet(tmp_path / "t.parquet")
    found = read(tmp_path / "t.parquet").X
    assert found.dtype == dtype
    assert int(found[1, 0]) == value


def test_parquet_of_many_batches_and_row_groups(tmp_path):
    tall = np.arange(20_000 * 3, dtype=np.float32).reshape(-1, 3)
    table = pa.table({"a": tall[:, 0], "b": tall[:, 1], "c": tall[:, 2], "y": np.arange(20_000) % 7})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=6_000)
    found = read(tmp_path / "t.parquet")
    np.testing.assert_array_equal(found.X, tall)
    np.testing.assert_array_equal(found.y, np.arange(20_000) % 7)
    vectors = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(tall.ravel()), 3)})
    pq.write_table(vectors, tmp_path / "v.parquet", row_group_size=6_000)
    np.testing.assert_array_equal(read(tmp_path / "v.parquet").X, tall)


@pytest.mark.parametrize("kind", ["list", "large_list", "fixed", "polars"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8"])
def test_parquet_column_of_vectors(kind, dtype, tmp_path):
    path, values = tmp_path / "v.parquet", (abs(X) * 50).astype(dtype)
    if kind == "polars" and dtype != "float16":
        inner = pl.Float32 if dtype == "float32" else pl.UInt8
        vectors = pl.Series("vector", values.tolist(), dtype=pl.Array(inner, 5))
        pl.DataFrame({"id": range(12), "vector": vectors, "label": ["a", "b"] * 6}).write_parquet(path)
    else:
        inner = pa.from_numpy_dtype(np.dtype(dtype))
        kinds = {"list": pa.list_(inner), "large_list": pa.large_list(inner)}
        column = pa.array(list(values), type=kinds.get(kind, pa.list_(inner, 5)))
        pq.write_table(pa.table({"id": range(12), "vector": column, "label": ["a", "b"] * 6}), path)
    found = read(path)
    assert (found.X.dtype, found.columns) == (dtype, None)
    np.testing.assert_array_equal(found.X, values)
    np.testing.assert_array_equal(found.y, [0, 1] * 6)


def test_row_names_are_not_features(tmp_path):
    frame().set_index(pd.Index([f"row {i}" for i in range(12)], name="id")).to_parquet(tmp_path / "named.parquet")
    frame().sample(frac=1, random_state=0).to_parquet(tmp_path / "unnamed.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "unnamed.parquet").names
    frame().to_csv(tmp_path / "index.csv")
    for name in ("named.parquet", "unnamed.parquet", "index.csv"):
        found = read(tmp_path / name)
        assert found.columns == ["c0", "c1", "c2", "c3", "c4"]
        assert found.X.shape == (12, 5)


def test_missing_values_become_nan_for_another_module_to_judge(tmp_path):
    table = pa.table({"a": [1, None, 3], "b": [True, None, False], "c": pa.array([0.5, None, 2], pa.float32())})
    pq.write_table(table, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,b,c\n1,true,0.5\n,NA,\n3,false,2\n")
    expected = [[1, 1, 0.5], [np.nan] * 3, [3, 0, 2]]
    for name in ("t.parquet", "t.csv"):
        np.testing.assert_array_equal(read(tmp_path / name).X, expected)


def test_two_columns_of_one_name_are_both_kept(tmp_path):
    (tmp_path / "t.csv").write_text("a,a,b\n1,2,3\n4,5,6\n")
    found = read(tmp_path / "t.csv")
    assert found.columns == ["a", "a", "b"]
    np.testing.assert_array_equal(found.X, [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("text", "columns", "n"),
    [
        ("1,2\n3,4\n5,6\n", None, 3),
        ("1.5,-2e3\nnan,inf\n", None, 2),
        ("a,b\n1,2\n3,4\n", ["a", "b"], 2),
        ("\ufeffa, b\n1,2\n", ["a", "b"], 1),
        ("\ufeff1,2\n3,4\n", None, 2),
        ("0,1,2\n5,6,7\n", ["0", "1", "2"], 1),  # pandas' names for an array
        ("0,1\n0.5,0.7\n", ["0", "1"], 1),
        ("0,1\n1,0\n", None, 2),  # too short to tell from data
        (",0,1\n0,0.5,0.7\n", ["0", "1"], 1),
        (",a,b\n0,0.5,0.7\n", ["a", "b"], 1),
        ("a;b\n1;2\n", ["a", "b"], 1),
        ("1;2\n3;4\n", None, 2),
        ('"a","b"\n"1","2"\n', ["a", "b"], 1),
        ("a,b\r\n1,2\r\n\r\n", ["a", "b"], 1),
        ("1,2", None, 1),
        ("a,1\n0.5,0.7\n", ["a", "1"], 1),
    ],
)
def test_csv_header_is_detected(text, columns, n, tmp_path):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8", newline="")
    found = read(tmp_path / "t.csv")
    assert found.columns == columns
    assert found.X.shape == (n, 2 if text[:5] != "0,1,2" else 3)


def test_csv_without_header_may_have_text_labels(tmp_path):
    path = tmp_path / "iris.csv"
    path.write_text("5.1,3.5,setosa\n4.9,3.0,setosa\n6.2,2.9,virginica\n")
    refused(path, r"columns that are not numbers: f2 \(string\)", "--drop .no features., --text, --id, or --labels")
    found = read(path, labels="f2")
    np.testing.assert_array_equal(found.X, [[5.1, 3.5], [4.9, 3.0], [6.2, 2.9]])
    np.testing.assert_array_equal(found.y, [0, 0, 1])


def test_csv_with_very_long_rows(tmp_path):
    wide = rng.normal(size=(3, 8_000))
    np.savetxt(tmp_path / "wide.csv", wide, delimiter=",", fmt="%.300e")  # 2.5 MB a row, pyarrow's block is 1
    np.testing.assert_allclose(read(tmp_path / "wide.csv").X, wide, rtol=1e-14)


def test_csv_of_whole_numbers_that_turn_into_fractions_late(tmp_path):
    rows = [f"{i % 100},{i % 7}" for i in range(400_000)]  # more than one block of pyarrow's
    (tmp_path / "t.csv").write_text("\n".join(["a,b", *rows, "0.5,1"]) + "\n")
    found = read(tmp_path / "t.csv").X
    assert found.shape == (400_001, 2)
    assert found[-1, 0] == 0.5


# ---- MATLAB and AnnData ----------------------------------------------------------------------------------------------


def test_mat_of_both_versions_agree(tmp_path):
    scipy.io.savemat(tmp_path / "old.mat", {"fea": X, "gnd": Y[None, :], "name": "orl", "k": 3.0})
    save_mat73(tmp_path / "new.mat", fea=X, gnd=Y[None, :].astype(float), k=np.array([[3.0]]))
    for name in ("old.mat", "new.mat"):
        found = read(tmp_path / name)
        assert found.X.flags.c_contiguous
        np.testing.assert_array_equal(found.X, X)
        np.testing.assert_array_equal(found.y, CODES)


def test_mat_images_keep_their_axes(tmp_path):
    images = rng.integers(0, 255, size=(7, 3, 2), dtype=np.uint8)
    scipy.io.savemat(tmp_path / "old.mat", {"X": images})
    save_mat73(tmp_path / "new.mat", X=images)
    for name in ("old.mat", "new.mat"):
        found = read(tmp_path / name).X
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, images)


def test_mat_double_is_double_even_where_matlab_packed_it_as_bytes(tmp_path):
    path = tmp_path / "packed.mat"
    scipy.io.savemat(path, {"X": np.arange(6.0).reshape(2, 3)})
    data = np.arange(6.0).reshape(2, 3).tobytes("F")
    raw = path.read_bytes()
    at = raw.index(data) - 8  # the data element: type, size, values
    packed = np.arange(6.0).reshape(2, 3).astype(np.uint8).tobytes("F").ljust(8, b"\x00")
    element = np.array([2, 6], "<u4").tobytes() + packed
    raw = raw[:132] + np.array([len(raw) - 136 - 8 - len(data) + len(element)], "<u4").tobytes() + raw[136:at] + element
    path.write_bytes(raw)
    assert scipy.io.loadmat(path)["X"].dtype == np.uint8
    assert read(path).X.dtype == np.float64
    np.testing.assert_array_equal(read(path).X, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("wrong", [10**9, 13, -1])
@pytest.mark.parametrize("suffix", [".npz", ".h5ad", ".mat"])
def test_wrong_indices_of_a_sparse_matrix_are_refused(suffix, wrong, tmp_path):
    """SciPy checks them only when asked; before, such a file wrote outside the array."""
    matrix, path = scipy.sparse.csr_matrix(np.eye(12)), tmp_path / f"X{suffix}"
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indices[5] = wrong
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    if suffix == ".npz":
        np.savez(path, **parts, format=b"csr", shape=(12, 12))
    else:
        with h5py.File(path, "w", userblock_size=512) as file:
            group = file.create_group("X")
            names = parts if suffix == ".h5ad" else {"data": matrix.data, "ir": matrix.indices, "jc": matrix.indptr}
            for name, values in names.items():
                group[name] = values
            group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (12, 12)
            group.attrs["MATLAB_sparse"], group.attrs["MATLAB_class"] = np.uint64(12), b"double"
        if suffix == ".mat":
            with path.open("r+b") as file:
                file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    with pytest.raises(InputError, match="cannot be read as"):
        read(path)


def test_mat_sparse_is_made_dense(tmp_path):
    values = np.float64(X * (X > 0))
    scipy.io.savemat(tmp_path / "old.mat", {"fea": scipy.sparse.csc_matrix(values)})
    sparse = scipy.sparse.csc_matrix(values)
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
        group = file.create_group("fea")
        group["data"], group["ir"], group["jc"] = sparse.data, sparse.indices, sparse.indptr
        group.attrs["MATLAB_sparse"] = np.uint64(12)
    for name in ("old.mat", "new.mat"):
        np.testing.assert_array_equal(read(tmp_path / name).X, values)


def test_mat_X_of_one_column_stays_a_matrix(tmp_path):
    scipy.io.savemat(tmp_path / "f.mat", {"X": X[:, :1], "gnd": Y})
    assert read(tmp_path / "f.mat").X.shape == (12, 1)


def test_mat73_text_is_not_taken_for_numbers(tmp_path):
    save_mat73(tmp_path / "t.mat", fea=X, title=np.ones((3, 4), np.uint16))
    with h5py.File(tmp_path / "t.mat", "r+") as file:
        file["title"].attrs["MATLAB_class"] = np.bytes_("char")
    np.testing.assert_array_equal(read(tmp_path / "t.mat").X, X)


@pytest.mark.parametrize("build", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_h5ad_dense_or_sparse_with_labels_by_name(build, tmp_path):
    save_h5ad(tmp_path / "cells.h5ad", build(X * (X > 0)), name="cell_type", index="symbol")
    found = read(tmp_path / "cells.h5ad")
    assert found.y is None
    assert found.columns == [f"gene {j}" for j in range(5)]
    np.testing.assert_array_equal(found.X, X * (X > 0))
    np.testing.assert_array_equal(read(tmp_path / "cells.h5ad", labels="cell_type").y, CODES)
    np.testing.assert_array_equal(read(tmp_path / "cells.h5ad", labels="batch").y, np.arange(12) % 2)
    refused(tmp_path / "cells.h5ad", "did you mean 'cell_type'", labels="cell_typ")


def test_h5ad_categories_may_be_numbers(tmp_path):
    save_h5ad(tmp_path / "cells.h5ad")
    with h5py.File(tmp_path / "cells.h5ad", "r+") as file:
        del file["obs/label/categories"]
        file["obs/label/categories"] = [30, 10, 20]
    np.testing.assert_array_equal(read(tmp_path / "cells.h5ad").y, np.array([2, 0, 1])[CODES])


def test_h5ad_row_without_a_category_is_named(tmp_path):
    save_h5ad(tmp_path / "cells.h5ad")
    with h5py.File(tmp_path / "cells.h5ad", "r+") as file:
        file["obs/label/codes"][4] = -1
    refused(tmp_path / "cells.h5ad", "row 4 has None")


@pytest.mark.parametrize("suffix", [".mat", ".h5ad"])
def test_without_h5py_the_extra_is_named(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"f{suffix}"
    save_mat73(path, X=X) if suffix == ".mat" else save_h5ad(path)
    (tmp_path / "libraries").mkdir()
    (tmp_path / "libraries" / "h5py.py").write_text("raise ImportError('no h5py here')")
    monkeypatch.syspath_prepend(tmp_path / "libraries")  # the process that reads the file has the same path
    with pytest.raises(MissingExtraError, match=r"pip install 'prodsc\[hdf5\]'"):
        read(path)


# ---- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        (Y.astype(np.int16), CODES),
        (Y.astype(float), CODES),
        (Y - 100, CODES),
        (Y == 7, CODES == 1),
        (np.array([f"class {v}" for v in Y]), CODES),
        (Y[:, None], CODES),
    ],
)
def test_labels_of_every_type_become_codes(values, codes, tmp_path):
    np.savez(tmp_path / "f.npz", X=X, labels=values)
    before = values.copy()
    found = read(tmp_path / "f.npz").y
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, codes)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("name", ["y", "ys", "labels", "label", "gnd", "Y", "target", "targets"])
def test_label_names(name, tmp_path):
    np.savez(tmp_path / "f.npz", clip=X, **{name: Y})
    frame(**{name: Y}).to_parquet(tmp_path / "f.parquet")
    for file in ("f.npz", "f.parquet"):
        found = read(tmp_path / file)
        np.testing.assert_array_equal(found.X, X)
        np.testing.assert_array_equal(found.y, CODES)


def test_a_matrix_called_y_is_not_labels(tmp_path):
    np.savez(tmp_path / "f.npz", X=X, Y=np.eye(12))
    assert read(tmp_path / "f.npz").y is None


@pytest.mark.parametrize("suffix", WRITERS)
def test_labels_by_name_in_the_same_file(suffix, tmp_path):
    path = tmp_path / f"f{suffix}"
    WRITERS[suffix](path, X, Y)
    name = {".pt": "ys", ".pth": "target", ".safetensors": "labels", ".mat": "gnd", ".npz": "y", ".tsv": "y"}
    found = read(path, labels=name.get(suffix, "label"))
    np.testing.assert_array_equal(found.y, CODES)
    assert found.X.shape == X.shape


def test_named_labels_win_and_no_label_column_leaks_into_X(tmp_path):
    frame(label=Y, kind=["a", "b"] * 6).to_parquet(tmp_path / "f.parquet")
    np.save(tmp_path / "other.npy", Y[::-1])
    found = read(tmp_path / "f.parquet", labels="kind")
    np.testing.assert_array_equal(found.y, [0, 1] * 6)
    assert found.X.shape == (12, 5)
    frame(label=Y).to_parquet(tmp_path / "f.parquet")
    found = read(tmp_path / "f.parquet", labels=tmp_path / "other.npy")
    np.testing.assert_array_equal(found.y, CODES[::-1])
    assert found.X.shape == (12, 5)


LABEL_FILES = {
    "y.npy": lambda path: np.save(path, Y),
    "column.npy": lambda path: np.save(path, Y[:, None].astype(float)),
    "known.npz": lambda path: np.savez(path, ids=np.arange(12), labels=Y),
    "only.npz": lambda path: np.savez(path, whatever=Y, X=X),
    "y.pt": lambda path: torch.save(torch.tensor(Y), path),
    "dict.pt": lambda path: torch.save({"ys": torch.tensor(Y)}, path),
    "y.txt": lambda path: path.write_text("\n".join(map(str, Y)) + "\n\n"),
    "savetxt.txt": lambda path: np.savetxt(path, Y),
    "text.txt": lambda path: path.write_text("\n".join(f"class {v}" for v in Y)),
    "y.csv": lambda path: pd.Series(Y, name="class").to_csv(path, index=False),
    "index.csv": lambda path: pd.Series(Y).to_csv(path),
    "bare.csv": lambda path: path.write_text("\n".join(map(str, Y))),
    "text.csv": lambda path: path.write_text("\n".join(f"class {v}" for v in Y)),
    "header.csv": lambda path: path.write_text("label\n" + "\n".join(f"class {v}" for v in Y)),
    "two.csv": lambda path: pd.DataFrame({"id": range(12), "label": Y}).to_csv(path, index=False),
    "y.mat": lambda path: scipy.io.savemat(path, {"truth": Y}),
    "y.parquet": lambda path: pd.DataFrame({"kind": pd.Categorical([f"class {v}" for v in Y])}).to_parquet(path),
}


@pytest.mark.parametrize("name", LABEL_FILES)
@pytest.mark.parametrize("as_text", [True, False])
def test_labels_from_another_file(name, as_text, tmp_path):
    np.save(tmp_path / "X.npy", X)
    LABEL_FILES[name](tmp_path / name)
    path = tmp_path / name
    np.testing.assert_array_equal(read(tmp_path / "X.npy", labels=str(path) if as_text else path).y, CODES)


def test_text_labels_that_are_numbers_are_ordered_as_numbers(tmp_path):
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "y.txt").write_text("\n".join(str(i) for i in range(12)))
    np.testing.assert_array_equal(read(tmp_path / "X.npy", labels=tmp_path / "y.txt").y, np.arange(12))


def test_bad_labels_are_refused(tmp_path):
    np.savez(tmp_path / "f.npz", X=X, label=Y, split=Y)
    np.save(tmp_path / "X.npy", X)
    refused(
        tmp_path / "f.npz", "labels='labl' is neither", r"holds X, label, split", "did you mean 'label'", labels="labl"
    )
    refused(tmp_path / "f.npz", "labels='X' is neither a column or 1-D array", labels="X")
    refused(tmp_path / "X.npy", "labels='q' is neither", "one array without a name", "give one of those", labels="q")
    refused(tmp_path / "f.npz", "X.np does not exist; did you mean 'X.npy'", labels=tmp_path / "X.np")
    refused(tmp_path / "f.npz", "is a directory", labels=tmp_path)
    for name, values in {"half": Y + 0.5, "nan": np.where(Y == 7, np.nan, 1), "time": Y.astype("M8[s]")}.items():
        np.save(tmp_path / f"{name}.npy", values)
        sentence = r"must be whole numbers, booleans or text; row \d has"
        refused(tmp_path / "X.npy", sentence, labels=tmp_path / f"{name}.npy")
    np.save(tmp_path / "short.npy", Y[:-1])
    refused(tmp_path / "X.npy", r"short.npy has 11 labels for 12 rows of X", labels=tmp_path / "short.npy")
    refused(tmp_path / "X.npy", "must hold one 1-D array", "has 0 of them", labels=tmp_path / "X.npy")
    np.savez(tmp_path / "two.npz", a=Y, b=Y)
    refused(tmp_path / "X.npy", r"has 2 of them \(a, b\)", labels=tmp_path / "two.npz")
    (tmp_path / "latin.txt").write_bytes("Käse\n".encode("latin-1"))
    refused(tmp_path / "X.npy", "not text in UTF-8", labels=tmp_path / "latin.txt")
    (tmp_path / "y.xls").write_text("1")
    refused(tmp_path / "X.npy", "has type '.xls'", labels=tmp_path / "y.xls")


def test_label_count_must_be_the_row_count(tmp_path):
    np.savez(tmp_path / "f.npz", X=X, y=Y[:-1])
    refused(tmp_path / "f.npz", "has 11 labels for 12 rows of X; give one label per row")
    scipy.io.savemat(tmp_path / "f.mat", {"X": X.T, "gnd": Y})
    refused(tmp_path / "f.mat", r"12 labels for 5 rows of X; X looks transposed, save X.T")


def test_a_label_column_of_fractions_or_gaps_is_refused(tmp_path):
    (tmp_path / "xyz.csv").write_text("a,y,z\n0.1,0.2,0.3\n0.4,0.5,0.6\n")
    refused(tmp_path / "xyz.csv", "row 0 has 0.2", "rename the array or column if it is not labels")
    pq.write_table(pa.table({"a": [1.0, 2.0], "label": ["cat", None]}), tmp_path / "gap.parquet")
    refused(tmp_path / "gap.parquet", "row 1 has None")


# ---- bad files -------------------------------------------------------------------------------------------------------


def test_what_is_not_a_file(tmp_path):
    np.save(tmp_path / "features.npy", X)
    refused(tmp_path / "feature.npy", "feature.npy does not exist; did you mean 'features.npy'")
    refused(tmp_path / ("n" * 300 + ".npy"), "does not exist; check the path")
    refused("~nobody-here/f.npy", "does not exist; check the path")
    refused(tmp_path / "features.npy", "is neither", labels="n" * 300)
    refused(tmp_path / "nowhere" / "f.npy", "does not exist; check the path")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "is a directory, not a file; name one file of these types: .npy, .npz")
    (tmp_path / "f.xlsx").write_text("x")
    refused(tmp_path / "f.xlsx", r"has type '.xlsx'; supported are .npy, .npz, .pt, .*\.h5ad")
    (tmp_path / "plain").write_text("x")
    refused(tmp_path / "plain", "has no suffix; supported are")


@pytest.mark.parametrize("suffix", OPENERS)
def test_empty_garbage_and_text_files(suffix, tmp_path):
    path = tmp_path / f"f{suffix}"
    path.write_bytes(b"")
    refused(path, r"is empty \(0 bytes\); write it again")
    path.write_bytes(np.random.default_rng(2).bytes(3000))
    refused(path, rf"f\{suffix} ")
    if suffix not in (".csv", ".tsv"):
        path.write_text("1,2\n3,4\n")
        refused(path, rf"f\{suffix} ")
    else:
        path.write_text("\n\n\n")
        refused(path, "holds no rows, only blank lines")


@pytest.mark.parametrize("suffix", [*OPENERS, ".73.mat"])
def test_truncated_files(suffix, tmp_path):
    path = tmp_path / f"f{suffix}"
    big = rng.normal(size=(300, 20)).astype(np.float32)
    y = np.arange(300) % 3
    if suffix == ".npy":
        np.save(path, big)
    elif suffix == ".73.mat":
        save_mat73(path, X=big)
    else:
        WRITERS[suffix](path, big, y)
    assert read(path).X.shape == big.shape
    whole = path.read_bytes()
    for share in (0.05, 0.3, 0.6, 0.95):
        path.write_bytes(whole[: int(len(whole) * share)])
        if suffix in (".csv", ".tsv"):  # cut in the middle of a row: a row with too few cells
            cut = whole[: int(len(whole) * share)]
            path.write_bytes(cut[: cut.rindex(b"," if suffix == ".csv" else b"\t")])
        refused(path, "cannot be read as|is not a complete", "cop(y|ied)|write it again")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "does not fit in memory; save it as .npy, which is read from disk"),
        (PermissionError(13, "Permission denied"), "permission denied.; change its permissions"),
        (KeyError(), "cannot be read as .npz .KeyError.; it is damaged"),
    ],
)
def test_what_the_libraries_raise_becomes_a_sentence(error, sentence, tmp_path, monkeypatch):
    def opener(path, stack):
        raise error

    monkeypatch.setitem(OPENERS, ".npz", opener)
    np.savez(tmp_path / "f.npz", X=X)
    refused(tmp_path / "f.npz", sentence)


class Bomb:
    """Unpickling this creates a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("suffix", OPENERS)
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_disguised_pickle_is_never_executed(suffix, protocol, tmp_path):
    path, crater = tmp_path / f"f{suffix}", tmp_path / "crater"
    path.write_bytes(pickle.dumps(Bomb(crater), protocol=protocol))
    message = refused(path, rf"f\{suffix} ")
    if suffix in (".npy", ".npz", ".pt", ".pth"):
        assert "a pickle is never loaded, as it could run code" in message
    np.save(tmp_path / "X.npy", X)
    refused(tmp_path / "X.npy", rf"f\{suffix} ", labels=path)
    assert not crater.exists()
    pickle.loads(path.read_bytes())
    assert crater.exists()  # the bomb was live


def test_pickles_inside_honest_containers_are_never_executed(tmp_path):
    crater = tmp_path / "crater"
    bomb = Bomb(crater)
    np.save(tmp_path / "o.npy", np.array([[bomb, bomb]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "o.npz", X=np.array([[bomb, bomb]], dtype=object))
    np.savez(tmp_path / "l.npz", X=X, y=np.array([bomb] * 12, dtype=object))
    np.savez(tmp_path / "unnamed.npz", a=X, b=np.array([bomb] * 12, dtype=object))
    torch.save({"features": torch.tensor(X), "ys": bomb}, tmp_path / "o.pt")
    torch.save(bomb, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    torch.save({"features": X}, tmp_path / "array.pt")
    refused(tmp_path / "o.npy", "o.npy holds Python objects .*save it as numbers")
    refused(tmp_path / "o.npz", "array 'X' in .*o.npz holds Python objects .a pickle is never loaded")
    refused(tmp_path / "l.npz", "array 'y' in .*l.npz holds Python objects", r"y.astype\(str\)")
    refused(tmp_path / "unnamed.npz", "array 'b'")
    for name in ("o.pt", "old.pt", "array.pt"):
        refused(tmp_path / name, "a pickle is never loaded", r"torch.save\(\{'features': X, 'ys': y\}, path\)")
    assert not crater.exists()


def test_an_object_array_beside_X_does_no_harm(tmp_path):
    np.savez(tmp_path / "f.npz", X=X, meta=np.array([{"a": 1}], dtype=object))
    np.testing.assert_array_equal(read(tmp_path / "f.npz").X, X)


NOT_X = [
    (X[:, 0], r"is 1-D \(shape \(12,\)\); X must have rows and columns"),
    (X[:0], r"has 0 rows \(shape \(0, 5\)\)"),
    (X[:, :0], r"has 0 columns \(shape \(12, 0\)\)"),
    (X.astype(complex), r"holds complex numbers \(complex128\); X must be real"),
    (np.array([["a", "b"]]), r"is of type <U1, not numbers"),
    (np.zeros((3, 2), [("a", "f4")]), "not numbers"),
    (np.float32(3), r"is 0-D"),
]
SAVE = {
    ".npy": np.save,
    ".npz": lambda path, array: np.savez(path, X=array),
    ".pt": lambda path, array: torch.save({"X": torch.tensor(array)}, path),
    ".mat": lambda path, array: scipy.io.savemat(path, {"X": array}),
}


@pytest.mark.parametrize(
    ("suffix", "array", "sentence"),
    [
        (suffix, array, sentence)
        for suffix in SAVE
        for array, sentence in NOT_X
        if not (suffix in (".pt", ".mat") and array.dtype.kind in "UV")  # no such tensors or matrices
        if not (suffix == ".mat" and array.ndim < 2)
    ],
)
def test_arrays_that_cannot_be_X(suffix, array, sentence, tmp_path):
    path = tmp_path / f"f{suffix}"
    SAVE[suffix](path, array)
    message = refused(path, sentence)
    assert ("array 'X' in" in message) == (suffix != ".npy")


@pytest.mark.parametrize("suffix", [".npz", ".pt", ".safetensors", ".mat"])
def test_no_matrix_or_several(suffix, tmp_path):
    def write(name, **arrays):
        path = tmp_path / f"{name}{suffix}"
        tensors = {key: torch.tensor(value) for key, value in arrays.items()}
        if suffix == ".npz":
            np.savez(path, **arrays)
        elif suffix == ".mat":
            scipy.io.savemat(path, arrays)
        else:
            torch.save(tensors, path) if suffix == ".pt" else save_file(tensors, path)
        return path

    refused(write("none", a=Y, b=Y), "has no numeric array of two or more dimensions", r"holds a \(12,\) int64, b")
    refused(
        write("several", clip=X, dino=X[:, :2]), "several arrays that could be X: clip, dino; name the right one 'X'"
    )
    refused(write("many", **{f"layer{i}": X for i in range(9)}), "layer5 and 3 more")


def test_mat73_names_what_matlab_shows(tmp_path):
    save_mat73(tmp_path / "f.mat", a=Y[None], b=Y[None])
    refused(tmp_path / "f.mat", r"it holds a \(12,\) int64, b \(12,\) int64\)")


def test_mat73_empty_matrix(tmp_path):
    save_mat73(tmp_path / "f.mat", X=np.empty((0, 5)))
    refused(tmp_path / "f.mat", r"array 'X' in .* has 0 rows \(shape \(0, 5\)\)")


def test_torch_file_of_another_kind(tmp_path):
    torch.save([torch.tensor(X)], tmp_path / "f.pt")
    refused(tmp_path / "f.pt", "holds a list; save a tensor, or a dict")
    torch.save({}, tmp_path / "e.pt")
    refused(tmp_path / "e.pt", "it holds nothing")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv"])
def test_tables_that_cannot_be_X(suffix, tmp_path):
    def write(table):
        path = tmp_path / f"f{suffix}"
        if suffix == ".parquet":
            table.to_parquet(path)
        else:
            table.to_csv(path, index=False, sep="," if suffix == ".csv" else "\t")
        return path

    text = r"columns that are not numbers: name \((large_)?string\), day \(.*\); say what they are: .*drop=\['name'\]"
    refused(write(frame(name=["a"] * 12, day=pd.to_datetime(["2024-01-02"] * 12))), text)
    refused(write(frame(X[:0])), r"has 0 rows \(shape \(0, 5\)\)")
    refused(write(pd.DataFrame({"label": [1, 2]})), r"has 0 columns \(shape \(2, 0\)\)")


def test_csv_with_rows_of_different_length(tmp_path):
    (tmp_path / "f.csv").write_text("a,b\n1,2\n3\n")
    refused(tmp_path / "f.csv", "cannot be read as .csv", "Expected 2 columns, got 1")
    (tmp_path / "f.csv").write_bytes("a,b\nKäse,2\n".encode("latin-1"))
    refused(tmp_path / "f.csv", "cannot be read as .csv|not numbers")


def test_vectors_that_cannot_be_X(tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"v": [[1.0, 2.0], [3.0]]}), path)
    refused(path, "column 'v' of .* must hold vectors of one length, 2; row 1 has 1 values")
    for kind in (pa.list_(pa.float32()), pa.list_(pa.float32(), 2)):
        pq.write_table(pa.table({"v": pa.array([[1.0, 2.0], None], kind)}), path)
        refused(path, "one length, 2; row 1 has 0 values|Expected all lists to be of size")  # pyarrow itself, up to 18
    pq.write_table(pa.table({"v": pa.array([None, [1.0, 2.0]], pa.list_(pa.float32()))}), path)
    refused(path, "must hold vectors of one length")
    pq.write_table(pa.table({"v": pa.array([[1, None]], pa.list_(pa.int32()))}), path)
    refused(path, "vectors with missing values")
    pq.write_table(pa.table({"v": pa.array([[1.0, None]], pa.list_(pa.float32()))}), path)
    np.testing.assert_array_equal(read(path).X, [[1, np.nan]])
    pq.write_table(pa.table({"v": [[1.0]], "w": [[2.0]]}), path)
    refused(path, r"several columns of vectors \(v, w\)")
    pq.write_table(pa.table({"v": [[1.0]], "X": [[2.0]]}), path)
    np.testing.assert_array_equal(read(path).X, [[2]])
    pq.write_table(pa.table({"v": pa.array([[1]], pa.list_(pa.decimal128(5, 2)))}), path)
    refused(path, r"not numbers: v \(list<.*decimal128\(5, 2\)")
    pq.write_table(pa.table({"v": pa.array([], pa.list_(pa.float32()))}), path)
    refused(path, "0 rows")


def test_h5ad_without_a_matrix(tmp_path):
    with h5py.File(tmp_path / "f.h5ad", "w") as file:
        file["obs"] = [1]
    refused(tmp_path / "f.h5ad", r"has no matrix X \(it holds obs\)")
    with h5py.File(tmp_path / "f.h5ad", "w") as file:
        file.create_group("X").attrs["encoding-type"] = "dataframe"
    refused(tmp_path / "f.h5ad", "is stored as 'dataframe'; it must be dense, csr_matrix or csc_matrix")


# ---- real files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "k"),
    [("orl.npz", (400, 32, 32), "uint8", 40), ("cifar10_efflite0.npz", (20_000, 1280), "float16", 10)],
)
def test_real_files(name, shape, dtype, k):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} is not in ../shared/data")
    found = read(path)
    assert (found.X.shape, found.X.dtype) == (shape, dtype)
    with np.load(path) as raw:
        np.testing.assert_array_equal(found.X[::97], raw["X"][::97])
        np.testing.assert_array_equal(found.y, raw["y"])
    assert set(found.y) == set(range(k))
