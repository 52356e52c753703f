from __future__ import annotations

import pytest

from batchlab.plots import style
from batchlab.plots.axes import decimal_ticks, power_ticks, set_axes
from batchlab.plots.panel import Axis, Panel


def drawn(x_axis: Axis, y_axis: Axis, is_small: bool = False):
    """Return axes that were set."""
    ax = style.new_figure(3, 3).add_subplot()
    set_axes(ax, Panel(title="", x_axis=x_axis, y_axis=y_axis, series=()), is_small)
    return ax


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.7, 20, [0, 1, 2, 3, 4]),
        (0.7, 70_000, [0, 2, 4, 6, 8, 10, 12, 14, 16]),
        (60, 1100, [6, 7, 8, 9, 10]),
        (0.3, 3, [-1, 0, 1]),
    ],
)
def test_ticks_are_evenly_spaced_powers(low, high, expected):
    assert expected == power_ticks(low, high, base=2)


def test_a_small_panel_gets_fewer_ticks():
    assert [0, 4, 8, 12, 16] == power_ticks(0.7, 70_000, base=2, max_ticks=5)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.015, 0.6, [0.02, 0.05, 0.1, 0.2, 0.5]),
        (0.0008, 12, [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]),
        (1e-6, 10, [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10]),
        (0.07, 0.16, [0.07, 0.08, 0.09, 0.1, 0.12, 0.15]),
    ],
)
def test_decimal_ticks_thin_out_over_many_decades_and_thicken_within_one(low, high, expected):
    assert expected == decimal_ticks(low, high)


def test_powers_and_numbers_are_written_as_asked():
    powers = drawn(Axis("x", "log2", 0.7, 20), Axis("y", "log10", 0.5, 20))
    numbers = drawn(Axis("x", "log2", 200, 3000, "numbers"), Axis("y", "log10", 0.02, 0.3, "numbers"))

    assert ["$2^{0}$", "$2^{1}$", "$2^{2}$", "$2^{3}$", "$2^{4}$"] == labels(powers.get_xticklabels())
    assert ["$10^{0}$", "$10^{1}$"] == labels(powers.get_yticklabels())
    assert ["256", "512", "1,024", "2,048"] == labels(numbers.get_xticklabels())
    assert ["0.02", "0.05", "0.1", "0.2"] == labels(numbers.get_yticklabels())


def test_scales_limits_and_labels_are_those_of_the_panel():
    ax = drawn(Axis("of x", "log2", 1, 8), Axis("of y", "linear", 0, 0.5))

    assert ("log", "linear") == (ax.get_xscale(), ax.get_yscale())
    assert ((1, 8), (0, 0.5)) == (ax.get_xlim(), ax.get_ylim())
    assert ("of x", "of y") == (ax.get_xlabel(), ax.get_ylabel())


def test_written_out_numbers_are_fewer_in_a_small_panel():
    wide = Axis("x", "log2", 0.7, 70_000, "numbers")

    assert ["1", "16", "256", "4,096", "65,536"] == labels(drawn(wide, wide, is_small=True).get_xticklabels())


def labels(texts):
    """Return the words of tick labels."""
    return [text.get_text() for text in texts]
