"""The style: colours that can be told apart, and settings that do not leak."""

import subprocess
import sys
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from prodsc.report.style import COLOURS, COLOURS_ON_DARK, cluster_colour, cluster_marker, style

# Machado, Oliveira and Fernandes 2009, severity 1.0, for linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]),
    "deuteranopia": np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]),
    "tritanopia": np.array([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]]),
}


def settings():
    """Without the backend, because only to read it would import pyplot."""
    return {key: mpl.rcParams[key] for key in mpl.rcParams if key != "backend"}


def _reference_lab(colours, sight):
    rgb = np.array([to_rgb(colour) for colour in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ sight.T, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = seen @ to_xyz.T / [0.9505, 1, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1)


@pytest.mark.parametrize("sight", SIGHT)
def test_twenty_colours_can_be_told_apart(sight):
    assert len(COLOURS) == 20
    lab = _reference_lab(COLOURS, SIGHT[sight])
    nearest = min(np.linalg.norm(a - b) for a, b in combinations(lab, 2))
    assert nearest > 15  # a difference of 2 is just visible; the eight colours of Okabe and Ito reach 16
    assert _reference_lab(COLOURS, SIGHT["normal"])[:, 0].max() < 85  # nothing fades into white paper


@pytest.mark.parametrize("sight", SIGHT)
def test_ten_colours_are_as_far_apart_as_six_of_okabe_and_ito(sight):
    """Ten clusters are the usual case; 16.1 is what bluish green and sky blue leave without short-wave cones."""
    lab = _reference_lab(COLOURS[:10], SIGHT[sight])
    assert min(np.linalg.norm(a - b) for a, b in combinations(lab, 2)) > 16


def test_beyond_twenty_clusters_colours_repeat_with_another_shape():
    assert cluster_colour(0) == cluster_colour(20) == COLOURS[0]
    assert cluster_colour(19) != cluster_colour(0)
    previews = [(cluster_colour(c), cluster_marker(c)) for c in range(140)]
    assert len(set(previews)) == 140
    assert {cluster_marker(c) for c in range(20)} == {"o"}


def test_style_is_local():
    before = settings()
    with style():
        assert mpl.rcParams["legend.frameon"] is False
        assert settings() != before
    assert settings() == before


def test_style_returns_after_an_error():
    before = settings()
    with pytest.raises(RuntimeError), style():
        raise RuntimeError
    assert settings() == before


def test_imports_stay_light_and_pyplot_stays_out():
    script = (
        "import sys, prodsc.report; assert 'matplotlib.figure' not in sys.modules, 'matplotlib at import'\n"
        "from prodsc.report import figures, page\n"
        "page.render_page(title='t', facts={}, figures=[(figures.spectrum([[1.0, 2.0]]), 'h', 'c')])\n"
        "assert 'matplotlib.pyplot' not in sys.modules, 'pyplot'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_cluster_has_the_same_hue_in_light_and_dark():
    hues = [
        np.arctan2(lab[:, 2], lab[:, 1])
        for lab in (_reference_lab(c, SIGHT["normal"]) for c in (COLOURS, COLOURS_ON_DARK))
    ]
    turned = np.abs((hues[0] - hues[1] + np.pi) % (2 * np.pi) - np.pi)
    assert np.degrees(turned).max() < 13
