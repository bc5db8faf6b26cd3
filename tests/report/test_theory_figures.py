"""Figures of one fit show the numbers they were given, and refuse what they cannot show."""

import math

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from prodsc.core import theory
from prodsc.errors import InputError
from prodsc.report.style import cluster_colour
from prodsc.report.theory_figures import alignment, orthogonal, singular_values, structure, water_filling

NAN = math.nan


def rows(n, d=6, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def draw(figure):
    """Warnings are errors, so this also checks that a figure can be drawn in peace."""
    figure.draw_without_rendering()
    assert figure.get_label().endswith(".")
    return figure


def lines(axes):
    return [line.get_ydata() for line in axes.lines]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def note(figure):
    return figure.get_supxlabel()


# --- alignment --------------------------------------------------------------------------------------------------


def test_alignment_shows_the_mean_error_with_its_spread_and_the_curves_of_each_epoch():
    errors, r, g, m = 5 + rows(4, 3), rows(3, 8, 1) ** 2, rows(3, 8, 2) ** 2, rows(3, 8, 3) ** 2
    figure = draw(alignment(errors, r, torch.from_numpy(g), m.tolist(), [0, 2, 10]))
    first, *others = figure.axes
    np.testing.assert_array_equal(first.lines[0].get_xdata(), [0, 2, 10])
    np.testing.assert_allclose(first.lines[0].get_ydata(), errors.mean(axis=0))
    edge = first.collections[0].get_paths()[0].vertices
    for x, mean, spread in zip([0, 2, 10], errors.mean(axis=0), errors.std(axis=0), strict=True):
        heights = edge[edge[:, 0] == x, 1]
        np.testing.assert_allclose([heights.min(), heights.max()], [mean - spread, mean + spread])
    for axes, values in zip(others, (r, g, m), strict=True):
        np.testing.assert_allclose(lines(axes)[:-1], values)
        np.testing.assert_array_equal(axes.lines[0].get_xdata(), np.arange(1, 9))
        assert list(axes.lines[-1].get_xdata()) == [8.5, 8.5]  # where Z has no more directions
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "linear", "log", "linear"]
    assert legend(others[2]) == ["0", "2", "10"]
    brightness = [sum(to_rgb(line.get_color())) for line in others[0].lines[:-1]]
    assert brightness == sorted(brightness, reverse=True)  # dark = late


def test_alignment_draws_some_of_many_epochs_with_the_first_and_the_last():
    g = np.arange(50.0)[:, None] + np.ones((50, 300))
    figure = draw(
        alignment(np.ones((1, 80)), g / 50, g, g, np.arange(80), curve_epochs=10 + np.arange(50), max_curves=5)
    )
    shown = [y[0] for y in lines(figure.axes[2])[:-1]]
    assert len(shown) == 5
    assert (shown[0], shown[-1]) == (1, 50)
    assert (legend(figure.axes[3])[0], legend(figure.axes[3])[-1]) == ("10", "59")


def test_alignment_of_one_point_and_of_what_has_no_direction():
    draw(alignment([[1.0]], [[NAN]], [[0.0]], [[0.0]], [7]))
    gaps = draw(alignment(np.zeros((2, 1)), [[1.0, NAN, -0.2]], [[3.0, 1e-9, -1e-17]], [[0.0, 1, 1]], [7]))
    np.testing.assert_array_equal(lines(gaps.axes[1])[0], [1, NAN, -0.2])
    assert gaps.axes[1].get_ylim()[0] <= -0.2


# --- orthogonal -------------------------------------------------------------------------------------------------


def subspaces(per=6, k=4, turn=None):
    """k orthogonal lines, points on both sides of the origin."""
    classes = np.random.default_rng(0).permutation(np.repeat(np.arange(k), per))
    Z = np.eye(k)[classes] * np.where(rows(len(classes), 1) > 0, 2.0, -3.0)
    return Z if turn is None else Z @ turn, classes


def test_orthogonal_shows_gram_matrices_by_class():
    Z, classes = subspaces()
    X = rows(len(classes), 3)
    figure = draw(orthogonal(X, Z, classes))
    order = np.argsort(classes, kind="stable")
    unit = X[order] / np.linalg.norm(X[order], axis=1, keepdims=True)
    before, after = (next(a for a in figure.axes if a.images and name in a.get_title()) for name in ("X", "Z"))
    np.testing.assert_allclose(before.images[0].get_array(), np.abs(unit @ unit.T))
    same = classes[order][:, None] == classes[order]
    np.testing.assert_allclose(after.images[0].get_array(), same)
    assert after.get_title().endswith("mean 1.00 in a class, 0.00 across")
    assert (before.get_xlabel(), before.get_ylabel()) == ("class", "class")
    assert [tick.get_text() for tick in before.get_xticklabels()] == ["0", "1", "2", "3"]


def cubes(figure):
    return [axes for axes in figure.axes if axes.name == "3d"]


