"""What a sweep may cost, before it runs: a bound, and what a pilot lets expect."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchlab.core.sweep import Sweep
from batchlab.run import estimate as module
from batchlab.run.errand import CalibrateTask
from batchlab.run.estimate import Clue, _estimate, _of_all, estimate_sweep
from batchlab.run.executors.executor import Finished
from batchlab.run.pack_size_cache import Calibration, recall, remember
from batchlab.run.pilot import Pilot
from batchlab.run.progress import nearest_size

SIZES = [1, 4, 16, 64, 256, 1024]


def pilot(goal_steps=None, steps=20, seconds_per_evaluation=0.0):
    return Pilot(8, steps, goal_steps, 0.5, seconds_per_evaluation)


def clues(goals, source="pilot"):
    return {size: Clue(steps, source) for size, steps in goals.items()}


def study_of(make_scripted, batch_size=8, **changes):
    return make_scripted({"sweep.batch_sizes": [batch_size], **changes}).study(batch_size)


def test_the_bound_is_trials_times_steps_and_evaluations(make_scripted):
    """4 trials of 100 steps of 1 ms and, every 10 steps from 0 on, 11 evaluations of 5 ms."""
    found = _estimate(study_of(make_scripted), Calibration(2, 1e-3), pilot(20, 20, 5e-3), clues({8: 20}))

    assert found.max_seconds == pytest.approx(4 * (100 * 1e-3 + 11 * 5e-3))


def test_a_goal_met_in_the_pilot_lets_expect_the_end_of_the_race(make_scripted):
    """Met at 20, so all train to 30 of 100: 30 steps and 4 evaluations each."""
    found = _estimate(study_of(make_scripted), Calibration(2, 1e-3), pilot(20, 20, 5e-3), clues({8: 20}))

    assert (found.expected_steps, found.expected_from, found.expected_by) == (30, None, "pilot")
    assert found.expected_seconds == pytest.approx(4 * (30 * 1e-3 + 4 * 5e-3))


@pytest.mark.parametrize(
    ("batch_size", "goals", "steps", "source"),
    [
        (8, {16: 20}, 60, 16),  # half the batch, twice the steps: 40, and half as much again
        (8, {2: 20}, 30, 2),  # a larger batch needs no more
        (8, {1: 20, 16: 10}, 30, 16),  # the nearest counts: 20
        (8, {512: 20}, 100, 512),  # 64 times the steps are more than the budget
        (8, {16: 4}, 30, 16),  # the pilot trained 20 steps without the goal
    ],
)
def test_a_goal_that_the_pilot_did_not_meet_is_guessed_from_a_neighbour(
    make_scripted, batch_size, goals, steps, source
):
    found = _estimate(study_of(make_scripted, batch_size), Calibration(2, 1e-3), pilot(), clues(goals))

    assert (found.expected_steps, found.expected_from) == (steps, source)


@pytest.mark.parametrize("source", ["pilot", "lab", "published"])
def test_where_the_steps_come_from_is_told(make_scripted, source):
    found = _estimate(study_of(make_scripted), Calibration(2, 1e-3), pilot(), clues({8: 40}, source))

    assert (found.expected_steps, found.expected_from, found.expected_by) == (60, 8, source)


def test_where_no_pilot_met_the_goal_nothing_is_expected(make_scripted):
    found = _estimate(study_of(make_scripted), Calibration(2, 1e-3), pilot(), {})

    assert (found.expected_steps, found.expected_seconds, found.expected_from) == (None, None, None)


def test_the_full_protocol_trains_to_the_budget_whatever_the_pilot_saw(make_scripted):
    study = study_of(make_scripted, **{"sweep.protocol": "full"})
    found = _estimate(study, Calibration(2, 1e-3), pilot(20), clues({8: 20}))

    assert (found.expected_steps, found.expected_seconds) == (100, found.max_seconds)


@pytest.mark.parametrize(("goals", "steps"), [({8: 20}, 30), ({16: 20}, 60), ({}, 100)])
def test_replicates_of_the_full_protocol_end_by_the_steps_that_are_known(make_scripted, goals, steps):
    """8 trials train to 100, whatever is known; 12 replicates to 1.5 times the steps to the goal, if those are."""
    study = study_of(
        make_scripted,
        **{"sweep.protocol": "full", "sweep.trials": 8, "sweep.confirm": {"seeds": 6, "points": 2}},
    )
    found = _estimate(study, Calibration(2, 1e-3), pilot(), clues(goals, "published"))

    assert (found.expected_steps, found.expected_by) == (100, None)
    assert found.expected_seconds == pytest.approx(8 * 100 * 1e-3 + 12 * steps * 1e-3)


def test_replicates_are_counted(make_scripted):
    """Six seeds of three points, which meet the goal at 20 or by 30, and train to 100 at the most."""
    study = study_of(make_scripted, **{"sweep.confirm": {"seeds": 6, "points": 3}})
    found = _estimate(study, Calibration(2, 1e-3), pilot(20), clues({8: 20}))

    assert found.replicates == 18
    assert found.expected_seconds == pytest.approx((4 + 18) * 30 * 1e-3)
    assert found.max_seconds == pytest.approx((4 + 18) * 100 * 1e-3)


def test_no_more_points_are_confirmed_than_there_are_trials(make_scripted):
    study = study_of(make_scripted, **{"sweep.confirm": {"seeds": 2, "points": 9}})

    assert _estimate(study, Calibration(2, 1e-3), pilot(20), clues({8: 20})).replicates == 8


@given(
    goals=st.dictionaries(st.sampled_from(SIZES), st.integers(1, 1000)),
    met=st.none() | st.integers(1, 1000),
    steps=st.integers(0, 1000),
    max_steps=st.integers(1, 500),
    size=st.sampled_from(SIZES),
)
def test_what_is_expected_is_never_more_than_the_bound(goals, met, steps, max_steps, size):
    spec = {
        "name": "any",
        "workload": {"dataset": "any", "model": "any", "optimizer": "any"},
        "sweep": {"batch_sizes": [size], "trials": 3, "max_steps": max_steps, "goal": "val/loss < 1"},
        "search_space": {"learning_rate": {"min": 0.1, "max": 1.0}},
    }
    seen = pilot(None if met is None else min(met, max_steps), min(steps, max_steps), 1e-3)
    goals = {**goals, **({} if met is None else {size: min(met, max_steps)})}

    found = _estimate(Sweep.parse(spec, "any").study(size), Calibration(1, 1e-3), seen, clues(goals))

    assert (found.expected_seconds is None) == (not goals)
    assert found.expected_seconds is None or 0 < found.expected_seconds <= found.max_seconds


@given(st.integers(1, 10**5), st.lists(st.integers(1, 10**5), min_size=1))
def test_the_nearest_batch_size_is_near_by_ratio(size, known):
    nearest = nearest_size(size, known)

    assert all(max(nearest / size, size / nearest) <= max(k / size, size / k) * (1 + 1e-9) for k in known)


# With a worker


def test_a_sweep_is_estimated_study_by_study_and_told_so(make_nqm):
    """The quadratic model with learning rates on a grid: the first 8 of 12 meet the goal or do not, exactly."""
    sweep, told = make_nqm({"sweep.batch_sizes": [16, 256]}), []

    small, large = estimate_sweep(sweep, None, told.append)

    assert (small.batch_size, small.trials, small.attempts, small.max_steps) == (16, 12, 12, 400)
    assert set(small.first_point) == {"learning_rate"}
    assert large.pilot.goal_steps is not None
    assert large.expected_steps == sweep.study(256).end_step(large.pilot.goal_steps)
    assert 0 < large.expected_seconds < large.max_seconds
    assert [line.split(":")[0] for line in told] == ["batch size     16", "batch size    256"]
    assert f"of 8 trials the first met the goal at step {large.pilot.goal_steps}" in told[1]


@pytest.mark.parametrize(
    ("finished", "published", "expected"),
    [
        ({256: 30}, {}, [(16, 256, "lab"), (64, 256, "lab")]),
        ({256: None}, {}, [(16, None, None), (64, None, None)]),
        ({256: 30}, {64: 50.2}, [(16, 256, "lab"), (64, 64, "published")]),
        ({256: None}, {64: 50.2}, [(16, 64, "published"), (64, 64, "published")]),
    ],
)
def test_finished_studies_and_published_steps_stand_in(make_nqm, finished, published, expected):
    """A goal that no pilot meets; published steps at the very batch size say more than a study of another."""
    sweep = make_nqm({"sweep.batch_sizes": [16, 64, 256], "sweep.goal": "val/risk <= 1e-12"})

    found = estimate_sweep(sweep, None, finished=finished, published=published)

    assert [(each.batch_size, each.expected_from, each.expected_by) for each in found] == expected


def test_what_is_not_known_is_measured_and_remembered(make_nqm):
    sweep = make_nqm({"sweep.batch_sizes": [16]})

    (estimate,) = estimate_sweep(sweep, None)

    assert 0 < estimate.seconds_per_trial_step < 1
    assert recall(sweep.study(16)).seconds_per_trial_step == estimate.seconds_per_trial_step


def test_what_is_known_is_not_measured_again(make_digits):
    sweep = make_digits({"sweep.batch_sizes": [16]})
    remember(sweep.study(16), Calibration(6, 0.25))

    (estimate,) = estimate_sweep(sweep, None)

    assert estimate.seconds_per_trial_step == 0.25
    assert estimate.pilot.trials == 6
    assert estimate.pilot.best_value <= 1


class SlowExecutor:
    """Answers after two silences."""

    def __init__(self):
        self.events_given = iter([[], [], [Finished(None, "answer")]])

    def submit(self, key, errand):
        pass

    def events(self, timeout):
        return next(self.events_given)


def test_a_long_wait_is_told_now_and_then(make_nqm):
    told = []

    answer = module._answer(SlowExecutor(), CalibrateTask(make_nqm().study(16), {}), told.append)

    assert answer == "answer"
    assert told == [
        "batch size     16: still timing steps, 10 s so far",
        "batch size     16: still timing steps, 20 s so far",
    ]


def test_a_pilot_without_an_evaluation_after_step_0_says_so(make_nqm):
    study, pilot = make_nqm().study(16), Pilot(3, 0, None, 0.9, 0.1)

    assert module._describe(Calibration(1, 2.5), pilot, study) == (
        "2,500,000 us/trial-step; no evaluation after step 0 in the pilot's time"
    )


def test_pilots_of_a_sweep_are_short(make_nqm, monkeypatch):
    """A goal that is never met: each pilot has its time and no more, in proportion to what it is about."""
    monkeypatch.setattr(module, "LEAST_SECONDS", 0.05)
    sweep = make_nqm({"sweep.goal": "val/risk <= 1e-12", "sweep.max_steps": 10**6, "sweep.trials": 3})
    for study in sweep.studies():
        remember(study, Calibration(3, 1e-12))
    started = time.perf_counter()

    found = estimate_sweep(sweep, None)

    assert all(each.expected_seconds is None for each in found)
    assert all(0 < each.pilot.steps < 10**7 for each in found)
    assert time.perf_counter() - started < 60


def test_of_several_workers_for_a_trial_the_time_of_all_counts():
    calibration, flown = _of_all(4, Calibration(1, 2e-3), pilot(20, 20, 5e-3))

    assert calibration == Calibration(1, 8e-3)
    assert flown.seconds_per_evaluation == 20e-3


@pytest.mark.slow
def test_a_trial_on_several_workers_is_timed_so_and_not_remembered(make_digits):
    sweep = make_digits({"sweep.batch_sizes": [16], "engine": {"workers_per_trial": 2}})

    (found,) = estimate_sweep(sweep, None)

    assert found.seconds_per_trial_step > 0
    assert recall(sweep.study(16)) is None
