from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchlab.analysis import Interval, fit_shape
from batchlab.analysis.curve.shape_curve import ShapeRanges

SIZES = 2.0 ** np.arange(8)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1, 1e4), min_size=8, max_size=8))
def test_the_curve_is_convex_with_a_slope_between_minus_one_and_zero(steps):
    curve = fit_shape(SIZES, np.array(steps))
    slopes = np.diff(curve.log_curve) / np.diff(curve.log_sizes)

    assert (slopes >= -1 - 1e-4).all() and (slopes <= 1e-4).all()
    assert (np.diff(slopes) >= -1e-4).all()


def test_a_curve_of_the_shape_is_its_own_fit():
    steps = np.array([900.0, 460, 240, 130, 90, 70, 60, 55])

    np.testing.assert_allclose(np.exp(fit_shape(SIZES, steps).log_curve), steps, rtol=1e-4)


def test_rising_steps_become_flat_and_too_steep_ones_perfect():
    np.testing.assert_allclose(np.exp(fit_shape(SIZES, SIZES).log_curve), np.exp(np.log(SIZES).mean()), rtol=1e-4)
    steep = fit_shape(SIZES, 1e6 / SIZES**1.5)
    np.testing.assert_allclose(steep.efficiency(), 1, rtol=1e-4)


def test_thresholds_are_read_off_the_curve():
    # A knee at 8: efficiency is 8 / B beyond it, and the steps are 25 % above the fewest at 8 / 1.25.
    curve = fit_shape(SIZES, np.maximum(1000 / SIZES, 125))

    assert pytest.approx(curve.end_of_perfect(), rel=1e-3) == 10
    assert pytest.approx(curve.start_of_maximal(), rel=1e-3) == 6.4


def test_an_end_that_was_not_seen_is_none():
    assert fit_shape(SIZES, 1000 / SIZES).end_of_perfect() is None
    assert fit_shape(SIZES, np.full(8, 1000.0)).start_of_maximal() is None


def ranges(steps, allowance=1e-3):
    return ShapeRanges(fit_shape(SIZES, steps), allowance)


def test_ranges_hold_the_value_and_widen_with_the_noise():
    steps = np.maximum(1000 / SIZES, 125)
    narrow, wide = ranges(steps).end_of_perfect(), ranges(steps, 0.05).end_of_perfect()

    assert wide.low < narrow.low < 10 < narrow.high < wide.high
    found = ranges(steps).start_of_maximal()
    assert found.low < 6.4 < found.high


def test_the_range_of_an_end_that_was_not_seen_is_open():
    assert ranges(1000 / SIZES).end_of_perfect().high is None
    assert ranges(1000 / SIZES).start_of_maximal().high is None
    assert ranges(np.full(8, 1000.0)).start_of_maximal().low is None


def test_the_smallest_batch_size_is_the_reference():
    found = ranges(np.maximum(1000 / SIZES, 125))

    assert found.efficiency(1) == Interval(1.0, 1.0)
    assert found.efficiency(16).low < 0.5 < found.efficiency(16).high
    assert found.efficiency(4).high == 1.0
