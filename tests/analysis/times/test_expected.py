"""Numbers with their errors: products of them, and bounds that are too far away to say anything."""

from __future__ import annotations

import math

import pytest

from batchlab.analysis import Expected, Interval
from batchlab.analysis.interval import NO_INTERVAL, SPAN
from batchlab.analysis.times.link import FittedLink
from batchlab.analysis.times.throughput_fit import ThroughputFit

UNKNOWN = ((100.0, 0.0), (0.0, 100.0))


@pytest.mark.parametrize(
    ("interval", "told"),
    [
        (Interval(1e-35, 1e40), NO_INTERVAL),
        (Interval(0.01, 20 * SPAN), Interval(0.01, None)),
        (Interval(0.0, 20.0), Interval(None, 20.0)),
        (Interval(0.01, 10_000.0), Interval(0.01, 10_000.0)),
        (Interval(0.0099, 10_001.0), NO_INTERVAL),
        (None, None),
    ],
)
def test_a_bound_beyond_a_factor_of_a_thousand_is_none(interval, told):
    assert Expected(10.0, interval).interval == told


def test_a_product_that_knows_too_little_has_no_interval_though_both_of_its_parts_have():
    far = Expected(1.0, Interval(1 / 900, 900.0))

    assert far.times(far).interval == NO_INTERVAL
    assert far.times(Expected(1.0, Interval(0.5, 2.0))).interval == Interval(
        pytest.approx(math.exp(-math.hypot(math.log(900), math.log(2)))),
        pytest.approx(math.exp(math.hypot(math.log(900), math.log(2)))),
    )


def test_a_width_that_no_float_holds_is_no_interval():
    line = ThroughputFit(
        t0=0.02, seconds_per_example=0.001, covariance=UNKNOWN, scatter=90.0, degrees_of_freedom=1, residuals=(90.0,)
    )
    link = FittedLink(form="gloo", latency=0.002, bandwidth=1e7, covariance=UNKNOWN, degrees_of_freedom=1)

    assert line.step_seconds(64).interval == NO_INTERVAL
    assert (line.t0_interval, line.tau_interval) == (NO_INTERVAL, NO_INTERVAL)
    assert (link.latency_interval, link.bandwidth_interval) == (NO_INTERVAL, NO_INTERVAL)


def test_one_end_of_the_time_of_an_example_is_the_other_end_of_tau():
    line = ThroughputFit(
        t0=0.02,
        seconds_per_example=0.001,
        covariance=((1e-8, 0.0), (0.0, 1e-6)),
        degrees_of_freedom=10_000_000,
        residuals=(0.1,),
    )

    assert line.tau_interval == Interval(pytest.approx(1 / (0.001 + 1.96e-3), rel=1e-3), None)
