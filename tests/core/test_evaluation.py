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
        ({"every": 10, "growth": 1.5}, 200, [0, 10, 20, 30, 40, 60, 90, 130, 190, 200]),
        ({"every": 1, "growth": 2}, 20, [0, 1, 2, 4, 8, 16, 20]),
        ({"every": 10, "growth": 1.03}, 25, [0, 10, 20, 25]),
    ],
)
def test_steps_from_zero_to_the_last(fields, last_step, steps):
    assert list(Evaluation(**fields).steps(last_step)) == steps


def test_geometric_steps_are_no_more_than_the_growth_apart():
    steps = list(Evaluation(growth=1.03).steps(100_000))

    assert all(after <= 1.03 * (before + 1) for before, after in itertools.pairwise(steps[:-1]))


def test_regular_steps_become_geometric_where_the_growth_is_two_strides():
    """By hand, with growth 1.03: 3 % of a step are two strides of 10 from step 667 on, and three from step 1000 on."""
    steps = list(Evaluation(every=10, growth=1.03).steps(2000))

    assert steps[:68] == list(range(0, 680, 10))
    assert steps[67:71] == [670, 690, 710, 730]
    assert steps[steps.index(1010) :][:3] == [1010, 1040, 1070]


@pytest.mark.parametrize(("every", "growth"), [(10, 1.03), (1, 1.1), (7, 1.5), (100, 1.03)])
def test_with_both_steps_are_multiples_and_no_further_apart_than_the_longer_of_the_two(every, growth):
    steps = list(Evaluation(every=every, growth=growth).steps(100_000))[:-1]

    assert all(step % every == 0 for step in steps)
    assert all(after <= max(before + every, growth * before) for before, after in itertools.pairwise(steps))
    assert all(after + every > growth * before for before, after in itertools.pairwise(steps))


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
        (Evaluation(every=10, growth=1.5), 0, 0),
        (Evaluation(every=10, growth=1.5), 60, 60),
        (Evaluation(every=10, growth=1.5), 60.5, 90),
    ],
)
def test_first_step_from_a_bound_is_not_before_it(evaluation, bound, step):
    assert evaluation.first_step_from(bound) == step


@pytest.mark.parametrize(
    "evaluation",
    [Evaluation(growth=1.03), Evaluation(growth=1.7), Evaluation(every=7), Evaluation(every=7, growth=1.03)],
)
def test_steps_are_the_same_for_a_longer_run_but_for_the_last(evaluation):
    shorter, longer = list(evaluation.steps(500)), list(evaluation.steps(2000))

    assert shorter[:-1] == longer[: len(shorter) - 1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, r"give `growth` \(geometric steps\), `every` \(regular steps\) or both"),
        ({"growth": 1.0}, "greater than 1"),
        ({"every": 0}, "greater than or equal to 1"),
        ({"every": 1, "splits": []}, "`splits` names nothing"),
        ({"every": 1, "splits": ["valid"]}, "'train', 'val' or 'test'"),
    ],
)
def test_an_evaluation_that_makes_no_sense_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        Evaluation(**fields)
