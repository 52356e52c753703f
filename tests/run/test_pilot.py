"""A pilot: a few trials, trained for a while."""

from __future__ import annotations

import pytest

from batchlab.engine.base import Point
from batchlab.run import pilot as module
from batchlab.run.pilot import PilotTask

FOREVER = 1e9


@pytest.fixture
def fly(make_scripted, scripted):
    """Fly a pilot of four points, two together, with trials whose fate is written down."""

    def fly(seconds=FOREVER, pack_size=2, num_points=4, **script):
        points = [Point(trial_id, {"learning_rate": 0.1}) for trial_id in range(num_points)]
        return PilotTask(make_scripted().study(8), points, pack_size, seconds).perform(scripted(**script))

    return fly


def test_a_pilot_ends_where_the_first_trial_meets_the_goal(fly):
    """Of the second pack: the first trains to its budget of 100 steps without."""
    found = fly(goal_at={3: 40})

    assert (found.trials, found.goal_steps, found.best_value, found.steps) == (4, 40, 0.0, 100)


def test_of_several_packs_the_best_counts(fly):
    assert fly(goal_at={0: 70, 3: 40}).goal_steps == 40


def test_a_pilot_without_a_goal_trains_to_the_budget(fly):
    found = fly()

    assert (found.goal_steps, found.best_value, found.steps) == (None, 1.0, 100)


def test_a_pilot_whose_trials_diverge_has_seen_what_came_before(fly):
    found = fly(diverges_at={0: 15, 1: 25, 2: 5, 3: 5})

    assert (found.goal_steps, found.steps) == (None, 20)


def test_time_that_is_up_ends_a_pilot_after_one_evaluation(fly):
    found = fly(seconds=-1.0, goal_at={0: 20})

    assert (found.goal_steps, found.steps) == (None, 0)


def test_trials_that_train_one_by_one_are_few(fly):
    assert fly(pack_size=1, num_points=8).trials == module.PACKS == 3


def test_the_time_of_an_evaluation_is_that_of_one_trial(fly, monkeypatch):
    """Two trials in each of two packs, 11 evaluations of a second for each pack: 22 s for 44 rows."""
    original = module.train

    def slow(*arguments):
        for evaluated in original(*arguments):
            object.__setattr__(evaluated, "seconds", 1.0)
            yield evaluated

    monkeypatch.setattr(module, "train", slow)

    assert fly().seconds_per_evaluation == pytest.approx(22 / 44)
