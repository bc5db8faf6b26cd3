"""Tables as people have them: ids, texts, columns to drop, missing values; frames and tables of other libraries."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import scipy.sparse

from prodsc import PRODSC, make
from prodsc.errors import InputError, ParameterError
from prodsc.sources import sparse_rows
from prodsc.sources.choice import ColumnChoice
from prodsc.sources.door import open_source
from prodsc.sources.rows import as_array, column_names
from prodsc.sources.sparse_rows import SparseRows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 3)).astype(np.float32)
QUICK = {"epochs": 2, "network": {"hidden_size": 16}, "n_components": 8}


def people(gaps=False):
    frame = pd.DataFrame(X.copy(), columns=["age", "income", "visits"])
    frame.insert(0, "customer", [f"C{i:03d}" for i in range(20)])
    frame["note"] = [f'a note, with "quotes"\nand lines {i}' for i in range(20)]
    frame["city"] = ["Graz", "Linz"] * 10
    if gaps:
        frame.loc[[1, 4], "age"] = np.nan
        frame.loc[4, "income"] = np.nan
    return frame


CHOSEN = {"id": "customer", "drop": "city", "text": "note"}


def stored(frame, kind, folder):
    path = folder / f"people.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind in ("csv", "tsv"):
        frame.to_csv(path, index=False, sep="\t" if kind == "tsv" else ",")
    elif kind == "pandas":
        return frame
    elif kind == "polars":
        return pl.from_pandas(frame)
    elif kind == "arrow":
        return pa.Table.from_pandas(frame, preserve_index=False)
    return path


KINDS = ["csv", "tsv", "parquet", "pandas", "polars", "arrow"]


@pytest.mark.parametrize("kind", KINDS)
def test_ids_texts_and_dropped_columns(kind, tmp_path):
    source = open_source(stored(people(), kind, tmp_path), **CHOSEN)
    np.testing.assert_allclose(source.X, X, rtol=1e-6)
    assert source.columns == ["age", "income", "visits"]
    assert source.ids == [f"C{i:03d}" for i in range(20)]
    assert source.texts[3] == 'a note, with "quotes"\nand lines 3'
    assert list(source.others["city"]()) == ["Graz", "Linz"] * 10


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_missing_values_are_dropped_everywhere(kind, tmp_path):
    given = stored(people(gaps=True), kind, tmp_path)
    source = open_source(given, impute="drop", labels="city", id="customer", text="note")
    assert source.kept.tolist() == [0, 2, 3, *range(5, 20)]
    np.testing.assert_allclose(source.X, X[source.kept], rtol=1e-6)
    assert source.ids == [f"C{i:03d}" for i in source.kept]
    assert [text.split()[-1] for text in source.texts] == [str(i) for i in source.kept]
    np.testing.assert_array_equal(source.y, source.kept % 2)
    assert open_source(stored(people(), kind, tmp_path), impute="drop", **CHOSEN).kept is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_median_fills_and_is_kept_for_new_rows(kind, tmp_path):
    source = open_source(stored(people(gaps=True), kind, tmp_path), impute="median", **CHOSEN)
    others = np.delete(X[:, 0], [1, 4])
    median = float(np.sort(others)[8:10].mean())  # the naive form, of 18 values
    np.testing.assert_allclose(source.X[[1, 4], 0], median, rtol=1e-6)
    assert source.fill_values["age"] == pytest.approx(median, rel=1e-6)
    new = people(gaps=True).iloc[:5]
    again = open_source(stored(new, kind, tmp_path), impute=source.fill_values, **CHOSEN)
    np.testing.assert_allclose(again.X[1, 0], median, rtol=1e-6)


def test_missing_values_are_counted_by_column(tmp_path):
    path = stored(people(gaps=True), "csv", tmp_path)
    words = r"2 rows with NaN.*\(first: row 1, NaN\): age 2, income 1\. Drop or impute them first: --impute drop"
    with pytest.raises(InputError, match=words):
        PRODSC(2, **QUICK).fit(open_source(path, **CHOSEN))
    with pytest.raises(InputError, match="column 0 1"):
        PRODSC(2, **QUICK).fit(np.where(np.arange(60).reshape(20, 3) == 3, np.nan, X))
    with pytest.raises(InputError, match=r"the column 'age' of .* has no value at all"):
        open_source(people().assign(age=np.nan), impute="median", **CHOSEN)
    with pytest.raises(InputError, match=r"every row of .* has a missing value"):
        open_source(people().assign(age=np.nan), impute="drop", **CHOSEN)
    with pytest.raises(InputError, match="impute has no value for the column 'age'"):
        open_source(people(gaps=True), impute={"income": 0.0}, **CHOSEN)
    with pytest.raises(ParameterError, match="impute must be 'median'"):
        open_source(path, impute="mean")


def test_columns_by_name_pattern_and_number(tmp_path):
    path = stored(people(), "csv", tmp_path)
    assert open_source(path, columns=["visits", "age"]).columns == ["age", "visits"]  # in the order of the file
    assert open_source(path, columns="*i*", drop=["city"]).columns == ["income", "visits"]
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_array_equal(open_source(tmp_path / "X.npy", drop="1").X, X[:, [0, 2]])
    np.testing.assert_array_equal(open_source(X, columns=["2"]).X, X[:, [2]])
    np.savez(tmp_path / "X.npz", X=X, key=np.arange(20))
    assert open_source(tmp_path / "X.npz", id="key").ids == [str(i) for i in range(20)]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"id": "custmer"}, "--id: .* has no column 'custmer'; did you mean 'customer'"),
        ({"columns": "wage"}, "--columns: .* has no column 'wage'"),
        ({"drop": "x*"}, "--drop: .* has no column 'x*'"),
        ({"columns": ["age"], "id": "age"}, "'age' of .* is chosen as a feature and as something else"),
    ],
)
def test_a_wrong_choice_is_one_sentence(choice, words, tmp_path):
    with pytest.raises(InputError, match=words.replace("*'", r"\*'")):
        open_source(stored(people(), "csv", tmp_path), **choice)


def test_a_choice_goes_through_json_and_completes_another():
    choice = ColumnChoice.of("a", ["b"], "c", None, "median")
    assert ColumnChoice.from_json(choice.to_json()) == choice
    assert ColumnChoice.of(drop="z").over(choice) == ColumnChoice.of("a", ["b"], "z", None, "median")
    assert not ColumnChoice()


def test_ids_that_are_not_unique_are_told(tmp_path):
    with pytest.warns(UserWarning, match="'city' of .* has 'Graz' in more than one row"):
        open_source(stored(people(), "csv", tmp_path), id="city", text="note", drop="customer")


def test_a_csv_of_excel_in_windows_1252(tmp_path):
    (tmp_path / "excel.csv").write_bytes("Größe;Stadt\r\n1,5;Köln\r\n2,5;Güssing\r\n".encode("cp1252"))
    with pytest.warns(UserWarning, match="is read as Windows-1252"):
        source = open_source(tmp_path / "excel.csv", id="Stadt")
    assert (source.columns, source.ids, source.X[:, 0].tolist()) == (["Größe"], ["Köln", "Güssing"], [1.5, 2.5])


# ---- columns of vectors, tables of other libraries -------------------------------------------------------------------


def vectors():
    return pd.DataFrame({"title": [f"t{i}" for i in range(20)], "embedding": list(X)})


class Capsule:
    """What DuckDB, Daft and others hand out: nothing but the Arrow stream."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Lance:
    """What tables of Lance have."""

    def __init__(self, table):
        self.to_table = lambda: table


