from __future__ import annotations

import matplotlib
import pytest

from batchlab.plots import style


def test_the_style_leaves_no_trace():
    before = dict(matplotlib.rcParams)
    with style.applied():
        inside = matplotlib.rcParams["svg.hashsalt"]

    assert "batchlab" == inside
    assert before == dict(matplotlib.rcParams)


def luminance(colour: str) -> float:
    """Relative luminance as the Web Content Accessibility Guidelines define it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("page", ["#ffffff", "#16181c"])
@pytest.mark.parametrize("colour", [style.BLUE, style.VERMILION, style.GREEN, style.GREY])
def test_lines_stand_out_from_a_white_page_and_from_a_dark_one(colour, page):
    """By a contrast of 3 to 1, what the guidelines ask of graphics."""
    dark, light = sorted([luminance(colour), luminance(page)])

    assert (light + 0.05) / (dark + 0.05) > 3
