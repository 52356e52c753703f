"""Schedules against the formula x_0 (1 - (1 - alpha) min(t/T, 1)), for many updates and trials at once."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.clock import Clock, Clocks, Horizon
from batchlab.errors import SpecError
from batchlab.optim.schedules import constant, linear_decay, staircase

HORIZON = Horizon(max_steps=100, batch_size=8)
VALUES = {
    "learning_rate": np.array([0.5, 2.0]),
    "end_learning_rate_factor": np.array([0.1, 0.25]),
    "learning_rate_decay_steps": np.array([10.0, 4.0]),
}


def at(*steps):
    return Clocks(np.array(steps), 8 * np.array(steps))


def test_constant_leaves_everything_as_it_is():
    assert constant()(VALUES, at(0, 1, 10**6), HORIZON) == {}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (0, [0.5, 2.0]),
        (1, [0.5 * (1 - 0.9 / 10), 2.0 * (1 - 0.75 / 4)]),  # alpha 0.1, T 10; alpha 0.25, T 4
        (2, [0.5 * 0.82, 2.0 * 0.625]),
        (4, [0.5 * 0.64, 0.5]),  # the second is at its T
        (5, [0.5 * 0.55, 0.5]),  # and stays there
        (10, [0.05, 0.5]),
        (11, [0.05, 0.5]),
        (100_000, [0.05, 0.5]),
    ],
)
def test_linear_decay_falls_to_its_end_and_stays_there(step, expected):
    rates = linear_decay()(VALUES, at(step), HORIZON)["learning_rate"]

    assert rates.shape == (1, 2)
    np.testing.assert_allclose(rates[0], expected, rtol=1e-14)


def test_linear_decay_to_nothing_ends_at_exactly_zero():
    values = {**VALUES, "end_learning_rate_factor": np.zeros(2)}

    assert linear_decay()(values, at(10, 11), HORIZON)["learning_rate"].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_many_updates_at_once_are_the_same_as_one_by_one():
    clocks = Clocks.of(Clock(3, 24), [8] * 5)

    together = linear_decay()(VALUES, clocks, HORIZON)["learning_rate"]
    one_by_one = [linear_decay()(VALUES, at(step), HORIZON)["learning_rate"][0] for step in range(3, 8)]

    assert clocks.examples.tolist() == [24, 32, 40, 48, 56]
    assert np.array_equal(together, one_by_one)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_precision_is_that_of_the_metaparameters(dtype):
    values = {name: value.astype(dtype) for name, value in VALUES.items()}

    assert linear_decay()(values, at(1), HORIZON)["learning_rate"].dtype == dtype


def test_any_metaparameter_can_decay():
    values = {
        "momentum": np.array([0.9]),
        "end_momentum_factor": np.array([0.5]),
        "momentum_decay_steps": np.array([2.0]),
    }

    assert linear_decay(of="momentum")(values, at(1, 2), HORIZON)["momentum"].tolist() == [[0.675], [0.45]]


def stairs(x, factor, length, limit):
    return {
        "x": np.array([x]),
        "stage_factor": np.array([factor]),
        "stage_length": np.array([length]),
        "stage_limit": np.array([limit]),
    }


@pytest.mark.parametrize(
    ("unit", "clocks", "expected"),
    [
        ("examples", Clocks(np.arange(5), np.array([0, 99, 100, 299, 300])), [8, 8, 16, 32, 64]),
        ("steps", Clocks(np.array([0, 99, 100, 299, 300]), np.arange(5)), [8, 8, 16, 32, 64]),
        ("epochs", Clocks(np.arange(5), np.array([0, 4999, 5000, 14_999, 15_000])), [8, 8, 16, 32, 64]),
    ],
)
def test_a_staircase_rises_after_every_whole_stage(unit, clocks, expected):
    horizon = Horizon(max_steps=100, batch_size=8, epoch_examples=50)

    found = staircase("x", unit)(stairs(8.0, 2.0, 100.0, 1000.0), clocks, horizon)

    assert found["x"].tolist() == [[each] for each in expected]


@pytest.mark.parametrize(
    ("start", "factor", "limit", "expected"),
    [
        (8.0, 2.0, 20.0, [8, 16, 20, 20]),
        (8.0, 0.5, 3.0, [8, 4, 3, 3]),
        (8.0, 1.0, 3.0, [8, 8, 8, 8]),
        (8.0, 2.0, 4.0, [8, 8, 8, 8]),  # beyond its limit from the start
        (8.0, 0.5, 10.0, [8, 8, 8, 8]),
        (8.0, 10.0, 1e9, [8, 80, 1e9, 1e9]),  # far beyond what a number can hold on the way
        (0.0, 10.0, 1e9, [0, 0, 0, 0]),  # infinitely often nothing
    ],
)
def test_a_staircase_ends_at_its_limit(start, factor, limit, expected):
    clocks = Clocks(np.arange(4), np.array([0, 10, 10_000, 10**12]))
    clocks = clocks if limit == 1e9 else Clocks(np.arange(4), np.array([0, 10, 20, 10**12]))

    found = staircase("x")(stairs(start, factor, 10.0, limit), clocks, HORIZON)

    assert found["x"][:, 0].tolist() == expected


def test_a_staircase_has_the_precision_of_its_trials_and_one_value_for_each():
    values = {
        "learning_rate": np.array([0.1, 0.2], np.float32),
        "stage_factor": np.array([0.1, 0.5], np.float32),
        "stage_length": np.array([10, 20], np.float32),
        "stage_limit": np.array([1e-4, 1e-4], np.float32),
    }

    found = staircase()(values, Clocks(np.arange(3), np.array([0, 10, 20])), HORIZON)["learning_rate"]

    assert found.dtype == np.float32
    np.testing.assert_allclose(found, [[0.1, 0.2], [0.01, 0.2], [0.001, 0.1]], rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stages_of_a_part_of_an_epoch_begin_where_they_should(dtype):
    values = {name: each.astype(dtype) for name, each in stairs(1.0, 0.5, 0.1, 1e-9).items()}
    clocks = Clocks.of(Clock(), [550] * 101)

    found = staircase("x", "epochs")(values, clocks, Horizon(101, 550, 55_000))["x"][:, 0]

    assert (1 + np.flatnonzero(np.diff(found))).tolist() == list(range(10, 101, 10))


def test_epochs_need_a_training_set():
    with pytest.raises(SpecError, match='unit = "epochs": there is no training set here; use "examples" or "steps"'):
        staircase("x", "epochs")(stairs(8.0, 2.0, 1.0, 99.0), at(0), HORIZON)
