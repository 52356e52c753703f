"""Plans: a worked example, the Pareto front, what is said and what is not."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchlab.analysis import Interval, example_workload, summarise
from batchlab.analysis.times.all_reduce import AllReduce
from batchlab.analysis.times.expected import Expected
from batchlab.analysis.times.expected_steps import StepsCurve, expected_steps
from batchlab.analysis.times.throughput import Throughput
from batchlab.analysis.times.throughput_fit import StepTimes, ThroughputFit
from batchlab.analysis.times.training_plan import make_plan, plan_json
from batchlab.core.goal import Goal
from batchlab.errors import InputError

CURVE = StepsCurve(s_min=100, e_min=51_200)
LINE = Throughput(ThroughputFit(t0=0.0186, seconds_per_example=1 / 1381))
GOAL = Goal.read("val/classification_error < 0.1")

positive = st.floats(min_value=1e-4, max_value=1e4)


def test_the_worked_example():
    plan = make_plan(CURVE, LINE)

    assert plan.fastest.batch_size == 115
    assert round(plan.fastest.seconds.value, 2) == 55.54
    assert plan.closed_form is not None
    assert round(plan.closed_form.batch_size, 2) == 114.68
    assert round(plan.closed_form.seconds, 4) == 55.5429
    assert plan.fastest == plan.cheapest == plan.balanced
    assert plan.fastest.seconds.interval is None
    assert not plan.fastest.is_extrapolated


def test_no_batch_size_near_the_integer_optimum_is_faster():
    fastest = make_plan(CURVE, LINE).fastest.seconds.value

    for size in range(1, 2000):
        assert (100 + 51_200 / size) * (0.0186 + size / 1381) >= fastest


def test_cost_is_price_times_workers_times_hours():
    row = next(row for row in make_plan(CURVE, LINE, max_workers=4, price=3.0).rows if row.workers == 4)

    assert row.cost.value == pytest.approx(3.0 * 4 * row.seconds.value / 3600)


def test_more_workers_are_faster_and_dearer():
    plan = make_plan(CURVE, LINE, max_workers=64)

    assert plan.fastest.workers == 64
    assert plan.cheapest.workers == 1
    assert plan.fastest.seconds.value < plan.balanced.seconds.value <= plan.cheapest.seconds.value
    assert all(row.is_extrapolated for row in plan.rows if row.workers > 1)
    assert all(row.batch_size >= row.workers for row in plan.rows)


def test_a_slow_link_ends_what_more_workers_bring():
    link = AllReduce("ring", latency=0.01, transfer_seconds=0.0)
    linked = Throughput(ThroughputFit(t0=0.0186, seconds_per_example=1 / 1381, all_reduce=link))

    plan = make_plan(CURVE, linked, max_workers=1024)

    assert 1 < plan.fastest.workers < 64


@settings(max_examples=80, deadline=None)
@given(s_min=positive, e_min=positive, t0=positive, tau=positive, workers=st.integers(1, 3000), latency=positive)
def test_no_row_of_the_front_is_dominated_and_every_other_is(s_min, e_min, t0, tau, workers, latency):
    link = AllReduce("tree", latency, 0.01)
    line = Throughput(ThroughputFit(t0=t0, seconds_per_example=1 / tau, all_reduce=link))

    plan = make_plan(StepsCurve(s_min=s_min, e_min=e_min), line, max_workers=workers)

    points = [(row.seconds.value, row.cost.value) for row in plan.rows]
    for row, point in zip(plan.rows, points, strict=True):
        is_dominated = any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in points)
        assert row.is_pareto == (not is_dominated)
    assert plan.fastest.is_pareto and plan.cheapest.is_pareto and plan.balanced.is_pareto
    assert plan.fastest.seconds.value == min(seconds for seconds, _ in points)
    assert plan.cheapest.cost.value == min(cost for _, cost in points)


@settings(max_examples=50, deadline=None)
@given(s_min=positive, e_min=positive, t0=positive, tau=positive)
def test_the_fastest_row_is_as_good_as_the_formula_allows(s_min, e_min, t0, tau):
    plan = make_plan(
        StepsCurve(s_min=s_min, e_min=e_min), Throughput(ThroughputFit(t0=t0, seconds_per_example=1 / tau))
    )

    if (e_min / s_min) * t0 * tau < 1:  # no batch is smaller than one
        assert plan.closed_form is None
        assert plan.fastest.batch_size == 1
        return
    assert plan.closed_form is not None
    assert plan.fastest.seconds.value >= plan.closed_form.seconds * (1 - 1e-9)
    # Between two whole numbers the curve is flat.
    assert plan.fastest.seconds.value <= 1.1 * plan.closed_form.seconds


def test_the_formula_says_nothing_of_batch_sizes_that_the_steps_say_nothing_of():
    throughput = Throughput(ThroughputFit(t0=0.0186, seconds_per_example=1 / 1381))  # best at 114.68

    def formula(**limits):
        return make_plan(StepsCurve(s_min=100, e_min=51_200, **limits), throughput).closed_form

    assert formula(reached=(64, 256)).is_extrapolated is False
    assert formula(reached=(128, 256)).is_extrapolated is True
    assert formula(reached=(128, 256), smallest=128) is None
    assert formula(reached=(16, 64), largest=64) is None


def test_the_interval_of_a_row_holds_that_of_steps_and_that_of_step_times():
    curve = StepsCurve(s_min=None, e_min=None, tuned={64: Expected(100, Interval(90, 120))}, reached=(64,))
    times = [
        StepTimes(batch_size=size, seconds=(0.9e-3 * size, *[1e-3 * size] * 4, 1.2e-3 * size)) for size in (32, 64)
    ]

    (row,) = make_plan(curve, Throughput.measured(times)).rows

    assert row.seconds.value == pytest.approx(6.4)
    assert row.seconds.interval is not None
    assert row.seconds.interval.low == pytest.approx(6.4 * 0.9 ** math.sqrt(2))
    assert row.seconds.interval.high == pytest.approx(6.4 * 1.2 ** math.sqrt(2))


def test_an_open_bound_of_the_steps_stays_open():
    curve = StepsCurve(s_min=None, e_min=None, tuned={64: Expected(100, Interval(90, None))}, reached=(64,))

    (row,) = make_plan(curve, LINE).rows

    assert row.seconds.interval is not None
    assert row.seconds.interval.low is not None
    assert row.seconds.interval.high is None


def test_a_curve_without_a_fit_speaks_of_what_was_measured_alone():
    curve = StepsCurve(s_min=None, e_min=None, tuned={4: Expected(100), 64: Expected(20)}, reached=(4, 64))

    plan = make_plan(curve, LINE)

    assert [row.batch_size for row in plan.rows] == [4, 64]
    assert plan.closed_form is None


def test_nothing_is_said_of_batch_sizes_beyond_one_that_missed_the_goal():
    curve = StepsCurve(s_min=100, e_min=51_200, reached=(8, 16, 32), missed=(64,), largest=63)

    plan = make_plan(curve, LINE)

    assert max(row.batch_size for row in plan.rows) == 63  # the best allowed
    assert plan.fastest.is_extrapolated


def test_step_times_that_do_not_grow_have_no_best_batch_size():
    plan = make_plan(CURVE, Throughput(ThroughputFit(t0=0.01, seconds_per_example=0.0)))

    assert plan.closed_form is None
    assert plan.fastest.batch_size == max(row.batch_size for row in plan.rows)


def test_more_workers_than_examples_leave_nothing_to_plan_with():
    curve = StepsCurve(s_min=None, e_min=None, tuned={4: Expected(100)}, reached=(4,))

    assert [row.workers for row in make_plan(curve, LINE, max_workers=64).rows] == [1, 2, 4]


def test_the_example_workload_is_planned_from_its_summary():
    curve = expected_steps(summarise(example_workload(), GOAL))

    plan = make_plan(curve, LINE)

    assert {16, 64, 256} <= {row.batch_size for row in plan.rows}
    assert plan.fastest.seconds.interval is not None


def test_a_goal_that_is_met_before_training_wants_a_harder_one():
    with pytest.raises(InputError, match="before it trains: there is no time to it. Give a harder goal"):
        expected_steps(summarise(example_workload(), Goal.read("val/classification_error < 2")))


def test_a_goal_that_nobody_met_is_refused():
    with pytest.raises(InputError, match="easier goal"):
        expected_steps(summarise(example_workload(), Goal.read("val/classification_error < 0.001")))


def test_json_has_the_promised_keys():
    found = plan_json(make_plan(CURVE, LINE))

    assert found["fastest"]["batch_size"] == 115
    assert round(found["fastest"]["seconds"], 2) == 55.54
    assert found["best_by_deadline"] is None
    wanted = {"batch_size", "workers", "seconds", "seconds_ci", "cost", "pareto", "extrapolated"}
    assert all(wanted <= row.keys() for row in found["rows"])
