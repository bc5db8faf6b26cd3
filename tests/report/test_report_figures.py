"""Figures show the data they were given, and refuse what they cannot show."""

import io
import math

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from prodsc.errors import InputError
from prodsc.report.figures import embed_2d, gram, learning_curves, map_2d, spectrum
from prodsc.report.style import cluster_colour

NAN = math.nan


def rows(n, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def labels_of(n, k):
    return np.random.default_rng(1).permutation(np.arange(n) % k)


def history(*phases):
    """Phases are (name, number of steps); 'joint' has self_expression, all but 'pre-train' have coding_rate."""
    names = [name for name, steps in phases for _ in range(steps)]
    value = np.linspace(3, 1, len(names))
    return {
        "phase": names,
        "step": list(range(len(names))),
        "total": list(value),
        "coding_rate": [v if name != "pre-train" else NAN for v, name in zip(value, names, strict=True)],
        "self_expression": [v if name == "joint" else NAN for v, name in zip(value, names, strict=True)],
        "reconstruction": [v if name == "pre-train" else NAN for v, name in zip(value, names, strict=True)],
    }


def draw(figure):
    """Warnings are errors, so this also checks that a figure can be drawn in peace."""
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure


def settings():
    """Without the backend, because only to read it would import pyplot."""
    return {key: mpl.rcParams[key] for key in mpl.rcParams if key != "backend"}


def texts(axes):
    return [text.get_text() for text in axes.texts]


# --- gram -------------------------------------------------------------------------------------------------------


def _reference_gram(X, order):
    G = np.empty((len(order), len(order)))
    for a, i in enumerate(order):
        for b, j in enumerate(order):
            G[a, b] = abs(X[i] @ X[j]) / math.sqrt((X[i] @ X[i]) * (X[j] @ X[j]))
    return G


def test_gram_shows_both_matrices_in_the_order_of_the_clusters():
    X, Z, labels = 7 * rows(12), rows(12, 3, seed=2), np.array([2, 0, 1] * 4)
    figure = draw(gram(X, Z, labels))
    order = [i for cluster in range(3) for i in range(12) if labels[i] == cluster]
    images = [axes.images[0] for axes in figure.axes[:2]]
    np.testing.assert_allclose(images[0].get_array(), _reference_gram(X, order))
    np.testing.assert_allclose(images[1].get_array(), _reference_gram(Z, order))
    assert [image.get_clim() for image in images] == [(0, 1), (0, 1)]
    assert list(figure.axes[0].xaxis.get_minorticklocs()) == [3.5, 7.5]
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["0", "1", "2"]


def test_gram_of_orthogonal_clusters_says_so():
    labels = np.array([0, 0, 1, 1])
    Z = np.eye(2)[labels] * [[1], [-1], [1], [1]]  # the sign does not matter
    figure = gram(np.ones((4, 3)), Z, labels)
    assert figure.axes[0].get_title().endswith("mean 1.00 in a cluster, 1.00 across")
    assert figure.axes[1].get_title().endswith("mean 1.00 in a cluster, 0.00 across")
    assert "mean 1.00 in a cluster, 0.00 across" in figure.get_label()


def test_gram_samples_rows_by_seed_and_leaves_its_input_alone():
    X, labels = rows(50), labels_of(50, 3)
    X.setflags(write=False)
    labels.setflags(write=False)

    def shown(seed):
        return np.asarray(gram(X, X, labels, max_rows=20, seed=seed).axes[0].images[0].get_array())

    assert shown(0).shape == (20, 20)
    np.testing.assert_array_equal(shown(0), shown(0))
    assert not np.array_equal(shown(0), shown(1))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (5, 1), (5, 5), (90, 45)])
def test_gram_of_odd_sizes(n, k):
    Z = rows(n)
    Z[0] = 0  # a row of zeros has no direction
    figure = draw(gram(torch.from_numpy(Z), Z.tolist(), labels_of(n, k)))
    assert np.isfinite(figure.axes[0].images[0].get_array()).all()
    ticks = figure.axes[0].get_xticks()
    assert 1 <= len(ticks) <= 17
    assert (np.diff(ticks) >= 0.06 * n).all()


# --- learning_curves --------------------------------------------------------------------------------------------


