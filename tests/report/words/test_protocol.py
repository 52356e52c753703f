"""What is said of how trials were trained and confirmed, from summaries made by hand."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest

from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.report.words.protocol import confirmation_text, protocol_text
from tests.report.words.summaries import EXACT, GOAL, RACE, with_best


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (
            RACE,
            "Raced: trials ended at 1.5 times the steps of the first that met the sweep's goal, so ",
        ),
        (
            RACE.model_copy(update={"race_factor": 1.0}),
            "Raced: trials ended with the first that met the sweep's goal, so ",
        ),
        (
            RACE.model_copy(update={"race_factor": None}),
            "Raced: trials ended soon after the first that met the sweep's goal, ",
        ),
        (Protocol(kind="full"), "Full protocol: every trial was trained to its budget."),
        (Protocol(kind="imported"), "Imported: these trials were not run here"),
    ],
)
def test_the_protocol_is_stated(make_summary, protocol, sentence):
    assert protocol_text(make_summary(protocol=protocol)).startswith(sentence)


def test_a_race_that_nobody_won_was_run_to_its_budget(make_summary):
    summary = make_summary(sizes=(1, 4), unreached=(1, 4), protocol=RACE.model_copy(update={"max_steps": 20_000}))

    assert protocol_text(summary) == (
        "Raced, but no trial met the goal: every trial that did not diverge was trained to its budget."
    )


def test_whether_it_was_confirmed_is_stated_where_it_could_be(make_summary):
    assert protocol_text(make_summary()).endswith(
        "Not confirmed: `batchlab confirm`, or for code of your own `run` with `sweep.confirm`, trains the best points "
        "for the sweep's goal again with fresh seeds."
    )
    assert protocol_text(make_summary(seeds=6)).endswith(
        "Confirmed: the best points were trained again with 6 fresh seeds."
    )
    for protocol in (EXACT, Protocol(kind="imported")):
        assert "onfirm" not in protocol_text(make_summary(num_trials=3, protocol=protocol))


def test_confirmed_answers_without_an_interval_say_how_many_seeds_would_give_one(make_summary):
    """Four points need seven seeds."""
    summary = make_summary(sizes=(1, 4, 16), seeds=6)
    few = tuple(replace(row, confirmed=replace(row.confirmed, points=4)) for row in summary.rows)

    assert "6 seeds of 4 points give no 95 % interval (batch size 1, 4 and 16): 7 seeds would." in (
        protocol_text(replace(summary, rows=few))
    )
    assert "no 95 % interval" not in protocol_text(summary)


def test_a_confirmation_of_another_goal_or_of_more_trials_is_told(make_summary):
    summary = make_summary(sizes=(1, 4, 16))

    def told(goal):
        rows = tuple(replace(row, confirmed_goal=Goal.read(goal)) for row in summary.rows)
        return protocol_text(replace(summary, rows=rows))

    other = "val/classification_error < 0.02"
    assert told(other).endswith(f"Not confirmed: fresh seeds were trained to {other}, not to this goal.")
    assert told(GOAL).endswith(
        "Not confirmed at batch size 1, 4 and 16: the points that were trained again are not among these trials."
    )


def test_a_batch_size_whose_fresh_seeds_missed_the_goal_is_named(make_summary):
    summary = make_summary(sizes=(1, 4, 16), seeds=6)
    missed = replace(summary.rows[1].confirmed, steps=None, end_step=900)
    rows = (summary.rows[0], replace(summary.rows[1], confirmed=missed), summary.rows[2])

    assert (
        "Not confirmed at batch size 4: half or more of the runs with fresh seeds missed the goal within 900 steps."
        in protocol_text(replace(summary, rows=rows, headline="best_of"))
    )


def test_a_batch_size_of_which_nothing_was_trained_again_is_told_as_such(make_summary):
    summary = make_summary(sizes=(1, 4, 16), seeds=6)
    *rows, last = summary.rows
    rows = [dataclasses.replace(row, confirmed_goal=summary.goal) for row in rows]
    never = dataclasses.replace(last, confirmed=None, confirmed_goal=None)
    found = dataclasses.replace(summary, rows=(*rows, never), headline="best_of")

    assert confirmation_text(found) == "Not confirmed at batch size 16: no point was trained again there."


def test_trials_that_ended_by_themselves_are_told(make_summary):
    summary = make_summary(protocol=Protocol(kind="full"))

    assert protocol_text(summary).startswith("Full protocol: every trial was trained to its budget. ")
    assert protocol_text(with_best(summary, ended_alone=True)).startswith(
        "Full protocol: every trial was trained to its budget, or ended by itself before. "
    )
