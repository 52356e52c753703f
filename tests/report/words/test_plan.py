"""Plans in words: what is said, and what is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.analysis import (
    Expected,
    Interval,
    StepsCurve,
    StepTimes,
    Throughput,
    ThroughputFit,
    TunedPoint,
    example_workload,
    make_plan,
    plan_json,
    summarise,
)
from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.errors import InputError
from batchlab.plots import plan_data
from batchlab.report.lab_plan import check_one_batch_size, plan_summary, with_deadline
from batchlab.report.words.plan import plan_answer, plan_line, plan_notes, plan_table
from batchlab.store.stored_sweep import StoredSweep

GOAL = Goal.read("val/classification_error < 0.1")
GIVEN = Throughput(ThroughputFit(t0=0.0186, seconds_per_example=1 / 1381))
MEASURED = Throughput.measured(
    [StepTimes(batch_size=size, seconds=(0.018 + size / 1400,) * 6) for size in (16, 64, 256)], machine="a machine"
)


def test_the_first_sentence_names_batch_size_learning_rate_and_time():
    first = plan_answer(plan_summary(summarise(example_workload(), GOAL), MEASURED))[0]

    assert first.startswith("Train with batch size 72 and a learning rate of 0.01 to 0.03, best 0.01 (with momentum ")
    assert "as found at batch size 64): 14.3 s (95 % interval " in first
    assert first.endswith("to val/classification_error < 0.1.")


@pytest.mark.parametrize("name", ["learning_rate", "lr"])
def test_without_top_trials_the_region_is_that_of_the_neighbours(name):
    summary = summarise(example_workload(), GOAL)
    rates = (0.1, 0.2, 0.8)
    tuned = tuple(
        TunedPoint(point.batch_size, {name: rate}, ()) for point, rate in zip(summary.tuned, rates, strict=True)
    )

    first = plan_answer(plan_summary(replace(summary, tuned=tuned), MEASURED))[0]

    around = "the best at batch sizes 16 to 256 were 0.1 to 0.8"
    assert f"a learning rate of 0.2 (as found at batch size 64, {around})" in first


def test_extrapolation_is_said_in_the_sentence_in_the_rows_and_in_the_notes():
    plan = plan_summary(summarise(example_workload(), GOAL), MEASURED, max_workers=8)

    assert "(extrapolated)" in plan_answer(plan)[0]
    assert any(row[-1] == "extrapolated" for row in plan_table(plan).rows)
    assert any("beyond what was measured" in note for note in plan.notes)
    assert any("counted as zero" in note for note in plan.notes)


def test_given_numbers_are_said_to_be_taken_as_exact():
    plan = make_plan(StepsCurve(s_min=100, e_min=51_200), GIVEN)

    assert plan_answer(plan)[0] == "Train with batch size 115: 55.5 s to the goal."
    assert sum("taken as exact" in note for note in plan_notes(plan, None)) == 2


def test_minima_are_said_to_be_lucky():
    summary = summarise(example_workload(), GOAL)
    raced = replace(summary, protocol=Protocol(kind="race"))

    assert (
        "Not confirmed. Steps here follow a curve of minima, which are lucky." in plan_summary(summary, MEASURED).notes
    )
    assert any("minima" in note and "batchlab confirm" in note for note in plan_summary(raced, MEASURED).notes)


def test_confirmed_medians_are_not_said_to_be_minima(make_summary):
    """One of two batch sizes failed to confirm: the plan speaks of the other, which did not."""
    summary = make_summary(sizes=(1, 4), seeds=6)
    failed = replace(summary.rows[0].confirmed, steps=None, end_step=900)
    rows = (replace(summary.rows[0], confirmed=failed), summary.rows[1])
    plan = plan_summary(replace(summary, rows=rows, headline="best_of"), MEASURED)

    assert plan.curve.is_confirmed
    assert any("Not confirmed at batch size 1: half or more" in note for note in plan.notes)
    assert not any("minima" in note for note in plan.notes)


def test_a_loop_that_changed_its_batch_size_has_no_plan(make_summary):
    sweep = StoredSweep("own", "own/loop", (1, 4), GOAL)
    check_one_batch_size(sweep, make_summary(sizes=(1, 4)))

    with pytest.raises(InputError, match="Sweep own changes its batch size while it trains"):
        check_one_batch_size(sweep, replace(make_summary(sizes=(1, 4)), has_one_batch_size=False))


def test_a_long_table_shows_what_matters():
    plan = make_plan(StepsCurve(s_min=100, e_min=51_200), GIVEN, max_workers=4096)
    table = plan_table(plan)

    assert len(plan.rows) > 100
    assert len(table.rows) < 40
    assert table.caption == f"{len(table.rows)} of {len(plan.rows)} rows"
    assert sum(row.is_pareto for row in plan.rows) <= len(table.rows)


def test_a_deadline_speaks_of_luck_and_of_what_was_not_trained_that_long():
    studies = example_workload()
    plan = with_deadline(plan_summary(summarise(studies, GOAL), MEASURED), studies, 100.0, 1)

    sentences = plan_answer(plan)

    assert any("In 100 s the best val/classification_error is 0.04" in each and "n = 3" in each for each in sentences)
    assert any(each.startswith("Batch size 16, 64 and 256 was trained for less") for each in sentences)


def test_one_line_for_a_summary():
    line = plan_line(plan_summary(summarise(example_workload(), GOAL), MEASURED))

    assert line.startswith("Fastest on a machine: batch size 72, 14.3 s")
    assert "`batchlab plan`" in line


def test_an_interval_that_says_nothing_is_left_out_and_what_would_give_one_is_said():
    """Three medians of two repeats, far from a line: one degree of freedom, a t quantile of 12.7."""
    scattered = zip((16, 64, 256), (0.02, 0.3, 0.05), strict=True)
    throughput = Throughput.measured([StepTimes(batch_size=size, seconds=(each, each)) for size, each in scattered])
    plan = make_plan(StepsCurve(s_min=100, e_min=51_200), throughput)

    notes = plan_notes(plan, None)
    assert {row.seconds.interval for row in plan.rows} == {Interval(None, None)}
    assert plan_json(plan)["fastest"]["seconds_ci"] == [None, None]
    assert "(no 95 % interval) to the goal" in plan_answer(plan)[0]
    assert {row[5] for row in plan_table(plan).rows} == {""}
    assert f"{len(plan.rows)} of {len(plan.rows)} rows have no 95 % interval, or one bound only" in notes[-2]
    assert notes[-1].startswith("Step times (`batchlab scaling`) at more batch sizes, or with six repeats or more,")
    assert "Points without bars have no 95 % interval." in plan_data(plan).caption


def test_steps_without_an_interval_name_confirmation():
    tuned = {64: Expected(300.0, Interval(250.0, None)), 256: Expected(150.0, Interval(140.0, 160.0))}
    plan = make_plan(StepsCurve(s_min=None, e_min=None, tuned=tuned, reached=(64, 256)), MEASURED)

    notes = plan_notes(plan, None)
    assert [row.seconds.lacks_bound for row in plan.rows] == [True, False]
    assert notes[-2].startswith("1 of 2 rows have no 95 % interval, or one bound only: ")
    assert "`batchlab confirm` with more seeds, six at least," in notes[-1]