def test_learning_curves_draw_each_term_where_it_was_active():
    figure = draw(learning_curves(history(("pre-train", 4), ("warm-up", 3), ("joint", 5))))
    panels = {texts(axes)[0]: axes for axes in figure.axes}
    assert list(panels) == ["total", "coding rate", "self expression", "reconstruction"]
    drawn = {
        name: [list(line.get_xdata()) for line in axes.lines if len(line.get_xdata())] for name, axes in panels.items()
    }
    assert drawn["total"] == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9, 10, 11]]  # a line per phase: jumps are no slopes
    assert drawn["coding rate"] == [[4, 5, 6], [7, 8, 9, 10, 11]]
    assert drawn["reconstruction"] == [[0, 1, 2, 3]]
    spans = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in panels["total"].patches]
    assert spans == [(-0.5, 3.5), (3.5, 6.5), (6.5, 11.5)]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["pre-train", "warm-up", "joint"]


def test_learning_curves_follow_a_counter_that_starts_again():
    record = history(("warm-up", 3), ("joint", 2))
    record["step"] = [10, 20, 30, 10, 20]
    lines = learning_curves(record).axes[0].lines
    assert [list(line.get_xdata()) for line in lines] == [[10, 20, 30], [40, 50]]


def test_three_steps_have_dots_and_five_thousand_a_running_mean():
    few = draw(learning_curves(history(("pre-train", 1), ("warm-up", 1), ("joint", 1))))
    assert all(line.get_marker() == "o" for line in few.axes[0].lines)
    record = history(("joint", 5000))
    noisy = np.asarray(record["total"]) + rows(5000, 1)[:, 0]
    many = draw(learning_curves({**record, "total": noisy}))
    raw, smooth = many.axes[0].lines
    np.testing.assert_array_equal(raw.get_ydata(), noisy)
    assert smooth.get_ydata()[2500] == pytest.approx(noisy[2500 - 41 : 2500 + 42].mean())
    assert smooth.get_ydata()[0] == pytest.approx(noisy[:42].mean())  # the ends are means too, not pulled to zero


def test_learning_curves_skip_a_term_that_was_never_active():
    figure = learning_curves(history(("warm-up", 3)))
    assert [texts(axes)[0] for axes in figure.axes] == ["total", "coding rate"]


def test_learning_curves_take_names_as_they_are():
    record = {"phase": ["$x_$", "$^$"], "step": [0, 1], "total": [1.0, 2.0], "$_$": [1.0, NAN]}
    draw(learning_curves(record))  # as mathematics, these would not parse


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"phase": ["a"], "step": [0]}, r"history has no \['total'\]"),
        ({"phase": ["a"], "step": [0, 1], "total": [1, 2]}, "one length"),
        ({"phase": [], "step": [], "total": []}, "at least 1"),
        ({"phase": ["a"], "step": [0], "total": [NAN]}, "no finite loss"),
    ],
)
def test_learning_curves_refuse(record, message):
    with pytest.raises(InputError, match=message):
        learning_curves(record)


# --- map_2d -----------------------------------------------------------------------------------------------------


def test_map_puts_numbers_at_medians_and_sizes_in_the_legend():
    points = np.array([[0.0, 0], [1, 1], [50, 2], [9, 9], [9, 7]])
    figure = draw(map_2d(points, np.array([0, 0, 0, 3, 3])))
    axes = figure.axes[0]
    assert {text.get_text(): text.get_position() for text in axes.texts} == {"0": (1, 1), "3": (9, 8)}
    np.testing.assert_array_equal(axes.collections[0].get_offsets(), points)
    colours = axes.collections[0].get_facecolors()[:, :3]
    np.testing.assert_allclose(colours[[0, 4]], [to_rgb(cluster_colour(0)), to_rgb(cluster_colour(3))])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0  (3)", "3  (2)"]
    assert "2 clusters" in figure.get_label()


@pytest.mark.parametrize(("k", "legends"), [(12, 1), (13, 0), (45, 0)])
def test_map_has_a_legend_only_while_it_is_short(k, legends):
    figure = draw(map_2d(rows(90, 2), labels_of(90, k), title="a long title " * 30))
    assert figure.get_suptitle().count("\n") == 2
    assert len(figure.legends) == legends
    assert len(figure.axes[0].texts) == k


def test_map_takes_its_title_as_it_is():
    assert draw(map_2d(rows(3, 2), [0, 1, 1], title="$_^$")).get_suptitle() == "$_^$"  # no mathematics


def test_map_shows_confidence_as_strength_of_colour():
    figure = draw(map_2d(rows(3, 2), np.zeros(3, dtype=int), confidence=[0.0, 0.5, 1.0]))
    strength = figure.axes[0].collections[0].get_facecolors()[:, 3]
    assert 0 < strength[0] < strength[1] < strength[2] <= 1


# --- embed_2d ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(1, 5), (2, 1), (3, 1), (3, 5), (4, 1), (4, 5), (5, 5), (10, 5)])
def test_embedding_of_few_rows(n, d):
    chosen, plane = embed_2d(rows(n, d))
    np.testing.assert_array_equal(chosen, np.arange(n))
    assert plane.shape == (n, 2)
    assert np.isfinite(plane).all()


