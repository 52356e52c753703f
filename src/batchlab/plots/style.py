"""How every figure looks: colours and sizes.

Nothing here changes matplotlib for anyone else: settings hold inside `applied()` only.
"""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK = "#1a1a1a"
"""Text, axes and guides. The report lets it follow the colour of the page's own text."""

PAPER = "#ffffff"
"""The background, and the inside of hollow markers."""

# Okabe and Ito's palette, told apart by readers with any colour vision.
BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
ORANGE = "#E69F00"
PURPLE = "#CC79A7"

# These stand out from a white page and from a dark one.
GREY = "#767676"
HATCH = "#a8a8a8"

_SETTINGS: dict[Any, Any] = {
    "axes.edgecolor": INK,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "hatch.linewidth": 0.35,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.alpha": 0.12,
    "grid.color": INK,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.edgecolor": "none",
    "legend.facecolor": PAPER,
    "legend.framealpha": 0.75,
    "lines.linewidth": 1.4,
    "lines.markersize": 6.5,
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "batchlab",
    "text.color": INK,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}


_NOTEBOOK_DPI = 110


def applied() -> AbstractContextManager[None]:
    """Return a context in which figures are made, drawn and saved in this style."""
    return matplotlib.rc_context(_SETTINGS)


class ShownFigure(Figure):
    """A matplotlib figure that a notebook shows as an image, though it is tied to no window and not to pyplot."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        with applied():
            self.savefig(out, format="png", dpi=_NOTEBOOK_DPI)
        return out.getvalue()


def new_figure(width: float, height: float) -> ShownFigure:
    """Return an empty figure of that size in inches, tied to no window."""
    figure = ShownFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