TABLE = pa.Table.from_pandas(vectors(), preserve_index=False)


@pytest.mark.parametrize(
    "given",
    [
        vectors(),
        vectors().assign(embedding=[row.tolist() for row in X]),
        pl.from_pandas(vectors()),
        pl.from_pandas(vectors()).with_columns(pl.col("embedding").cast(pl.Array(pl.Float32, 3))),
        TABLE,
        Capsule(TABLE),
        Lance(TABLE),
    ],
    ids=["pandas arrays", "pandas lists", "polars list", "polars array", "arrow", "capsule", "lance"],
)
def test_a_column_of_vectors_is_the_features(given):
    np.testing.assert_allclose(as_array(given), X, rtol=1e-6)
    assert column_names(given) is None
    source = open_source(given, id="title")
    assert source.ids[:2] == ["t0", "t1"]
    model = PRODSC(2, **QUICK).fit(given)
    assert model.n_features_in_ == 3
    np.testing.assert_array_equal(model.predict(given), model.labels_)


def test_vectors_of_different_length_are_one_sentence():
    with pytest.raises(InputError, match="must hold vectors of one length, 2; row 1 has 1"):
        as_array(pd.DataFrame({"v": [[1.0, 2.0], [1.0]]}))


@pytest.mark.parametrize("group", [1, 3, 7, 1000])
def test_parquet_with_row_groups_of_any_size(group, tmp_path):
    pyarrow.parquet.write_table(TABLE, tmp_path / "t.parquet", row_group_size=group)
    np.testing.assert_allclose(open_source(tmp_path / "t.parquet", text="title").X, X, rtol=1e-6)


