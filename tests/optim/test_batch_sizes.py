"""Batch sizes of the coming updates against asking the schedule before every single one."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.clock import Clock, Clocks, Horizon
from batchlab.core.sweep import Sweep
from batchlab.errors import SpecError
from batchlab.optim.batch_sizes import BatchSizes
from batchlab.optim.schedules import constant, staircase

STAIRS = {"stage_factor": 1.7, "stage_length": 50.0, "stage_limit": 200.0}
HORIZON = Horizon(max_steps=1000, batch_size=8, epoch_examples=1000)


def make_study(schedule="constant", **limits):
    data = {
        "name": "test",
        "workload": {"dataset": "nqm", "model": "quadratic", "optimizer": "sgd", "schedule": schedule},
        "sweep": {"batch_sizes": [8], "trials": 1, "goal": "val/risk < 1", **(limits or {"max_steps": 1000})},
        "search_space": {},
    }
    return Sweep.parse(data, "test").study(8)


SCHEDULED = {"name": "staircase", "of": "batch_size"}


def make_sizes(schedule=None, trial=STAIRS, **limits):
    return BatchSizes(make_study(SCHEDULED, **limits), [trial], schedule or staircase("batch_size"), HORIZON)


def plain_sizes(schedule, trial, num_updates, clock=None):
    """Return the batch sizes, by asking for one update after the other."""
    clock, sizes = clock or Clock(), []
    values = {"batch_size": np.array([8.0])} | {name: np.array([value]) for name, value in trial.items()}
    for _ in range(num_updates):
        now = Clocks(np.array([clock.step]), np.array([clock.examples]))
        sizes.append(round(schedule(values, now, HORIZON)["batch_size"].item()))
        clock = clock.after(sizes[-1])
    return sizes


def test_one_batch_size_serves_all_updates():
    sizes = BatchSizes(make_study(), [{}, {}], constant(), HORIZON)

    assert sizes.ahead(Clock(5, 40), 10, 1000) == [8] * 10
    assert sizes.ahead(Clock(5, 40), 10, 31) == [8] * 3
    assert sizes.ahead(Clock(5, 40), 10, 7) == [8]
    assert not sizes.is_spent(Clock(10**9, 10**12))


@pytest.mark.parametrize("unit", ["examples", "steps", "epochs"])
@pytest.mark.parametrize("factor", [2.0, 1.7, 0.7])
def test_many_updates_at_once_are_as_one_by_one(unit, factor):
    trial = {**STAIRS, "stage_factor": factor, "stage_limit": 200.0 if factor > 1 else 2.0}
    trial["stage_length"] = {"examples": 50.0, "steps": 7.0, "epochs": 0.05}[unit]
    schedule = staircase("batch_size", unit)

    found = make_sizes(schedule, trial).ahead(Clock(), 60, 10**9)

    assert found == plain_sizes(schedule, trial, 60)
    assert len(set(found)) > 3


def test_a_schedule_that_changes_at_every_update_is_followed():
    schedule = lambda values, clocks, horizon: {"batch_size": (8.0 + clocks.examples % 13)[:, None]}  # noqa: E731

    assert make_sizes(schedule).ahead(Clock(), 50, 10**9) == plain_sizes(schedule, STAIRS, 50)


@pytest.mark.parametrize("most_examples", [1, 30, 57, 200])
def test_chunks_join_to_the_whole_and_none_is_too_long(most_examples):
    sizes, clock, found = make_sizes(), Clock(), []
    while len(found) < 40:
        chunk = sizes.ahead(clock, 40 - len(found), most_examples)
        assert len(chunk) == 1 or sum(chunk) <= most_examples
        found += chunk
        for size in chunk:
            clock = clock.after(size)

    assert found == plain_sizes(staircase("batch_size"), STAIRS, 40)


def test_a_limit_of_examples_is_not_passed():
    sizes = make_sizes(max_examples=500)
    plain = plain_sizes(staircase("batch_size"), STAIRS, 100)
    fitting = int(np.searchsorted(np.cumsum(plain), 500, side="right"))
    clock = Clock(fitting, sum(plain[:fitting]))

    assert sizes.ahead(Clock(), 1000, 10**9) == plain[:fitting]
    assert sizes.is_spent(clock)
    assert sizes.ahead(clock, 1000, 10**9) == []
    assert not sizes.is_spent(Clock(fitting - 1, sum(plain[: fitting - 1])))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.4, "would be 0, less than 1"),
        (-3.0, "would be -3, less than 1"),
        (np.nan, "would be nan, less than 1"),
        (1001.0, r"would be 1001, more than the training set has \(1,000 examples\)"),
        (np.inf, "would be inf, more than the training set has"),
    ],
)
def test_batch_sizes_that_cannot_be_are_told_in_one_line(value, told):
    sizes = make_sizes(lambda values, clocks, horizon: {"batch_size": np.full((len(clocks.step), 1), value)})

    with pytest.raises(SpecError, match=f"schedule staircase: the batch size of update 8 {told}"):
        sizes.ahead(Clock(7, 56), 10, 1000)


def test_a_schedule_says_that_it_sets_the_batch_size_and_then_does():
    sizes = BatchSizes(make_study(), [{}], constant(), HORIZON)

    with pytest.raises(SpecError, match='give it an option `of`, and of = "batch_size" in the spec'):
        sizes.others({"batch_size": np.ones((1, 1))})
    with pytest.raises(SpecError, match="schedule staircase does not set the batch size"):
        make_sizes(constant()).at(Clock())


def test_trials_that_need_not_agree_do_not_train_together():
    with pytest.raises(SpecError, match="2 trials whose batch size is scheduled cannot train together"):
        BatchSizes(make_study(SCHEDULED), [STAIRS, STAIRS], staircase("batch_size"), HORIZON)
