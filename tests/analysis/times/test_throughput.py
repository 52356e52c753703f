"""The line through step times: the course's table, made machines, workers that exchange gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from batchlab.analysis.interval import NO_INTERVAL
from batchlab.analysis.times.all_reduce import AllReduce
from batchlab.analysis.times.efficiency import strong_efficiencies, weak_efficiencies
from batchlab.analysis.times.link import FittedLink, StepExchange
from batchlab.analysis.times.throughput import Throughput
from batchlab.analysis.times.throughput_fit import StepTimes, ThroughputFit, fit_throughput
from batchlab.errors import InputError

COURSE = {8: 328, 16: 551, 32: 808, 64: 1002, 128: 1165, 256: 1273, 512: 1329, 700: 1332}
"""Images per second of the course's network by batch size (NVIDIA's course on data parallelism, its first lab)."""


def made(seconds: dict[tuple[int, int], float], noise: float = 0.0, repeats: int = 1, seed: int = 0) -> list[StepTimes]:
    rng = np.random.default_rng(seed)
    return [
        StepTimes(
            batch_size=size,
            workers=workers,
            seconds=tuple((each * np.exp(noise * rng.standard_normal(repeats))).tolist()),
        )
        for (size, workers), each in seconds.items()
    ]


def test_the_table_of_the_course_is_fitted_as_it_should_be():
    fit = fit_throughput([StepTimes(batch_size=size, seconds=(size / rate,)) for size, rate in COURSE.items()])

    assert round(fit.tau) == 1397
    assert round(1e3 * fit.t0, 1) == 18.0
    assert round(fit.b_half, 1) == 25.1
    assert fit.worst_residual < 0.0335  # 3.1 % of the fitted time is 3.3 % of its logarithm
    assert max(math.expm1(residual) for residual in fit.residuals) < 0.032


@pytest.mark.parametrize("seed", range(20))
def test_a_made_worker_is_recovered_within_five_per_cent(seed):
    truth = {(2**k, 1): 0.02 + 2**k / 1000 for k in range(11)}

    fit = fit_throughput(made(truth, noise=0.05, repeats=8, seed=seed))

    assert fit.t0 == pytest.approx(0.02, rel=0.05)
    assert fit.tau == pytest.approx(1000, rel=0.05)


def test_a_machine_without_overhead_has_none():
    fit = fit_throughput(made({(size, 1): size / 100 for size in (1, 8, 64)}))

    assert fit.t0 == pytest.approx(0, abs=1e-12)
    assert fit.tau == pytest.approx(100)


def test_times_that_do_not_grow_have_no_end_of_throughput():
    fit = fit_throughput(made({(size, 1): seconds for size, seconds in ((1, 0.02), (8, 0.0199), (64, 0.0198))}))

    assert fit.tau == math.inf
    assert fit.tau_interval is not None and fit.tau_interval.high is None
    assert fit.seconds_at(10_000) == pytest.approx(0.0199, rel=0.01)


@pytest.mark.parametrize("form", ["ring", "tree"])
def test_latency_and_bandwidth_of_a_link_are_recovered(form):
    link = AllReduce(form, latency=0.002, transfer_seconds=0.03)
    truth = {
        (local * workers, workers): 0.01 + local / 2000 + link.seconds(workers)
        for workers in (1, 2, 4, 8)
        for local in (8, 32, 128)
    }

    fit = fit_throughput(made(truth, noise=0.01, repeats=6))

    assert fit.all_reduce is not None
    assert fit.all_reduce.form == form
    assert fit.all_reduce.latency == pytest.approx(0.002, rel=0.15)
    assert fit.all_reduce.transfer_seconds == pytest.approx(0.03, rel=0.15)
    assert fit.tau == pytest.approx(2000, rel=0.05)
    assert fit.seconds_at(32, 1024) == pytest.approx(0.026 + link.seconds(1024), rel=0.1)


def test_one_number_of_workers_does_not_tell_latency_from_bandwidth():
    link = AllReduce("ring", latency=0.002, transfer_seconds=0.03)
    truth = {
        (size, workers): 0.01 + size / workers / 2000 + link.seconds(workers) for workers in (1, 2) for size in (8, 64)
    }

    fit = fit_throughput(made(truth))

    assert fit.all_reduce is not None
    assert not fit.has_latency
    assert fit.all_reduce.latency == 0
    assert fit.all_reduce.seconds(2) == pytest.approx(link.seconds(2))


def test_one_batch_size_is_refused():
    with pytest.raises(InputError, match="several --batch-sizes"):
        fit_throughput(made({(8, 1): 0.1}))


def test_times_that_follow_no_line_are_refused():
    """Nothing of one worker, and everything of two, is the exchange: one worker would train in no time."""
    times = [StepTimes(batch_size=b, workers=w, seconds=(s,)) for b, w, s in ((1, 1, 1e-9), (8, 1, 1e-9), (64, 2, 9.0))]

    with pytest.raises(InputError, match="follow no line"):
        fit_throughput(times)


def test_one_number_of_workers_alone_tells_nothing_of_their_exchange():
    link = FittedLink(form="gloo", latency=0.001, bandwidth=1e8)
    exchange = StepExchange(link=link, payloads=(4096,))
    sums = exchange.seconds(2)
    times = [StepTimes(batch_size=b, workers=2, seconds=(0.01 + b / 2 / 1000 + sums,) * 6) for b in (16, 64, 256)]

    taken, unknown = Throughput.measured(times, exchange=exchange), Throughput.measured(times)

    assert taken.fit.t0 == pytest.approx(0.01)
    assert taken.fit.all_reduce == exchange
    assert unknown.fit.t0 == pytest.approx(0.01 + sums)
    assert unknown.fit.all_reduce is None
    hidden = Throughput.measured(times, exchange=StepExchange(link=link, payloads=(10**9,)))
    assert hidden.fit.all_reduce.waited == 0
    assert hidden.fit.t0 == pytest.approx(0.01 + sums)
    assert taken.step_seconds(64, 2).is_extrapolated is False
    assert taken.step_seconds(64, 1).is_extrapolated is True


def test_two_batch_sizes_give_a_line_without_an_interval():
    throughput = Throughput.measured(made({(8, 1): 0.1, (16, 1): 0.15}))

    assert throughput.step_seconds(12).value == pytest.approx(0.125)
    assert throughput.step_seconds(12).interval == NO_INTERVAL
    assert throughput.fit.t0_interval == NO_INTERVAL


def test_given_numbers_have_no_interval_and_are_exact():
    given = Throughput(ThroughputFit(t0=0.02, seconds_per_example=0.001))

    assert given.step_seconds(10).interval is None
    assert given.fit.tau_interval is None
    assert not given.step_seconds(10).is_extrapolated


def test_what_lies_beyond_the_measurements_is_marked():
    throughput = Throughput.measured(made({(size, 1): 0.02 + size / 1000 for size in (8, 64, 512)}, repeats=6))

    assert not throughput.step_seconds(8).is_extrapolated
    assert not throughput.step_seconds(100).is_extrapolated
    assert throughput.step_seconds(4).is_extrapolated
    assert throughput.step_seconds(1000).is_extrapolated
    assert throughput.step_seconds(64, 2).is_extrapolated


def test_given_numbers_say_nothing_of_an_exchange():
    alone = Throughput(ThroughputFit(t0=0.02, seconds_per_example=0.001))
    linked = Throughput(ThroughputFit(t0=0.02, seconds_per_example=0.001, all_reduce=AllReduce("ring", 0.001, 0.01)))

    assert alone.step_seconds(64, 2).is_extrapolated
    assert not linked.step_seconds(64, 2).is_extrapolated
    assert linked.step_seconds(64, 2).value == pytest.approx(0.02 + 0.032 + 0.012)


def test_efficiencies_need_one_worker_to_be_held_against():
    times = made({(64, 1): 0.8, (64, 4): 0.25, (256, 4): 1.0})

    assert strong_efficiencies(times) == [1.0, 0.8, None]
    assert weak_efficiencies(times) == [1.0, None, 0.8]
