"""Steps at any batch size: what stands by itself, what follows the curve, and where the curve ends."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from batchlab.analysis import Interval, StepsToResult, WorkloadSummary, choose_headline, fit_critical_batch
from batchlab.analysis.answers.confirmed import ConfirmedSteps
from batchlab.analysis.curve.spread import Spread
from batchlab.analysis.interval import NO_INTERVAL
from batchlab.analysis.times.expected_steps import expected_steps
from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.core.trial import Status, Trial
from batchlab.errors import InputError

TRIAL = Trial(trial_id=0, status=Status.COMPLETE, metaparameters={}, last_step=10)
SIZES = (16, 64, 256, 1024)


def row(batch_size: int, steps: int | None, end_step: int = 10**6, interval: Interval | None = None) -> StepsToResult:
    """Return a batch size; with an interval it is confirmed."""
    confirmed = None
    if interval is not None and steps is not None:
        confirmed = ConfirmedSteps(
            steps=steps,
            interval=interval,
            seeds=6,
            trial=TRIAL,
            at_boundary=(),
            replicate_steps=(steps,),
            end_step=end_step,
        )
    return StepsToResult(
        batch_size=batch_size,
        steps=steps,
        trial=TRIAL if steps else None,
        at_boundary=(),
        num_trials=8,
        reached_steps=(steps,) if steps else (),
        end_step=end_step,
        complete=8,
        infeasible=0,
        incomplete=0,
        confirmed=confirmed,
        protocol=Protocol(kind="full", max_steps=end_step),
    )


def summary(*rows: StepsToResult) -> WorkloadSummary:
    return WorkloadSummary(
        workload="a/b/c",
        goal=Goal.read("val/loss < 1"),
        protocol=rows[0].protocol,
        headline=choose_headline(rows),
        rows=rows,
        fit=fit_critical_batch(rows),
        regimes=None,
        tuned=(),
    )


def hyperbola(noise: float = 0.05, **options: object) -> list[StepsToResult]:
    factors = np.exp(noise * np.array([1, -1, -1, 1]))
    return [
        row(size, round(factor * (100 + 51_200 / size)), **options)  # type: ignore[arg-type]
        for size, factor in zip(SIZES, factors, strict=True)
    ]


def test_confirmed_medians_stand_by_themselves_and_the_curve_lies_between():
    rows = hyperbola(interval=Interval(1, 10**4))

    curve = expected_steps(summary(*rows))

    assert curve.at(64).value == rows[1].steps
    assert curve.at(64).interval == Interval(1, 10**4)
    assert curve.at(128).value == pytest.approx(500, rel=0.1)
    assert not curve.at(128).is_extrapolated
    assert curve.at(2048).is_extrapolated


def test_too_few_seeds_leave_it_to_the_curve():
    rows = hyperbola(interval=NO_INTERVAL)

    found = expected_steps(summary(*rows)).at(64)

    assert found.interval is not None and not found.interval.is_open


def test_minima_are_not_answers_by_themselves():
    curve = expected_steps(summary(*hyperbola()))

    assert curve.tuned == {}
    assert curve.at(64).value == pytest.approx(curve.s_min + curve.e_min / 64)


def test_without_a_curve_the_batch_sizes_that_met_the_goal_remain():
    curve = expected_steps(summary(row(16, 100), row(64, 50)))

    assert curve.at(16).value == 100
    assert curve.at(16).interval == NO_INTERVAL
    assert curve.at(32) is None


def test_nothing_is_said_beyond_a_batch_size_that_missed_the_goal():
    curve = expected_steps(summary(*hyperbola(), row(4096, None, end_step=100)))

    assert curve.at(4095) is not None
    assert curve.at(4096) is None
    assert curve.at(8192) is None


def test_a_small_batch_size_that_only_ran_out_of_budget_is_extrapolated_to():
    missed = row(4, None, end_step=5_000)  # the curve predicts about 13,000

    curve = expected_steps(summary(missed, *hyperbola()))

    assert curve.at(4) is None
    assert curve.at(8).is_extrapolated


def test_one_end_of_the_curve_alone_is_not_gone_beyond():
    perfect = [row(size, 51_200 // size) for size in (16, 32, 64)]

    curve = expected_steps(summary(*perfect))

    assert curve.at(48) is not None
    assert curve.at(128) is None
    assert curve.at(8) is None


def test_the_half_width_is_that_of_least_squares():
    """In log S = level + slope * log B_crit, with the two columns written out."""
    fit = fit_critical_batch(hyperbola())
    assert fit is not None
    sizes, b_crit = np.array(SIZES, dtype=float), fit.e_min / fit.s_min
    design = np.stack([np.ones(4), b_crit / (b_crit + sizes)], axis=1)
    variance = np.sum(np.square(fit.residuals)) / 2
    at = np.array([1.0, b_crit / (b_crit + 500)])
    expected = math.sqrt(variance * (1 + at @ np.linalg.inv(design.T @ design) @ at))

    assert Spread.of(fit.hyperbola, fit.batch_sizes).half_width(500) == pytest.approx(4.302653 * expected, rel=1e-5)


def failed(batch_size: int, steps: int) -> StepsToResult:
    """Return a batch size that met the goal in the search and missed it with fresh seeds."""
    found = row(batch_size, steps, interval=Interval(steps, None))
    return replace(found, confirmed=replace(found.confirmed, steps=None, replicate_steps=(steps, None, None)))


def test_minima_and_medians_are_never_mixed():
    *confirmed, last = hyperbola(interval=Interval(1, 10**4))

    curve = expected_steps(summary(*confirmed, replace(last, confirmed=None)))
    few = expected_steps(summary(confirmed[0], replace(confirmed[1], confirmed=None, steps=7)))

    assert curve.tuned == {}
    assert [few.at(size).value for size in SIZES[:2]] == [confirmed[0].steps, 7]
    assert {few.at(size).interval for size in SIZES[:2]} == {NO_INTERVAL}


def test_a_batch_size_that_failed_its_confirmation_is_not_planned_with():
    *confirmed, last = hyperbola(interval=Interval(1, 10**4))

    curve = expected_steps(summary(*confirmed, failed(last.batch_size, last.steps)))

    assert curve.reached == SIZES[:3]
    assert curve.missed == SIZES[3:]
    assert curve.at(1024) is None


def test_confirmations_that_all_failed_leave_no_time():
    with pytest.raises(InputError, match="with lucky seeds alone"):
        expected_steps(summary(failed(16, 100), failed(64, 50)))