def test_orthogonal_draws_three_classes_in_their_principal_space_without_centring():
    Z, classes = subspaces(turn=np.linalg.qr(rows(4, 4))[0])
    crowd = np.array([5.0, 0, 0, 0]) + 0.1 * rows(len(classes), 4)
    figure = draw(orthogonal(crowd, Z, classes, three=[3, 0, 2]))
    left, right = cubes(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["class 3", "class 0", "class 2"]
    assert right.get_title() == "angles between the lines: 90°, 90°, 90°"
    for collection, c in zip(right.collections, (3, 0, 2), strict=True):
        points = np.stack([np.asarray(x) for x in collection._offsets3d], axis=1)
        assert len(points) == 6
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1)  # all of length 1 fits in three dimensions
        np.testing.assert_allclose(np.abs(points @ points.T), 1)  # and a class is a line through the origin
        np.testing.assert_allclose(to_rgb(collection.get_facecolor()[0]), to_rgb(cluster_colour(c)))
    angles = [float(word.strip("°,")) for word in left.get_title().split()[4:]]
    assert max(angles) < 5  # centred, they would be spread


def test_orthogonal_samples_large_data_and_keeps_rare_classes():
    most = 60
    classes = np.concatenate([np.zeros(3 * most, dtype=int), [1, 2]])
    figure = orthogonal(rows(len(classes)), rows(len(classes), 3), classes, max_rows=most)
    assert figure.axes[0].images[0].get_array().shape == (most, most)
    assert [len(c._offsets3d[0]) for c in cubes(figure)[0].collections] == [most // 3, 1, 1]
    assert f"{most} of {len(classes):,} rows" in note(figure)


@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (3, 2, 2), (60, 7, 30)])
def test_orthogonal_of_odd_sizes(n, d, k):
    X = rows(n, d)
    X[0] = 0
    draw(orthogonal(X, rows(n, 1), np.arange(n) % k))


# --- structure --------------------------------------------------------------------------------------------------


def test_structure_has_csc_and_thick_lines_in_the_blocks_thin_ones_off():
    csc, *entries = rows(5, 4) ** 2
    figure = draw(structure([0, 1, 5, 9], csc, *entries))
    first, left, right = figure.axes
    np.testing.assert_allclose(lines(first)[1], csc)  # behind it the line at 0
    np.testing.assert_allclose([*lines(left), *lines(right)], entries)
    np.testing.assert_array_equal(left.lines[0].get_xdata(), [0, 1, 5, 9])
    for axes in (left, right):
        thick, thin = (line.get_linewidth() for line in axes.lines)
        assert thick > 2 * thin
        assert axes.get_ylim()[0] == 0
    assert left.lines[0].get_color() != right.lines[0].get_color()
    assert f"from {csc[0]:.3g} to {csc[-1]:.3g}" in figure.get_label()


@pytest.mark.parametrize("n", [1, 200])
def test_structure_of_odd_sizes(n):
    draw(structure(np.arange(n), -np.ones(n), *np.zeros((4, n))))
    draw(structure(np.arange(n), *np.zeros((5, n))))


# --- singular_values --------------------------------------------------------------------------------------------