@pytest.mark.parametrize("n", [3, 30])
def test_embedding_ignores_sign(n):
    Z = rows(n)
    signs = np.where(np.arange(n) % 2, 1.0, -1.0)[:, None]
    a, b = embed_2d(Z)[1], embed_2d(signs * Z)[1]
    distances = [np.linalg.norm(plane[:, None] - plane[None], axis=-1) for plane in (a, b)]
    np.testing.assert_allclose(distances[0], distances[1], atol=1e-9)


def test_embedding_puts_orthogonal_lines_apart_and_both_their_ends_together():
    lines = np.repeat([0, 1], 15)
    Z = np.eye(6)[lines] * np.where(np.arange(30) % 2, 1, -1)[:, None] + 0.05 * rows(30)
    plane = embed_2d(Z)[1]
    D = np.linalg.norm(plane[:, None] - plane[None], axis=-1) + np.diag(np.full(30, np.inf))
    np.testing.assert_array_equal(lines[D.argmin(axis=1)], lines)
    centres = np.array([plane[lines == line].mean(axis=0) for line in (0, 1)])
    spread = max(np.linalg.norm(plane[lines == line] - centres[line], axis=1).max() for line in (0, 1))
    assert np.linalg.norm(centres[0] - centres[1]) > spread


def test_embedding_samples_by_seed():
    Z = rows(40)
    chosen, plane = embed_2d(Z, seed=3, max_rows=12)
    assert len(chosen) == len(plane) == 12
    assert (np.diff(chosen) > 0).all()
    again = embed_2d(Z, seed=3, max_rows=12)
    np.testing.assert_array_equal(chosen, again[0])
    np.testing.assert_array_equal(plane, again[1])
    assert not np.array_equal(chosen, embed_2d(Z, seed=4, max_rows=12)[0])


def test_embedding_of_a_collapsed_representation():
    assert np.isfinite(embed_2d(np.ones((20, 4)))[1]).all()


# --- spectrum ---------------------------------------------------------------------------------------------------


def test_spectrum_shows_the_singular_values():
    left, right = (np.linalg.qr(rows(8, 3, seed))[0] for seed in (0, 1))
    figure = draw(spectrum(left * [4.0, 2.0, 0.5] @ right.T))
    values = figure.axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(values[:3], [4, 2, 0.5])
    np.testing.assert_allclose(values[3:], 4e-8)  # zeros, at the floor of the log axis
    assert figure.axes[0].get_yscale() == "log"


@pytest.mark.parametrize(("Z", "rank"), [(np.eye(5), 5.0), (np.ones((9, 4)), 1.0), (np.zeros((3, 2)), 1.0)])
def test_spectrum_counts_directions(Z, rank):
    figure = draw(spectrum(Z))
    assert texts(figure.axes[0]) == [f"effective rank {rank:.1f}"]
    bottom, top = figure.axes[0].get_ylim()
    assert top / bottom > 100  # a plateau must look like one


# --- all --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gram(rows(5), rows(4), labels_of(5, 2)), r"Z must be a 2-D array with 5 rows.*got shape \(4, 6\)"),
        (lambda: gram(rows(5) * NAN, rows(5), labels_of(5, 2)), "X has 30 values that are NaN"),
        (lambda: gram(rows(5), rows(5), np.ones(5)), "labels must be .* integers; got float64"),
        (lambda: map_2d(rows(5, 3), labels_of(5, 2)), "coordinates must be .* 2 columns"),
        (lambda: map_2d(rows(5, 2), labels_of(5, 2), [0.5] * 4), "confidence must hold 5 numbers"),
        (lambda: map_2d(rows(5, 2), labels_of(5, 2), [2.0] * 5), "from 0 to 1"),
        (lambda: map_2d(rows(5, 2), np.array([], dtype=int)), "non-empty"),
        (lambda: embed_2d(rows(5)[0]), "Z must be a 2-D array"),
        (lambda: embed_2d(np.full((5, 2), np.inf)), "Z has 10 values"),
        (lambda: spectrum(np.empty((0, 3))), r"got shape \(0, 3\)"),
    ],
)
def test_figures_refuse_what_they_cannot_show(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_figures_leave_matplotlib_as_it_was_and_carry_alternative_text():
    before = settings()
    made = [
        gram(rows(9), rows(9), labels_of(9, 3)),
        learning_curves(history(("pre-train", 2), ("joint", 2))),
        map_2d(rows(9, 2), labels_of(9, 3)),
        spectrum(rows(9)),
    ]
    assert all(draw(figure).get_label().endswith(".") for figure in made)
    assert settings() == before
