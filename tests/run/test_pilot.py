"""A pilot: a few trials, trained for a while."""

from __future__ import annotations

from types import SimpleNamespace

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


class Clock:
    """A clock that goes only where it is told to."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: self.now))


@pytest.fixture
def slow(make_scripted, scripted, monkeypatch):
    """Fly a pilot of 5 s; programs take a while to make, evaluations and updates as well. Return it and its time."""

    def slow(making, evaluating=0.0, updating=0.01, pack_size=1, goal_at=None):
        clock, inner = Clock(monkeypatch), scripted(goal_at=goal_at or {}, chunk=1)

        class Slow:
            def program(self, study, points, state=None):
                clock.now += making
                program = inner.program(study, points, state)
                evaluate, advance = program.evaluate, program.advance

                def evaluated():
                    clock.now += evaluating
                    return evaluate()

                def advanced(target):
                    clock.now += updating
                    advance(target)

                program.evaluate, program.advance = evaluated, advanced
                return program

        points = [Point(trial_id, {"learning_rate": 0.1}) for trial_id in range(8)]
        return PilotTask(make_scripted().study(8), points, pack_size, 5.0).perform(Slow()), clock.now

    return slow


def test_what_it_takes_to_make_a_program_is_not_taken_from_its_training(slow):
    """100 steps of 10 ms, of a program that takes twice as long to make as the pilot has."""
    found, seconds = slow(making=10.0)

    assert (found.steps, found.trials) == (100, 1)
    assert seconds == pytest.approx(11)


def test_the_first_evaluation_is_not_taken_from_the_training(slow):
    """It takes longer than the pilot has; the second one ends it."""
    found, seconds = slow(making=0.0, evaluating=6.0)

    assert (found.steps, found.trials) == (10, 1)
    assert seconds == pytest.approx(12.1)


def test_slow_starts_are_waited_for_once_and_the_time_is_for_those_who_have_started(slow):
    """Starts of 3 s: after two of them no third. The first has a third of 5 s, the second the 3.3 s that are left."""
    found, seconds = slow(making=3.0, updating=0.05)

    assert (found.steps, found.trials) == (60, 2)
    assert seconds == pytest.approx(2 * 3.0 + 5.0, abs=0.11)


def test_quick_starts_leave_all_packs_their_share(slow):
    """Three trials of 100 steps of 100 ms: each has a third of 5 s, and the ends of steps."""
    found, seconds = slow(making=0.001, updating=0.1)

    assert (found.steps, found.trials) == (10, 3)
    assert seconds == pytest.approx(5.0, abs=0.31)


def test_a_step_that_outlasts_the_pilot_is_told_as_no_step(slow):
    assert slow(making=0.0, updating=60.0)[0].steps == 0
