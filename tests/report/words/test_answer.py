"""The answer in one paragraph, from summaries made by hand."""

from __future__ import annotations

import dataclasses

import pytest

from batchlab.analysis import BestOf, Interval
from batchlab.core.protocol import Protocol
from batchlab.report.words.answer import answer_text
from tests.report.words.summaries import EXACT, GOAL, RACE, with_best


def test_a_confirmed_answer_says_what_it_is_the_median_of(make_summary):
    summary = make_summary(sizes=(1, 4, 16), seeds=6)
    confirmed = dataclasses.replace(summary.rows[-1].confirmed, steps=205.5, interval=Interval(190, 260))
    text = answer_text(with_best(summary, confirmed=confirmed))

    assert text.startswith(
        f"The fewest steps to {GOAL} are 205.5 at batch size 16: the median over 6 fresh "
        "seeds of the best configuration, from n = 32 complete trials at each of 3 batch sizes. "
    )


def test_best_of_m_says_what_it_is_the_median_of(make_summary):
    summary = make_summary(sizes=(1, 4, 16))
    text = answer_text(with_best(summary, best_of=BestOf(6, 205.0, Interval(190, None))))

    assert text.startswith(
        f"The fewest steps to {GOAL} are 205 at batch size 16: the median steps of the best "
        "of 6 trials, from n = 32 complete trials at each of 3 batch sizes. "
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"num_trials": 3}, "too few for an interval (6 give one)"),
        ({"protocol": Protocol(kind="imported")}, "the paper's statistic, which has no interval"),
        ({"num_trials": 5, "protocol": EXACT}, "exact, so without an interval"),
        (
            {"num_trials": 5, "protocol": Protocol(kind="full", is_grid=True)},
            "points of a grid, which give no interval",
        ),
        ({"is_open": (1, 4, 16)}, "of which too few met the goal for an interval"),
    ],
)
def test_a_minimum_says_why_it_has_no_interval(make_summary, options, reason):
    summary = with_best(make_summary(sizes=(1, 4, 16), **options), steps=205)
    num_trials = options.get("num_trials", 32)

    assert answer_text(summary).startswith(
        f"The fewest steps to {GOAL} are 205 at batch size 16: the minimum of n = {num_trials} complete trials at each "
        f"of 3 batch sizes, {reason}. "
    )


def test_different_numbers_of_trials_are_told(make_summary):
    summary = with_best(make_summary(sizes=(1, 4, 16), num_trials=3), num_trials=2)

    assert "n = 2 to 3 complete trials at each of 3 batch sizes" in answer_text(summary)


def test_nothing_reached_within_the_budget_is_said_plainly(make_summary):
    assert answer_text(make_summary(sizes=(1, 2), unreached=(1, 2))) == (
        f"No trial met {GOAL} at any batch size within the budget of 20,000 steps (n = 32 complete trials at each "
        "of 2 batch sizes)."
    )


def test_nothing_reached_before_the_race_ended_is_another_thing(make_summary):
    assert answer_text(make_summary(sizes=(1,), unreached=(1,), protocol=RACE)) == (
        f"No trial met {GOAL} at any batch size before the race ended at step 20,000 (n = 32 complete trials at "
        "one batch size)."
    )


def test_both_ends_of_training_are_told_where_both_happened(make_summary):
    summary = make_summary(sizes=(1, 2), unreached=(1, 2), protocol=RACE)

    assert "before the race ended at step 20,000 or within the budget of 50,000 steps" in answer_text(
        with_best(summary, end_step=50_000)
    )


def test_a_goal_met_at_the_start_tells_nothing(make_summary):
    summary = with_best(make_summary(sizes=(1, 4, 16), num_trials=3), steps=0)

    assert answer_text(summary) == (
        f"{GOAL} is met at step 0, before any training: that tells nothing about batch sizes."
    )


def test_one_batch_size_says_nothing_of_scaling(make_summary):
    assert answer_text(make_summary(sizes=(8,))).endswith("One batch size tells nothing about scaling.")


def test_one_lucky_start_does_not_hide_the_answer(make_summary):
    summary = with_best(make_summary(sizes=(1, 4, 16)), steps=0, best_of=BestOf(6, 205.0, Interval(190, None)))

    assert "are 205 at batch size 16" in answer_text(summary)
