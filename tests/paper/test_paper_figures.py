"""Figures of many fits show the numbers they were given, and refuse what they cannot show."""

import math

import numpy as np
import pytest
from matplotlib.collections import PolyQuadMesh, QuadMesh

from prodsc.errors import InputError
from prodsc.paper.figures import phase

NAN = math.nan
ONE = np.ones((2, 3))


def draw(figure):
    """Warnings are errors, so this also checks that a figure can be drawn without one."""
    figure.draw_without_rendering()
    assert figure.get_label().endswith(".")
    return figure


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


ALPHAS, GAMMAS = [1.0, 10.0, 100.0], [4.0, 16.0]
ACC, SRE = [[90.0, NAN, 97.4], [10.0, 50, 96]], [[9.0, NAN, 2], [85.0, 40, 3]]


def mesh(axes):
    return next(c for c in axes.collections if type(c) is QuadMesh)


def test_phase_shows_both_scores_where_they_belong():
    figure = draw(phase(ALPHAS, GAMMAS, ACC, SRE, [3.0, 30.0, 300.0]))
    for axes, values in zip(figure.axes[:2], (ACC, SRE), strict=True):
        shown = mesh(axes).get_array()
        np.testing.assert_array_equal(shown.filled(NAN), values)
        assert mesh(axes).get_clim() == (0, 100)
        corners = mesh(axes).get_coordinates()
        np.testing.assert_allclose(corners[0, :, 0], [10**-0.5, 10**0.5, 10**1.5, 10**2.5])
        np.testing.assert_allclose(corners[:, 0, 1], [2, 8, 32])
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        written = {tuple(text.xy): text.get_text() for text in axes.texts}
        assert written == {
            (a, g): f"{values[i][j]:.0f}"
            for i, g in enumerate(GAMMAS)
            for j, a in enumerate(ALPHAS)
            if values[i][j] == values[i][j]
        }
        np.testing.assert_array_equal(axes.lines[0].get_xydata(), [[1, 3], [10, 30], [100, 300]])
    good, bad = (mesh(axes).cmap for axes in figure.axes[:2])
    assert sum(good(1.0)) > sum(good(0.0))  # bright is good: much ACC,
    assert sum(bad(1.0)) < sum(bad(0.0))  # little SRE


def test_phase_hatches_failed_runs_only():
    figure = draw(phase(ALPHAS, GAMMAS, ACC, SRE, [3.0, 30.0, 300.0]))
    for axes in figure.axes[:2]:
        (holes,) = (c for c in axes.collections if type(c) is PolyQuadMesh)
        assert holes.get_hatch()
        assert np.ma.getmaskarray(holes.get_array()).tolist() == [[True, False, True], [True, True, True]]
    assert legend(figure.axes[1]) == ["run failed (1 of 6)"]
    assert "run failed (1 of 6)" in figure.get_label()


def test_phase_draws_a_boundary_from_edge_to_edge():
    figure = phase(ALPHAS, GAMMAS, ACC, SRE, lambda alpha: alpha**2 / (alpha + 0.5))
    x, y = figure.axes[1].lines[0].get_xydata().T
    np.testing.assert_allclose([x[0], x[-1]], figure.axes[1].get_xlim())
    np.testing.assert_allclose(y, x**2 / (x + 0.5))


@pytest.mark.parametrize(("n_alphas", "n_gammas"), [(1, 1), (2, 1), (9, 8)])
def test_phase_of_odd_sizes(n_alphas, n_gammas):
    a, g = np.geomspace(0.01, 1e4, n_alphas), np.geomspace(1, 7e3, n_gammas)
    values = np.full((n_gammas, n_alphas), 100.0)
    figure = draw(phase(a, g, values, 0 * values, a))
    assert len(figure.axes[0].texts) == values.size
    assert 1 <= len(figure.axes[0].get_xticks()) <= 7


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: phase(GAMMAS, ALPHAS, ACC, SRE, GAMMAS), "acc must .* 3 rows and 2 columns"),
        (lambda: phase(ALPHAS, GAMMAS, ACC, ONE.T, ALPHAS), "sre must .* 2 rows and 3 columns"),
        (lambda: phase(ALPHAS, GAMMAS, ACC, 101 * ONE, ALPHAS), "percents from 0 to 100"),
        (lambda: phase(ALPHAS, GAMMAS, -ONE, ONE, ALPHAS), "percents from 0 to 100"),
        (lambda: phase(ALPHAS, GAMMAS, NAN * ONE, ONE, ALPHAS), "not all may have failed"),
        (lambda: phase(ALPHAS, GAMMAS, ACC, SRE, GAMMAS), "boundary must be a list of 3 numbers"),
        (lambda: phase([0.0, 1, 2], GAMMAS, ACC, SRE, ALPHAS), "alphas must ascend from above 0"),
        (lambda: phase(ALPHAS, [16.0, 4.0], ACC, SRE, ALPHAS), "gammas must ascend"),
    ],
)
def test_figures_refuse_what_they_cannot_show(call, message):
    with pytest.raises(InputError, match=message):
        call()
