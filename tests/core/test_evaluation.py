from __future__ import annotations

import itertools

import pytest
from pydantic import ValidationError

from batchlab.core.evaluation import Evaluation


@pytest.mark.parametrize(
    ("fields", "last_step", "steps"),
    [
        ({"growth": 1.5}, 10, [0, 1, 2, 3, 5, 8, 10]),
        ({"growth": 2}, 16, [0, 1, 2, 4, 8, 16]),
        ({"growth": 1.0001}, 5, [0, 1, 2, 3, 4, 5]),
        ({"growth": 1000}, 5, [0, 1, 5]),
        ({"every": 4}, 10, [0, 4, 8, 10]),
        ({"every": 4}, 8, [0, 4, 8]),
        ({"every": 100}, 8, [0, 8]),
        ({"every": 1}, 0, [0]),
        ({"growth": 1.03}, 1, [0, 1]),
    ],
)
def test_steps_from_zero_to_the_last(fields, last_step, steps):
    assert list(Evaluation(**fields).steps(last_step)) == steps


def test_a_result_is_late_by_the_growth_at_the_most():
    steps = list(Evaluation(growth=1.03).steps(100_000))

    assert all(after <= 1.03 * (before + 1) for before, after in itertools.pairwise(steps[:-1]))


@pytest.mark.parametrize(("step", "following"), [(0, 10), (9, 10), (10, 20), (11, 20)])
def test_next_step_of_regular_steps_goes_to_the_next_multiple(step, following):
    assert Evaluation(every=10).next_step(step) == following


@pytest.mark.parametrize(
    ("evaluation", "bound", "step"),
    [
        (Evaluation(every=10), 0, 0),
        (Evaluation(every=10), 10, 10),
        (Evaluation(every=10), 10.5, 20),
        (Evaluation(growth=1.5), 0, 0),
        (Evaluation(growth=1.5), 5, 5),
        (Evaluation(growth=1.5), 5.1, 8),
    ],
)
def test_first_step_from_a_bound_is_not_before_it(evaluation, bound, step):
    assert evaluation.first_step_from(bound) == step


@pytest.mark.parametrize("evaluation", [Evaluation(growth=1.03), Evaluation(growth=1.7), Evaluation(every=7)])
def test_steps_are_the_same_for_a_longer_run_but_for_the_last(evaluation):
    shorter, longer = list(evaluation.steps(500)), list(evaluation.steps(2000))

    assert shorter[:-1] == longer[: len(shorter) - 1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "give one of `growth`"),
        ({"growth": 1.1, "every": 10}, "give one of `growth`"),
        ({"growth": 1.0}, "greater than 1"),
        ({"every": 0}, "greater than or equal to 1"),
        ({"every": 1, "splits": []}, "`splits` names nothing"),
        ({"every": 1, "splits": ["valid"]}, "'train', 'val' or 'test'"),
    ],
)
def test_an_evaluation_that_makes_no_sense_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        Evaluation(**fields)
