from __future__ import annotations

import pytest

from batchlab.plots.scales import linear_axis, log_axis


def test_a_log_axis_holds_its_values_with_half_an_octave_to_spare():
    axis = log_axis("x", "log2", [16.0, None, 64.0])

    assert pytest.approx((16 / 2**0.5, 64 * 2**0.5)) == (axis.low, axis.high)


def test_guides_widen_it_up_to_their_reach():
    near, far = (log_axis("x", "log2", [16.0], [4.0, 32.0], reach=reach) for reach in (8.0, 2.0))

    assert pytest.approx((4 / 2**0.5, 32 * 2**0.5)) == (near.low, near.high)
    assert pytest.approx((8 / 2**0.5, 32 * 2**0.5)) == (far.low, far.high)


def test_nothing_and_zero_leave_an_axis_around_1():
    assert pytest.approx((2**-0.5, 2**0.5)) == (log_axis("x", "log2", [0.0]).low, log_axis("x", "log2", []).high)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0.01, 0.02, 0.5], 0.0, 0.04),  # most of them inside: the window, which may cut off the worst
        ([0.5, 0.6, 0.7], 0.49, 0.71),  # none inside: their own range and a twentieth on each side
        ([-0.1, 0.01, 0.02], -0.107, 0.04),  # the best is never cut off
    ],
)
def test_a_linear_axis_is_the_window_where_that_holds_most(values, low, high):
    axis = linear_axis("y", values, (0.0, 0.04))

    assert pytest.approx((low, high)) == (axis.low, axis.high)


def test_one_value_gets_some_room():
    assert pytest.approx((0.2, 0.4)) == (linear_axis("y", [0.3]).low, linear_axis("y", [0.3]).high)
