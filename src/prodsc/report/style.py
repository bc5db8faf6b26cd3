"""One look for every figure: colours that survive colour blindness, one font, settings that never leak."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl

# Six colours of Okabe and Ito, then 14 picked one by one, each as far as possible (CIE Lab) from those before it in
# the worst of four views: normal sight, protanopia, deuteranopia, tritanopia. So small k gets the best contrasts,
# and 20 colours are as far apart as the original set. White paper is assumed: nothing is paler than L = 84.
COLOURS: tuple[str, ...] = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#21212c", "#9021ff", "#642c0b", "#ded385",
    "#0021a6", "#4e0b64", "#e9004e", "#907aff", "#a6debc", "#9b2c6f", "#00e9e9", "#376437", "#37160b", "#bcde59",
)  # fmt: skip

# The same hues on a dark screen, each lightened to be as far as possible from those before it, in the same four views.
COLOURS_ON_DARK: tuple[str, ...] = (
    "#2f9be0", "#e69f00", "#00b586", "#e8703a", "#8fd0f7", "#e08fc0", "#eee9f8", "#8a569f", "#b3754a", "#f0d187",
    "#8b76f4", "#7d53c3", "#d5082b", "#5e52ed", "#567859", "#aa699b", "#28766d", "#c1e4b4", "#cebab4", "#9cf058",
)  # fmt: skip

MARKERS = ("o", "^", "s", "D", "v", "P", "X")
INK = "#222222"
MUTED = "#5a5a5a"  # 6.9:1 on white, so small captions stay readable
HEAT = "magma"  # lightness rises evenly, so it reads the same in grey and to the colour blind
PHASE_TINTS = ("#e3ecf6", "#fdf0d5", "#def1e8", "#f6e3ec")  # pale: lines stay readable on top

_RC: Any = {  # matplotlib types the keys one by one, and differently in each version
    "font.family": ["DejaVu Sans"],  # comes with matplotlib: the same picture on every machine
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 9.0,
    "figure.titlesize": 12.0,
    "figure.titleweight": "bold",
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "pdf.fonttype": 42,  # text stays text, which journals ask for
    "svg.hashsalt": "prodsc",  # the same figure gives the same file
    "axes.facecolor": "white",
}


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this block in the house style; matplotlib's own settings return when it ends, also on an error."""
    with mpl.rc_context(rc=_RC):
        yield


def cluster_colour(label: int) -> str:
    """The colour of a cluster, the same in every figure; from the 21st cluster on colours repeat."""
    return COLOURS[label % len(COLOURS)]


def cluster_marker(label: int) -> str:
    """The shape of a cluster's dots: another one for every 20 clusters, so that colour and shape tell 140 apart."""
    return MARKERS[label // len(COLOURS) % len(MARKERS)]
