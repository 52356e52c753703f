from __future__ import annotations

import pytest

from batchlab.analysis import (
    apply_example_budget,
    apply_step_budget,
    best_measurement,
    classify_points,
    is_cut_short,
    steps_to_result,
    steps_without_best,
)
from batchlab.core.confirmation import Confirmation
from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.errors import InputError

GOAL = Goal.read("val/loss < 1.0")
RACE = Protocol(kind="race", race_factor=1.5, max_steps=1000)
CURVES = [[3, 0.9, 0.8, 0.7], [3, 3, 0.5, 0.6]]


@pytest.fixture
def raced(make_result):
    return make_result(CURVES, protocol=RACE)


@pytest.mark.parametrize(
    "ask",
    [
        lambda result: best_measurement(result, GOAL),
        lambda result: classify_points(result, GOAL),
        lambda result: classify_points(result, GOAL, max_steps=31),
        lambda result: steps_without_best(result, GOAL, 1),
    ],
)
def test_what_a_race_cannot_know_is_refused_with_the_way_out(raced, ask):
    with pytest.raises(InputError, match='ended at step 30: .*protocol = "full", or ask under a budget of 30 steps'):
        ask(raced)


def test_steps_to_result_and_the_winner_are_exact(raced):
    assert steps_to_result(raced, GOAL).steps == 10
    assert steps_without_best(raced, GOAL, 0).steps == 10


def test_under_a_budget_within_the_race_every_question_has_an_answer(raced):
    within = apply_step_budget(raced, 20)

    assert best_measurement(within, GOAL).value == 0.5
    assert steps_without_best(within, GOAL, 1).steps == 20
    assert len(classify_points(raced, GOAL, max_steps=30).met) == 2
    assert best_measurement(apply_example_budget(raced, 8 * 10), GOAL).value == 0.9


def test_a_budget_beyond_the_race_gives_nothing(raced):
    assert apply_step_budget(raced, 31) is None
    assert apply_step_budget(apply_step_budget(raced, 20), 25) is None


def test_a_race_that_spent_its_budget_is_full(make_result):
    result = make_result(CURVES, protocol=Protocol(kind="race", race_factor=1.5, max_steps=30))

    assert not is_cut_short(result)
    assert best_measurement(result, GOAL).value == 0.5


@pytest.mark.parametrize("kind", ["full", "imported"])
def test_other_protocols_answer(make_result, kind):
    assert best_measurement(make_result(CURVES, protocol=Protocol(kind=kind)), GOAL).value == 0.5
    assert apply_step_budget(make_result(CURVES, protocol=Protocol(kind=kind)), 20).protocol.kind == kind


def test_a_budget_has_no_confirmed_answer(make_result):
    made = Confirmation(goal=GOAL, seeds=6, trial_ids=(0,), end_step=80, replicates=())
    result = make_result(CURVES, protocol=RACE, confirmation=made)

    assert steps_to_result(result, GOAL).confirmed is not None
    assert steps_to_result(apply_step_budget(result, 20), GOAL).confirmed is None
