from __future__ import annotations

import matplotlib
import pytest

from batchlab.plots import style


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.7, 20, [1, 2, 4, 8, 16]),
        (0.7, 70_000, [1, 4, 16, 64, 256, 1024, 4096, 16384, 65536]),
        (60, 1100, [64, 128, 256, 512, 1024]),
        (0.3, 3, [1, 2]),
    ],
)
def test_ticks_are_evenly_spaced_powers_of_two_and_never_fractions(low, high, expected):
    assert expected == style.power_of_two_ticks(low, high)


def test_a_small_panel_gets_fewer_ticks():
    assert style.power_of_two_ticks(0.7, 70_000, max_ticks=5) == [1, 16, 256, 4096, 65536]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.015, 0.6, [0.02, 0.05, 0.1, 0.2, 0.5]),
        (0.0008, 12, [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10]),
        (1e-6, 10, [1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10]),
    ],
)
def test_decimal_ticks_thin_out_over_many_decades(low, high, expected):
    assert expected == style.decimal_ticks(low, high)


def test_the_style_leaves_no_trace():
    before = dict(matplotlib.rcParams)
    with style.applied():
        inside = matplotlib.rcParams["svg.hashsalt"]

    assert inside == "batchlab"
    assert before == dict(matplotlib.rcParams)