def test_single_cells():
    anndata = pytest.importorskip("anndata", reason="the library of single cells is not part of the tests' environment")
    cells = anndata.AnnData(
        scipy.sparse.csr_array(X), obs=pd.DataFrame({"kind": ["a", "b"] * 10}, index=[*map(str, range(20))])
    )
    source = open_source(cells, labels="kind")
    np.testing.assert_array_equal(source.X, X)
    assert (source.columns, source.ids[:2], source.y[:2].tolist()) == (["0", "1", "2"], ["0", "1"], [0, 1])


class Cells:
    """What an AnnData object has."""

    X = scipy.sparse.csr_array(X)
    obs = pd.DataFrame({"kind": ["a", "b"] * 10, "n": np.arange(20)})
    obs_names = tuple(f"cell {i}" for i in range(20))
    var_names = ("CD3", "CD4", "CD8")


def test_cells_have_genes_names_and_annotations():
    source = open_source(Cells(), labels="kind", drop="CD4")
    np.testing.assert_array_equal(source.X, X[:, [0, 2]])
    assert (source.columns, source.ids[0], source.class_names) == (["CD3", "CD8"], "cell 0", ["a", "b"])
    assert source.others["n"]().tolist() == list(range(20))
    assert PRODSC(2, **QUICK).fit(Cells()).feature_names_in_.tolist() == ["CD3", "CD4", "CD8"]
    with pytest.raises(InputError, match="labels='type' is not a column of obs"):
        open_source(Cells(), labels="type")


def test_hugging_face_datasets():
    datasets = pytest.importorskip("datasets", reason="the library datasets is not part of the tests' environment")
    given = datasets.Dataset.from_pandas(vectors()).shuffle(seed=0)
    source = open_source(given, text="title")
    order = [int(title[1:]) for title in source.texts]
    np.testing.assert_allclose(source.X, X[order], rtol=1e-6)
    with pytest.raises(InputError, match="dictionary of data sets"):
        open_source(datasets.DatasetDict({"train": given}))


# ---- sparse matrices -------------------------------------------------------------------------------------------------


def test_a_sparse_matrix_is_read_in_dense_batches(monkeypatch):
    matrix = scipy.sparse.random(200, 30, density=0.2, random_state=0, format="lil")
    matrix[:, 0] = 1.0
    small = PRODSC(2, **QUICK).fit(matrix)
    monkeypatch.setattr(sparse_rows, "DENSE_BYTES", 0)
    rows = as_array(matrix)
    assert isinstance(rows, SparseRows)
    full = matrix.toarray()
    for wanted in (slice(3, 9), slice(None, None, 7), np.array([5, 1, 1]), full[:, 0] > 0, 4):
        np.testing.assert_array_equal(rows[wanted], full[wanted])
    np.testing.assert_array_equal(rows.reordered(np.arange(30)[::-1])[:5], full[:5, ::-1])
    large = PRODSC(2, **QUICK).fit(matrix)
    assert large.n_features_in_ == 30
    np.testing.assert_array_equal(large.predict(matrix), large.predict(full))
    assert len(small.labels_) == len(large.labels_)


def test_a_sparse_matrix_that_cannot_be_dense_says_its_size(monkeypatch):
    place = np.arange(400_000)
    huge = scipy.sparse.coo_array((np.ones(400_000), (place, place)), shape=(400_000, 2_000_000)).tocsr()
    with pytest.raises(InputError, match=r"KMeansClusterer needs, it would take 2,980\.2 GB"):
        make("k-means", n_clusters=2).fit(huge)
    with pytest.raises(InputError, match=r"400,000 x 2,000,000, which would take 5,960\.5 GB"):
        np.asarray(as_array(huge))
    with pytest.raises(InputError, match="sparse matrix of type complex128"):
        as_array(scipy.sparse.eye(3, dtype=complex).tocsr())
