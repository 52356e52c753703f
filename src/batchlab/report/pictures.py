"""Figures for a page: each drawn for a screen and again, its panels below each other, for a phone."""

from __future__ import annotations

from collections.abc import Sequence

from batchlab.plots import draw_sheet, svg_text
from batchlab.plots.panel import Panel
from batchlab.plots.sheet import Sheet
from batchlab.plots.style import ShownFigure
from batchlab.report.blocks import Picture
from batchlab.report.inline_svg import inline_svg

_PHONE_WIDTH = 3.9
"""Inches: letters keep about their size on a screen of 400 pixels."""

_PHONE_ASPECT = 1.05


def make_picture(figure: ShownFigure, panels: Sequence[Panel], anchor: str, label: str, caption: str) -> Picture:
    """Return a figure and its panels again for a phone; ids in them begin with `anchor`, so that figures stay apart."""
    sheet = Sheet(caption="", columns=1, panels=tuple(panels), panel_aspect=_PHONE_ASPECT, width=_PHONE_WIDTH)
    return Picture(
        wide=inline_svg(svg_text(figure), anchor, label),
        narrow=inline_svg(svg_text(draw_sheet(sheet)), f"{anchor}-narrow", label),
        caption=caption,
    )
