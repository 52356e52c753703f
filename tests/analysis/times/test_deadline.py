"""The best value in a given time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batchlab.analysis import example_study
from batchlab.analysis.times.deadline import best_by_deadline
from batchlab.analysis.times.expected import Expected
from batchlab.core.goal import Goal
from batchlab.core.measurement import Curve, Measurements
from batchlab.core.protocol import Protocol
from batchlab.core.result import StudyResult
from batchlab.core.space import SearchSpace
from batchlab.core.trial import Status, Trial

SECONDS = 600.0
GOLF = {
    524_288: (0.1279, 2.070),
    262_144: (0.0691, 2.072),
    131_072: (0.0396, 2.016),
    65_536: (0.0386, 1.999),
    32_768: (0.0387, 2.004),
}
"""Seconds of a step and bits per byte after equal time, by tokens per batch (a table of the parameter-golf contest)."""

GOAL = Goal.read("val/bits_per_byte < 2")


def golf(tokens: int) -> StudyResult:
    """Return a study whose one trial has the table's value when the time is up, and a better one much later."""
    step_seconds, value = GOLF[tokens]
    last = int(SECONDS / step_seconds)
    curve = Curve(0, np.array([0, last // 2, last, 10 * last]), {GOAL.metric: np.array([4.0, 2.5, value, 1.0])})
    trial = Trial(trial_id=0, status=Status.COMPLETE, metaparameters={"learning_rate": 1 / tokens}, last_step=10 * last)
    return StudyResult("a/b/c", tokens, (trial,), Measurements.of([curve]), SearchSpace({}), 10 * last)


def test_the_best_in_equal_time_is_the_largest_batch_whose_step_is_as_short_as_the_shortest():
    best = best_by_deadline(map(golf, GOLF), GOAL, SECONDS, lambda size, workers: Expected(GOLF[size][0]))

    assert best is not None
    assert best.batch_size == 65_536
    assert best.value == 1.999
    assert best.trial.metaparameters == {"learning_rate": 1 / 65_536}
    assert best.seconds.value <= SECONDS
    assert (best.raced, best.spent) == ((), ())


def test_more_time_is_used():
    best = best_by_deadline(map(golf, GOLF), GOAL, 20 * SECONDS, lambda size, workers: Expected(GOLF[size][0]))

    assert best is not None
    assert best.value == 1.0
    assert set(best.spent) == set(GOLF)  # all of them ended before, by their budget
    assert best.raced == ()


def test_a_metric_of_which_more_is_better_is_maximised():
    goal = Goal.read("val/classification_error > 0.1")  # of a curve that falls from 0.9

    best = best_by_deadline([example_study()], goal, 10.0, lambda size, workers: Expected(0.05))

    assert best is None  # nothing is better than step 0, and that is no training


def test_a_time_too_short_for_the_first_evaluation_has_no_answer():
    assert best_by_deadline([golf(65_536)], GOAL, 1.0, lambda size, workers: Expected(0.0386)) is None


def test_a_race_that_ended_before_the_deadline_is_told():
    raced = replace(example_study(), protocol=Protocol(kind="race", race_factor=1.5, max_steps=20_000))
    goal = Goal.read("val/classification_error < 0.1")

    best = best_by_deadline([raced], goal, 10.0, lambda size, workers: Expected(0.01))

    assert best is not None
    assert (best.value, best.step, best.raced, best.spent) == (0.04, 300, (64,), ())


def test_workers_are_taken_where_they_bring_something():
    goal = Goal.read("val/classification_error < 0.1")

    best = best_by_deadline([example_study()], goal, 2.0, lambda size, workers: Expected(0.01 / workers), (1, 2, 4))

    assert best is not None
    assert (best.value, best.step) == (0.04, 300)
    assert best.workers == 4
    assert best.seconds.value == pytest.approx(0.75)
