"""Labels and links of a few rows: what they imply, what contradicts, and who is drawn into a batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prodsc.errors import InputError
from prodsc.pro_dsc.constraints import make_constraints
from prodsc.sources.readers import read, read_labels, read_pairs
from prodsc.training import Batches


def _reference_matrix(y, must, cannot):
    """Together by any path of links or one label; apart by labels, or by a cannot-link between two such sets."""
    n = len(y)
    same = np.eye(n, dtype=bool)
    for i, j in must:
        same[i, j] = same[j, i] = True
    for i in range(n):
        for j in range(n):
            same[i, j] |= y[i] == y[j] >= 0
    for _ in range(n):
        same = (same.astype(int) @ same.astype(int)) > 0
    apart = np.zeros((n, n), dtype=bool)
    for i, j in [*cannot, *((i, j) for i in range(n) for j in range(n) if y[i] >= 0 <= y[j] and y[i] != y[j])]:
        apart |= np.outer(same[i], same[j]) | np.outer(same[j], same[i])
    return same, apart


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_links_are_closed_and_contradictions_refused(data):
    n = data.draw(st.integers(2, 9))
    y = np.array(data.draw(st.lists(st.sampled_from([-1, -1, -1, 0, 1, 2]), min_size=n, max_size=n)))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    must, cannot = data.draw(st.lists(pair, max_size=4)), data.draw(st.lists(pair, max_size=4))
    same, apart = _reference_matrix(y, must, cannot)
    if (same & apart).any():
        with pytest.raises(InputError, match="must_link"):
            make_constraints(n, 9, y, must, cannot)
        return
    found = make_constraints(n, 9, y, must, cannot)
    if found is None:
        assert (y < 0).all()
        assert not must
        assert not cannot
        return
    expected = same.astype(int) - apart.astype(int) - np.eye(n, dtype=int)
    np.testing.assert_array_equal(found.relation(n), expected)
    rows = np.random.default_rng(n).permutation(n)[: n - 1]
    np.testing.assert_array_equal(found.restrict(rows).relation(n - 1), expected[np.ix_(rows, rows)])
    codes = found.codes(n)
    assert [found.labels[c] for c in codes[y >= 0]] == y[y >= 0].tolist()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"known_labels": [0, 1]}, r"known_labels has shape \(2,\) for 6 rows"),
        ({"known_labels": {6: 1}}, "known_labels names row 6; rows of X are 0 to 5"),
        ({"known_labels": {0: 0.5}}, "known_labels has the label 0.5; labels are whole numbers or text"),
        ({"known_labels": [0, 1, 2, 3, -1, -1]}, "4 different labels for n_clusters=3"),
        ({"must_link": [(0, 6)]}, r"must_link has the pair \(0, 6\); rows of X are 0 to 5"),
        ({"cannot_link": [(-1, 2)]}, r"cannot_link has the pair \(-1, 2\)"),
        ({"must_link": [(2, 2)]}, "must_link has row 2 paired with itself"),
        ({"must_link": [(0, 1, 2)]}, r"must_link must be pairs \(i, j\) of row numbers"),
        ({"must_link": [(0, 1), (2,)]}, "must_link must be pairs"),
        ({"must_link": [(0, 1)], "cannot_link": [(1, 0)]}, r"cannot_link has the pair \(1, 0\), but must_link"),
        ({"must_link": [(0, 1), (1, 2)], "cannot_link": [(2, 0)]}, r"cannot_link has the pair \(2, 0\)"),
        ({"known_labels": {0: "a", 2: "b"}, "must_link": [(0, 1), (1, 2)]}, "connects row 0 of label 'a' with row 2"),
        ({"known_labels": {0: 1, 2: 1}, "cannot_link": [(0, 2)]}, r"cannot_link has the pair \(0, 2\)"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_what_cannot_be_is_one_sentence(how, said):
    with pytest.raises(InputError, match=said):
        make_constraints(6, 3, **how)


def test_unknown_labels_are_many_things():
    assert make_constraints(6, 3, [-1, None, float("nan"), "", "-1", -1.0]) is None
    assert make_constraints(3, 3) is None
    found = make_constraints(4, 3, np.array([3.0, np.nan, 1.0, 3.0]))
    assert found.labels == (1, 3)
    assert found.rows.tolist() == [0, 2, 3]
    assert (
        make_constraints(4, 3, {0: 3, 3: 3, 2: 1}).digest()
        == found.digest()
        != make_constraints(4, 3, {0: 3, 2: 1}).digest()
    )


def test_clusters_that_stand_for_labels():
    found = make_constraints(6, 3, {0: "cat", 1: "cat", 2: "dog"})
    assert found.name_clusters(np.array([2, 2, 0, 1, 1, 2])) == {2: "cat", 0: "dog"}
    assert make_constraints(6, 3, must_link=[(0, 1)]).name_clusters(np.zeros(6, int)) == {}


def test_known_rows_are_in_every_batch():
    known = make_constraints(1000, 5, {3: 0, 7: 1, 900: 1}, must_link=[(10, 20)])
    plain, informed = Batches(1000, 40, (0, 2)), Batches(1000, 40, (0, 2), known)
    for t in (0, 3, 60):
        batch = informed[t]
        assert {3, 7, 900, 10, 20} <= set(batch.tolist())
        assert len(np.unique(batch)) == 40
        assert (np.diff(batch) > 0).all()
        assert len(np.setdiff1d(batch, plain[t])) <= 5
    np.testing.assert_array_equal(informed[3], Batches(1000, 40, (0, 2), known)[3])


def test_of_many_known_rows_both_ends_of_pairs_are_drawn():
    pairs = np.arange(800).reshape(-1, 2)
    informed = Batches(1000, 80, (0, 2), make_constraints(1000, 5, must_link=pairs))
    seen = set()
    for t in range(60):
        batch = set(informed[t].tolist())
        whole = sum(i in batch and j in batch for i, j in pairs.tolist())
        assert whole >= 10  # by chance it would be 2 or 3
        seen |= batch
    assert len(seen & set(range(800))) > 700


def test_labels_and_pairs_of_files(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b,seen\n1,2,cat\n3,4,\n5,6,dog\n7,8,\n")
    assert read(table, exclude=["seen"]).columns == ["a", "b"]
    assert make_constraints(4, 2, read_labels(table, "seen")).labels == ("cat", "dog")
    (tmp_path / "known.txt").write_text("cat\n-1\ndog\n-1\n")
    assert make_constraints(4, 2, read_labels(table, str(tmp_path / "known.txt"))).rows.tolist() == [0, 2]
    (tmp_path / "pairs.csv").write_text("i,j\n0,1\n2, 3\n")
    np.save(tmp_path / "pairs.npy", [[0, 1], [2, 3]])
    for name in ("pairs.csv", "pairs.npy"):
        assert read_pairs(tmp_path / name).tolist() == [[0, 1], [2, 3]]
    (tmp_path / "bad.csv").write_text("0,1\n2,x\n")
    with pytest.raises(InputError, match="'2,x'; each must have two row numbers"):
        read_pairs(tmp_path / "bad.csv")
