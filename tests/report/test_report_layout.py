"""The map: every row has a place, and rows that t-SNE did not see lie among their own."""

import numpy as np

from conftest import union_of_subspaces
from prodsc.report.layout import geometric_median, lay_out, nearest


def test_rows_outside_the_sample_lie_among_their_own():
    Z, y = union_of_subspaces(n_per_class=80, n_classes=4, dimension=1, noise=0.05)
    Z[::2] *= -1  # sign does not matter: a line is one direction
    made = lay_out(Z, max_embedded=100)
    assert made.places.shape == (320, 2)
    assert made.embedded == 100
    assert "t-SNE of 100 rows" in made.summary()
    assert "the other 220" in made.summary()
    centres = np.array([np.median(made.places[y == c], axis=0) for c in range(4)])
    closest = np.linalg.norm(made.places[:, None] - centres, axis=2).argmin(1)
    assert (closest == y).mean() > 0.98
    assert len(np.unique(made.places, axis=0)) == 320  # no two dots hide each other


def test_few_rows_are_embedded_whole_and_alike_each_time():
    Z, _ = union_of_subspaces(n_per_class=10)
    assert lay_out(Z).summary() == "t-SNE of all 30 rows of Z"
    np.testing.assert_array_equal(lay_out(Z, max_embedded=12).places, lay_out(Z, max_embedded=12).places)


def _reference_nearest(u, landmarks):
    alike = [abs(float(u @ landmark)) for landmark in landmarks]
    order = sorted(range(len(landmarks)), key=lambda j: -alike[j])[:10]
    gaps = [(1 - alike[j]) - (1 - alike[order[0]]) for j in order]
    return order, [np.exp(-3 * gap / gaps[-1]) for gap in gaps]


def test_nearest_by_cosine_whatever_the_sign():
    rng = np.random.default_rng(0)
    U, L = (
        M / np.linalg.norm(M, axis=1, keepdims=True)
        for M in (rng.standard_normal((5, 6)), rng.standard_normal((30, 6)))
    )
    near, weights = nearest(U.astype(np.float32), L.astype(np.float32))
    for i in range(5):
        order, wanted = _reference_nearest(U[i], L)
        assert near[i].tolist() == order
        np.testing.assert_allclose(weights[i], wanted, atol=1e-4)


def test_the_median_of_neighbours_on_two_islands_stays_on_the_larger():
    points = np.array([[[0.0, 0], [0.1, 0], [0, 0.1], [10, 10]]])
    place = geometric_median(points, np.ones((1, 4)), iterations=50)
    assert np.linalg.norm(place) < 0.3  # the mean would be at 2.5, 2.5
    moved = [np.linalg.norm(points[0] - place[0] - step, axis=1).sum() for step in ([0.01, 0], [-0.01, 0], [0, 0.01])]
    assert min(moved) >= np.linalg.norm(points[0] - place[0], axis=1).sum() - 1e-6
