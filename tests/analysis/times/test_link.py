"""Latency and bandwidth from the times of sums; how long gloo's ring takes; what steps wait for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batchlab.analysis.times.all_reduce import gloo_seconds
from batchlab.analysis.times.link import FittedLink, SeenLink, StepExchange, SumTimes, fit_link, sum_seconds
from batchlab.analysis.times.throughput import Throughput
from batchlab.analysis.times.throughput_fit import StepTimes, fit_throughput
from batchlab.errors import InputError

SIZES = (4096, 65_536, 1 << 20)
LINK = FittedLink(form="gloo", latency=0.002, bandwidth=1.25e7)

MEASURED = {  # workers, bytes: seconds of gloo's all_reduce over a link of 5 ms and 100 mbit/s; medians of n = 12
    (2, 64): 0.02185,
    (2, 4096): 0.02200,
    (2, 65_536): 0.02750,
    (2, 262_144): 0.04305,
    (2, 1 << 20): 0.10924,
    (2, 4 << 20): 0.37380,
    (4, 64): 0.06478,
    (4, 4096): 0.06552,
    (4, 65_536): 0.07309,
    (4, 262_144): 0.09518,
    (4, 1 << 20): 0.17066,
    (4, 4 << 20): 0.55369,
}


def made(link: FittedLink, workers=(2, 4), sizes=SIZES, noise: float = 0.0, repeats: int = 1) -> list[SumTimes]:
    rng = np.random.default_rng(0)
    return [
        SumTimes(
            num_bytes=size,
            workers=count,
            seconds=tuple((link.seconds(count, size) * np.exp(noise * rng.standard_normal(repeats))).tolist()),
        )
        for count in workers
        for size in sizes
    ]


@pytest.mark.parametrize("form", ["ring", "tree", "gloo"])
def test_latency_and_bandwidth_are_recovered(form):
    truth = FittedLink(form=form, latency=0.003, bandwidth=2e7)

    link = fit_link(made(truth, noise=0.05, repeats=8), (form,))

    assert link.latency == pytest.approx(0.003, rel=0.05)
    assert link.bandwidth == pytest.approx(2e7, rel=0.05)
    assert link.latency_interval.low < 0.003 < link.latency_interval.high
    assert link.bandwidth_interval.low < 2e7 < link.bandwidth_interval.high
    assert link.worst_residual < 0.1


def test_a_pair_of_workers_is_enough():
    link = fit_link(made(LINK, workers=(2,)))

    assert (link.latency, link.bandwidth) == (pytest.approx(0.002), pytest.approx(1.25e7))


def test_workers_that_waited_for_cores_say_nothing_of_the_link():
    times = [*made(LINK, workers=(2,)), *[replace(each, is_shared=True) for each in made(LINK, (4,), noise=2.0)]]

    assert fit_link(times).latency == pytest.approx(0.002)
    assert fit_link(times[len(SIZES) :]).residuals  # they are all there is


def test_ring_and_tree_are_told_apart():
    assert (
        fit_link(made(FittedLink(form="tree", latency=0.01, bandwidth=1e9), (2, 4, 8)), ("ring", "tree")).form == "tree"
    )


def test_what_gloo_took_over_a_real_link_follows_the_formula():
    for (workers, size), seconds in MEASURED.items():
        assert gloo_seconds(workers, size, 0.005, 1.25e7) == pytest.approx(seconds, rel=0.16)

    link = fit_link([SumTimes(num_bytes=size, workers=each, seconds=(s,)) for (each, size), s in MEASURED.items()])

    assert link.latency == pytest.approx(0.005, rel=0.15)
    assert link.bandwidth == pytest.approx(1.25e7, rel=0.15)


def test_gloo_hides_latency_behind_many_bytes_and_is_a_ring_of_one_element():
    assert gloo_seconds(4, 64e6, 0.002, 1.25e7) == pytest.approx(1.5 * 64e6 / 1.25e7 + 4 * 0.002, rel=0.01)
    assert gloo_seconds(4, 4096, 0.002, 1e12) == pytest.approx(12 * 0.002, rel=0.01)
    assert gloo_seconds(4, 4, 0.002, 1e12) == pytest.approx(sum_seconds("ring", 4, 4, 0.002, 1e12))


@pytest.mark.parametrize("times", [[], made(LINK, sizes=(4096,)), [SumTimes(num_bytes=8, workers=1, seconds=(1.0,))]])
def test_what_cannot_tell_a_link_is_refused(times):
    with pytest.raises(InputError, match="sums of two sizes or more"):
        fit_link(times)


def steps(exchange: StepExchange, workers=(1, 2, 4), shared=(), sizes=(64, 256, 1024)) -> list[StepTimes]:
    return [
        StepTimes(
            batch_size=size,
            workers=count,
            seconds=(0.01 + size / count / 2000 + exchange.seconds(count),) * 6,
            is_shared=count in shared,
        )
        for count in workers
        for size in sizes
    ]


def test_the_share_that_a_step_waits_for_is_fitted():
    exchange = StepExchange(link=fit_link(made(LINK)), payloads=(400_000, 4), waited=0.6)

    fit = fit_throughput(steps(exchange), StepExchange(link=exchange.link, payloads=exchange.payloads))

    assert fit.t0 == pytest.approx(0.01)
    assert fit.tau == pytest.approx(2000)
    assert isinstance(fit.all_reduce, StepExchange)
    assert fit.all_reduce.waited == pytest.approx(0.6)
    assert fit.waited_interval.low <= 0.6 <= fit.waited_interval.high
    assert fit.seconds_at(32, 16) == pytest.approx(0.01 + 0.016 + exchange.seconds(16))


def test_workers_that_wait_for_more_than_the_sums_have_a_lag():
    exchange = StepExchange(link=fit_link(made(LINK)), payloads=(400_000, 4))
    slow = [
        replace(each, seconds=tuple(s + 0.05 * (each.workers > 1) for s in each.seconds)) for each in steps(exchange)
    ]

    fit = fit_throughput(slow, exchange)

    assert fit.all_reduce.waited == 1
    assert fit.all_reduce.lag == pytest.approx(0.05)
    assert fit.lag_interval.low <= 0.05 <= fit.lag_interval.high
    assert fit.waited_interval is None
    assert fit.t0 == pytest.approx(0.01)
    assert fit.tau == pytest.approx(2000)
    assert fit.seconds_at(32, 64) == pytest.approx(0.01 + 0.016 + exchange.seconds(64) + 0.05)
    assert fit.seconds_at(32) == pytest.approx(0.01 + 0.016)


def test_what_a_link_adds_is_the_latency_without_that_of_the_software():
    fitted = fit_link(made(FittedLink(form="gloo", latency=0.0025, bandwidth=1e7), noise=0.01, repeats=8))
    without = SumTimes(num_bytes=4096, workers=2, seconds=(0.0018, 0.0019, 0.002, 0.002, 0.0021, 0.0022))

    added = SeenLink(asked="", means="", round_trip=0.004, throughput=1e7, without=without).added_latency(fitted)

    assert added.value == pytest.approx(fitted.latency - 0.002 / 4)
    assert added.interval.low < 0.00195 < 0.00205 < added.interval.high


def test_workers_that_shared_cores_are_measured_and_not_planned_with():
    exchange = StepExchange(link=fit_link(made(LINK)), payloads=(400_000, 4))
    times = [*steps(exchange, (1, 2)), StepTimes(batch_size=64, workers=4, seconds=(9.0,) * 6, is_shared=True)]

    throughput = Throughput.measured(times, exchange=exchange)

    assert throughput.workers == (1, 2, 4)
    assert throughput.planned_workers == (1, 2)
    assert throughput.fit.t0 == pytest.approx(0.01)
    assert not throughput.step_seconds(64, 2).is_extrapolated
    assert throughput.step_seconds(64, 4).is_extrapolated
    assert throughput.step_seconds(64, 4).value == pytest.approx(0.01 + 0.008 + exchange.seconds(4))


def test_where_all_share_cores_they_are_all_there_is():
    exchange = StepExchange(link=fit_link(made(LINK)), payloads=(400_000, 4))

    throughput = Throughput.measured(steps(exchange, (4,), shared=(4,)), exchange=exchange)

    assert throughput.planned_workers == (4,)


def test_one_worker_takes_the_exchange_as_it_is():
    exchange = StepExchange(link=fit_link(made(LINK)), payloads=(400_000,))

    fit = fit_throughput(steps(exchange, (1,)), exchange)

    assert fit.waited_interval is None
    assert fit.seconds_at(100, 2) == pytest.approx(0.01 + 0.05 + exchange.seconds(2))
    assert fit.step_seconds(100, 2).interval is not None


@pytest.mark.parametrize("lag", [0.0, 0.05])
def test_what_is_not_known_of_the_link_is_not_known_of_the_share_and_of_the_lag(lag):
    """A share is one of the sums, a lag what is beyond them: by as much as these are off, so are both."""
    truth = StepExchange(link=LINK, payloads=(400_000,), waited=1.0 if lag else 0.6, lag=lag)
    link = replace(LINK, covariance=((0.01, 0.0), (0.0, 0.01)), degrees_of_freedom=3)

    fit = fit_throughput(steps(truth, (1, 2)), StepExchange(link=link, payloads=(400_000,)))

    alone, slopes = truth.alone(2), np.array(StepExchange(link=LINK, payloads=(400_000,)).slopes(2))
    width = 3.182 * 0.1 * np.hypot(*slopes)  # Student's t of three degrees of freedom
    interval, middle = (fit.lag_interval, lag) if lag else (fit.waited_interval, 0.6)
    expected = width if lag else 0.6 * width / alone
    assert interval.high - middle == pytest.approx(expected, rel=1e-3)
    assert middle - interval.low == pytest.approx(expected, rel=1e-3)
    assert fit.step_seconds(32, 2).interval.high == pytest.approx(fit.seconds_at(32, 2), rel=1e-3)


def test_what_is_not_known_of_the_link_widens_the_interval():
    exact = StepExchange(link=fit_link(made(LINK)), payloads=(400_000,))
    noisy = StepExchange(link=fit_link(made(LINK, noise=0.3, repeats=1)), payloads=(400_000,))

    narrow = fit_throughput(steps(exact, (1, 2)), exact).step_seconds(100, 64).interval
    wide = fit_throughput(steps(exact, (1, 2)), noisy).step_seconds(100, 64).interval

    assert wide.high / wide.low > 1.2 > narrow.high / narrow.low