def test_singular_values_of_all_rows_and_of_each_class_over_the_largest():
    classes = np.arange(40) % 13
    X, Z = rows(40, 8), 3 * rows(40, 5, seed=1)
    figure = draw(singular_values(X, Z, classes, max_classes=4))
    every, of_x, of_z = figure.axes
    for i, (U, axes) in enumerate(((X, of_x), (Z, of_z))):
        wanted = np.sqrt(np.linalg.eigvalsh(U.T @ U)[::-1])
        np.testing.assert_allclose(lines(every)[i], wanted / wanted[0])
        assert len(axes.lines) == 4
        mine = U[classes == 2]
        wanted = np.sqrt(np.linalg.eigvalsh(mine @ mine.T)[::-1])
        np.testing.assert_allclose(lines(axes)[2], wanted / wanted[0])
        np.testing.assert_array_equal(axes.lines[2].get_xdata(), np.arange(1, len(wanted) + 1))
    ranks = [float(theory.effective_rank(torch.from_numpy(U))) for U in (X, Z)]
    assert legend(every) == [f"X  ({ranks[0]:.1f})", f"Z  ({ranks[1]:.1f})"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0", "1", "2", "3"]
    assert "first 4\nof 13" in figure.legends[0].get_title().get_text()


def test_singular_values_show_ten_classes_by_default_and_bear_zeros():
    figure = draw(singular_values(np.zeros((26, 2)), rows(26, 1), np.arange(26)))
    assert len(figure.axes[1].lines) == 10
    draw(singular_values([[0.0]], [[0.0]], [5]))


# --- water_filling ----------------------------------------------------------------------------------------------


def test_water_filling_fills_from_the_level_to_the_curve():
    eigenvalues = np.array([0.1, 0.2, 0.8, 2.0])
    alpha, gamma, nu = 2.0, 1.5, 0.4
    curve = 1 / (nu + gamma * eigenvalues)
    predicted = np.maximum(0, curve[:3] - 1 / alpha)
    figure = draw(water_filling(eigenvalues, alpha, gamma, nu, predicted, observed=predicted + 0.1))
    (axes,) = figure.axes
    values, edges, baseline = axes.patches[0].get_data()
    np.testing.assert_allclose(values, 0.5 + predicted)
    np.testing.assert_allclose(edges, [0.5, 1.5, 2.5, 3.5])
    np.testing.assert_allclose(baseline, 0.5)
    line, level, dots, last = axes.lines
    np.testing.assert_allclose(line.get_xydata(), np.stack([[1, 2, 3, 4], curve], axis=1))
    np.testing.assert_allclose(level.get_ydata(), 0.5)
    np.testing.assert_allclose(dots.get_xydata(), np.stack([[1, 2, 3], 0.6 + predicted], axis=1))
    np.testing.assert_allclose(last.get_xdata(), 3.5)
    (height,) = axes.child_axes
    np.testing.assert_allclose(height.get_ylim(), np.array(axes.get_ylim()) - 0.5)
    assert "d = 3: Z has no more directions" in legend(axes)


def test_water_filling_counts_lost_directions_and_needs_no_observation():
    figure = draw(water_filling([0.1, 0.5, 9.0], 1.0, 1.0, 0.1, [4.0, 0.67, 0.0]))
    assert "1 of 3 are lost." in note(figure)
    assert "Dots" not in note(figure)
    assert "observed σᵢ²" not in legend(figure.axes[0])
    draw(water_filling([0.5], 1.0, 0.0, 0.1, [4.0], [4.1]))
    draw(water_filling(np.linspace(0, 4, 700), 1.0, 1.0, 0.5, np.zeros(128), np.ones(128)))


# --- all --------------------------------------------------------------------------------------------------------

ONE = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: alignment(np.ones((5, 3)), ONE, ONE, ONE, [0, 1]),
            r"commutator must .* 2 columns; got shape \(5, 3\)",
        ),
        (lambda: alignment(ONE[:, :2], ONE[:1], ONE, ONE, [0, 1]), "correlations must .* 2 rows"),
        (lambda: alignment(ONE[:, :2], ONE, ONE, ONE[:, :2], [0, 1]), "eigenvalues_M must .* 3 columns"),
        (lambda: alignment(ONE[:, :2], ONE, ONE * NAN, ONE, [0, 1]), "eigenvalues_G has 6 values that are NaN"),
        (lambda: alignment(ONE[:, :2], ONE, ONE, ONE, [1, 1]), "epochs must ascend"),
        (lambda: alignment(ONE, ONE, ONE, ONE, [0, 1, 2], [0]), "correlations must .* 1 rows"),
        (lambda: orthogonal(rows(4), rows(5), [0, 1, 2, 3]), "Z must be a 2-D array with 4 rows"),
        (lambda: orthogonal(rows(4), rows(4), [0, 1, 2, 3], [0, 1, 1]), "three must name 3 different classes"),
        (lambda: orthogonal(rows(4), rows(4), [0, 1, 2, 3], [0, 1, 9]), r"among the 4 in classes; got \[0, 1, 9\]"),
        (lambda: orthogonal(rows(4), rows(4), [0.0, 1, 2, 3]), "labels must be .* integers"),
        (lambda: structure([0, 1], [1, 2], [1, 2], [1, 2], [1], [1, 2]), "c_inside must be a list of 2 numbers"),
        (lambda: structure([0, 1], [1, NAN], [1, 2], [1, 2], [1, 2], [1, 2]), "csc has 1 values that are NaN"),
        (lambda: structure([], [], [], [], [], []), "epochs must be a list of one or more"),
        (lambda: singular_values(rows(4), rows(3), [0, 1, 2, 3]), "Z must be a 2-D array with 4 rows"),
        (lambda: singular_values(rows(4) * NAN, rows(4), [0, 1, 2, 3]), "X has 24 values"),
        (lambda: water_filling([1.0], 1, 1, 1, [1, 2]), "eigenvalues_M must be 2 or more ascending"),
        (lambda: water_filling([2.0, 1.0], 1, 1, 1, [1, 2]), "ascending"),
        (lambda: water_filling([1.0, 2.0], 1, 1, -1.5, [1, 2]), "above 0"),
        (lambda: water_filling([1.0, 2.0], 0, 1, 1, [1, 2]), "above 0"),
        (lambda: water_filling([1.0, 2.0], 1, 1, 1, [1, 2], [1]), "observed must be a list of 2 numbers"),
    ],
)
def test_figures_refuse_what_they_cannot_show(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_figures_leave_matplotlib_as_it_was():
    before = {key: mpl.rcParams[key] for key in mpl.rcParams if key != "backend"}
    structure([0], [1], [1], [1], [1], [1])
    with pytest.raises(InputError):
        orthogonal(rows(3), rows(3) * NAN, [0, 1, 2])
    assert {key: mpl.rcParams[key] for key in mpl.rcParams if key != "backend"} == before
