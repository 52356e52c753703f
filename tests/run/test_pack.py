"""One pack from its start to the end of its race, stopped and killed on the way."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from batchlab.engine.base import Point
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.errors import Interrupted
from batchlab.run import pack as pack_module
from batchlab.run.pack import Hooks, PackTask, train_pack
from batchlab.search.race import Outcome


class Race:
    """The other side of the hooks: an end that others bring nearer, and a stop after so many chunks."""

    def __init__(self, ends=None, stop_after=None):
        self.ends, self.confirmed, self.progress = ends or {}, [], []
        self._chunks_left = stop_after
        self.kept = []

    def hooks(self):
        return Hooks(self.end_step, self.confirmed.append, self.note, self.should_stop, self.kept.append)

    def note(self, standing):
        self.progress.append((standing.step, standing.num_live, standing.best_steps))

    def end_step(self):
        """Return the end as known after the evaluation of the last step."""
        return min([2**62, *(end for step, end in self.ends.items() if step <= self.progress[-1][0])])

    def should_stop(self):
        if self._chunks_left is None:
            return False
        self._chunks_left -= 1
        return self._chunks_left < 0


@pytest.fixture
def make_task(make_scripted):
    def make(num_trials=3, **changes):
        study = make_scripted({f"sweep.{name}": value for name, value in changes.items()}).study(8)
        points = [Point(trial_id, {"learning_rate": 0.5}) for trial_id in range(num_trials)]
        return PackTask(study, points, study.max_steps)

    return make


def steps_of(result, trial_id):
    return result.measurements.curve(trial_id).steps.tolist()


def assert_same(result, expected):
    """The outcomes and all rows, bit for bit; only the time may differ."""
    assert result.outcomes == expected.outcomes
    assert list(result.measurements.metrics) == list(expected.measurements.metrics)
    assert np.array_equal(result.measurements.trial_id, expected.measurements.trial_id)
    assert np.array_equal(result.measurements.step, expected.measurements.step)
    for name, values in expected.measurements.metrics.items():
        assert np.array_equal(result.measurements.metrics[name], values)


# The end


def test_without_a_winner_all_train_to_their_budget(scripted, make_task):
    race = Race()

    result = train_pack(scripted(), make_task(), race.hooks())

    assert result.outcomes == [Outcome(0, 100), Outcome(1, 100), Outcome(2, 100)]
    assert [steps_of(result, trial_id) for trial_id in range(3)] == [list(range(0, 101, 10))] * 3
    assert race.confirmed == [100]


def test_a_winner_ends_its_pack_at_the_end_it_sets(scripted, make_task):
    """The goal at 24 is seen at 30; the race ends at 45, first evaluated at 50."""
    race = Race()

    result = train_pack(scripted(goal_at={1: 24}), make_task(), race.hooks())

    assert result.outcomes == [Outcome(0, 50), Outcome(1, 50, goal_step=30), Outcome(2, 50)]
    assert steps_of(result, 0) == [0, 10, 20, 30, 40, 50]
    assert race.confirmed == [50]
    assert race.progress == [(0, 3, None), (10, 3, None), (20, 3, None), (30, 3, 30), (40, 3, 30), (50, 3, 30)]


def test_a_winner_that_diverges_on_the_way_does_not_end_the_pack(scripted, make_task):
    race = Race()

    result = train_pack(scripted(goal_at={1: 20, 2: 40}, diverges_at={1: 28}), make_task(), race.hooks())

    assert result.outcomes == [Outcome(0, 60), Outcome(1, 28, goal_step=20, diverged_step=28), Outcome(2, 60, 40)]
    assert steps_of(result, 1) == [0, 10, 20]
    assert race.confirmed == [60]


def test_another_packs_winner_ends_this_one(scripted, make_task):
    """The news of an end at 40 arrives after the evaluation at step 20."""
    race = Race(ends={20: 40})

    result = train_pack(scripted(), make_task(), race.hooks())

    assert [outcome.last_step for outcome in result.outcomes] == [40, 40, 40]
    assert steps_of(result, 0) == [0, 10, 20, 30, 40]


def test_news_of_an_end_that_is_past_ends_the_pack_at_once(scripted, make_task):
    result = train_pack(scripted(), make_task(), Race(ends={60: 40}).hooks())

    assert [outcome.last_step for outcome in result.outcomes] == [60, 60, 60]


def test_a_pack_of_which_none_is_left_ends(scripted, make_task):
    race = Race()

    result = train_pack(scripted(diverges_at={0: 5, 1: 31, 2: 12}), make_task(), race.hooks())

    assert [outcome.diverged_step for outcome in result.outcomes] == [5, 31, 12]
    assert [steps_of(result, trial_id) for trial_id in range(3)] == [[0], [0, 10, 20, 30], [0, 10]]
    assert race.confirmed == [100]


def test_the_full_protocol_trains_to_the_budget_whoever_wins(scripted, make_task):
    result = train_pack(scripted(goal_at={0: 10}), make_task(protocol="full"), Race().hooks())

    assert [outcome.last_step for outcome in result.outcomes] == [100, 100, 100]


# Stop and go


def train_with_stops(trainer, task, chunks_between_stops):
    """Train the pack with a stop every so many chunks; return its result and the number of stops."""
    for num_stops in range(1000):
        race = Race(stop_after=chunks_between_stops)
        try:
            return train_pack(trainer, task, race.hooks()), num_stops
        except Interrupted:
            task = replace(task, resume=pickle.loads(pickle.dumps(race.kept[-1])))  # as it travels
    raise AssertionError("the pack makes no progress")


@pytest.mark.parametrize("chunks_between_stops", [1, 2, 3])
def test_a_pack_that_is_stopped_again_and_again_gives_the_same_result(scripted, make_task, chunks_between_stops):
    trainer = scripted(goal_at={1: 20, 2: 40}, diverges_at={0: 33, 1: 28})
    task = make_task(4)
    expected = train_pack(trainer, task, Race().hooks())

    result, num_stops = train_with_stops(trainer, task, chunks_between_stops)

    assert num_stops > 2
    assert_same(result, expected)


def test_a_stopped_quadratic_pack_gives_the_same_bits(make_nqm, monkeypatch):
    from batchlab.engine import quadratic

    monkeypatch.setattr(quadratic, "LONGEST_ADVANCE", 3)
    study = make_nqm({"sweep.evaluate": {"growth": 1.5}, "sweep.max_steps": 60}).study(16)
    points = [Point(trial_id, {"learning_rate": rate}) for trial_id, rate in enumerate((0.01, 0.3, 1.9, 50.0))]
    task = PackTask(study, points, study.max_steps)
    expected = train_pack(QuadraticTrainer(), task, Race().hooks())
    assert expected.outcomes[3].diverged_step is not None

    result, num_stops = train_with_stops(QuadraticTrainer(), task, 1)

    assert num_stops > 2
    assert_same(result, expected)


def test_a_stop_says_where_it_stopped(scripted, make_task):
    with pytest.raises(Interrupted, match="stopped at step 7"):
        train_pack(scripted(), make_task(), Race(stop_after=0).hooks())


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


@pytest.mark.parametrize("killed_at", [10, 30, 50])
def test_a_killed_pack_goes_on_from_its_last_checkpoint(scripted, make_task, killed_at):
    """A checkpoint after every chunk; the kill falls in the middle of an evaluation."""
    trainer = scripted(goal_at={2: 40}, diverges_at={0: 33})
    task, race, seen = replace(make_task(), checkpoint_seconds=-1.0), Race(), []
    expected = train_pack(trainer, task, Race().hooks())

    def die(standing):
        if standing.step == killed_at:
            raise Killed

    with pytest.raises(Killed):
        train_pack(trainer, task, replace(race.hooks(), end_step=lambda: 2**62, progress=die))
    resumed = replace(Race().hooks(), end_step=lambda: 2**62, progress=lambda standing: seen.append(standing.step))
    result = train_pack(trainer, replace(task, resume=race.kept[-1]), resumed)

    assert seen[:2] == [killed_at - 10, killed_at]  # where it stands is told at once
    assert_same(result, expected)


def test_no_checkpoint_is_saved_before_its_time(scripted, make_task):
    race = Race()

    train_pack(scripted(), make_task(), race.hooks())

    assert race.kept == []


def test_a_pack_whose_state_is_wanted_returns_it_with_its_result(scripted, make_task):
    task = make_task()

    result = train_pack(scripted(), replace(task, keeps_state=True), Race().hooks())

    assert train_pack(scripted(), task, Race().hooks()).state is None
    assert result.state["program.step"] == 100
    assert result.state["rows.step"].tolist() == result.measurements.step.tolist()


def test_the_time_before_a_stop_counts(scripted, make_task, monkeypatch):
    """A clock that moves a second with every look: a resumed pack has had at least as many looks."""
    now = iter(range(10**6))
    monkeypatch.setattr(pack_module.time, "perf_counter", lambda: float(next(now)))
    straight = train_pack(scripted(), make_task(), Race().hooks())

    result, _ = train_with_stops(scripted(), make_task(), 3)

    assert result.wall_seconds >= straight.wall_seconds > 0


# Pauses


def test_a_pack_pauses_at_the_first_evaluated_step_from_its_pause_on(scripted, make_task):
    race = Race()

    assert train_pack(scripted(), replace(make_task(), pause_step=35), race.hooks()) is None
    assert race.progress[-1][0] == 40
    assert race.confirmed == []


def test_a_pack_that_pauses_often_ends_with_the_same_rows(scripted, make_task):
    task = make_task()
    expected = train_pack(scripted({1: 60}, {2: 30}), task, Race().hooks())

    for pause_step in (10, 25, 50):
        race = Race()
        assert train_pack(scripted({1: 60}, {2: 30}), replace(task, pause_step=pause_step), race.hooks()) is None
        task = replace(task, resume=race.kept[-1])
    assert_same(train_pack(scripted({1: 60}, {2: 30}), task, Race().hooks()), expected)


def test_a_pause_beyond_the_end_of_the_race_is_none(scripted, make_task):
    result = train_pack(scripted({0: 20}), replace(make_task(), pause_step=90), Race().hooks())

    assert result is not None
    assert result.outcomes[0].goal_step == 20
