"""Each breach of the contract that shows only in a later evaluation, and the one sentence it gets."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.sweep import Sweep
from batchlab.engine.loop import train
from batchlab.errors import TrainerError

SWEEP = {
    "name": "own",
    "workload": {"dataset": "own", "model": "own", "optimizer": "own"},
    "sweep": {"batch_sizes": [8], "trials": 4, "max_steps": 40, "goal": "val/loss < 0.1", "evaluate": {"every": 10}},
    "search_space": {"learning_rate": {"min": 0.1, "max": 0.5}},
    "engine": {},
}
WAY_OUT = (
    "let a trial that diverges leave `trial_ids` and put the step into `diverged`; "
    "before any update the value has to be a finite number."
)


class Program:
    """Three trials that measure 1, and from step 20 on what they are told to."""

    def __init__(self, late):
        self.step, self.diverged, self.trial_ids, self.late = 0, {}, np.array([2, 5, 7]), late

    def evaluate(self):
        return self.late(self) if self.step >= 20 else {"val/loss": np.ones(len(self.trial_ids))}

    def advance(self, target):
        self.step = target


class ProgramOfOurs(Program):
    is_ours = True


def steps_of(late, program_class=Program):
    """Return the steps at which a program is evaluated."""
    study = Sweep.parse(SWEEP, "own").study(8)
    return [evaluated.step for evaluated in train(program_class(late), study, lambda: 40)]


def refusal(late):
    """Return the one sentence that a program gets."""
    with pytest.raises(TrainerError) as caught:
        steps_of(late)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_trial_of_several_measures_no_finite_number(value):
    sentence = refusal(lambda program: {"val/loss": np.array([1.0, value, 1.0])})

    assert sentence == f'Program.evaluate()["val/loss"] is {value} at step 20 for trial 5 (batch size 8): {WAY_OUT}'


def test_the_goals_metric_has_another_name():
    assert refusal(lambda program: {"val/los": np.ones(3)}) == (
        "Program.evaluate() gives val/los, but not the goal's val/loss, at step 20 for trial 2 and 2 others "
        "(batch size 8): measure it each time; other metrics may be left out."
    )


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (0.5, "0.5 (float)"),
        ([1.0, 1.0, 1.0], "[1.0, 1.0, 1.0] (list)"),
        (np.ones(2), "an array of float64 with shape (2,)"),
        (np.ones((3, 1)), "an array of float64 with shape (3, 1)"),
        (np.array([None] * 3), "an array of object with shape (3,)"),
    ],
)
@pytest.mark.parametrize("metric", ["val/loss", "val/accuracy"])
def test_a_metric_is_no_array_with_a_number_for_each_trial(metric, values, shown):
    assert refusal(lambda program: {"val/loss": np.ones(3), metric: values}) == (
        f'Program.evaluate()["{metric}"] is {shown} at step 20 for trial 2 and 2 others (batch size 8): give a NumPy '
        "array of 3 float64, one for each live trial, in the order of `trial_ids`."
    )


def test_metrics_are_no_dict():
    assert refusal(lambda program: None).startswith("Program.evaluate() is None (NoneType) at step 20 for trial 2 and")


def test_a_single_trial_stands_alone():
    def late(program):
        program.trial_ids = program.trial_ids[:1]
        return {}

    assert "gives nothing, but not the goal's val/loss, at step 20 for trial 2 (batch size 8)" in refusal(late)


def test_another_metric_may_be_measured_at_some_steps_and_be_no_number():
    def late(program):
        probe = {"train/probe": np.full(3, np.nan)} if program.step == 30 else {}
        return {"val/loss": np.ones(3), **probe}

    assert steps_of(late) == [0, 10, 20, 30, 40]


def test_a_trial_that_has_diverged_is_not_asked():
    def late(program):
        program.trial_ids, program.diverged = np.array([2, 7]), {5: 20}
        return {"val/loss": np.ones(2)}

    assert steps_of(late) == [0, 10, 20, 30, 40]


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_program_of_ours_may_measure_no_number_until_its_loss_shows_it(value):
    assert steps_of(lambda program: {"val/loss": np.array([1.0, value, 1.0])}, ProgramOfOurs) == [0, 10, 20, 30, 40]
