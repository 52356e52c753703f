"""Whether what a program measures is what the contract asks for; one that is not ours is looked at each time."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from batchlab.core.study import Study
from batchlab.engine.base import Program
from batchlab.errors import TrainerError


def is_ours(program: Program) -> bool:
    """Return whether a program is one of batchlab's, or trains through one."""
    return getattr(program, "is_ours", False) is True


def check_measured(program: Program, metrics: Any, study: Study) -> None:
    """Raise TrainerError where `metrics`, just evaluated, are not arrays by name, or the goal's is no finite number.

    Other metrics may be left out at some steps, and may be no numbers.
    """
    name, goal = class_name(program), study.goal.metric
    if not isinstance(metrics, dict):
        raise TrainerError(
            f"{name}.evaluate() is {typed(metrics)} {_where(program, study)}: give a dict from metric to values."
        )
    if goal not in metrics:
        raise TrainerError(
            f"{name}.evaluate() gives {', '.join(map(str, metrics)) or 'nothing'}, but not the goal's {goal}, "
            f"{_where(program, study)}: measure it each time; other metrics may be left out."
        )
    for metric, values in metrics.items():
        _check_shape(f'{name}.evaluate()["{metric}"]', values, program, study)
    _check_numbers(f'{name}.evaluate()["{goal}"]', metrics[goal], program, study)


def _check_shape(place: str, values: Any, program: Program, study: Study) -> None:
    num_live = len(program.trial_ids)
    if not isinstance(values, np.ndarray) or values.shape != (num_live,) or values.dtype.kind not in "iuf":
        raise TrainerError(
            f"{place} is {typed(values)} {_where(program, study)}: give a NumPy array of {num_live} float64,"
            " one for each live trial, in the order of `trial_ids`."
        )


def _check_numbers(place: str, values: np.ndarray, program: Program, study: Study) -> None:
    # A metric of a user's own network, a perplexity say, may overflow before the loss that TorchProgram goes by does.
    is_bad = np.isnan(values) if is_ours(program) else ~np.isfinite(values)
    if is_bad.any():
        first = int(is_bad.argmax())
        raise TrainerError(
            f"{place} is {values[first]:g} {_where(program, study, first)}: let a trial that diverges leave `trial_ids`"
            " and put the step into `diverged`; before any update the value has to be a finite number."
        )


def _where(program: Program, study: Study, row: int | None = None) -> str:
    """Return the step and the trial in this row, or in all."""
    trials, others = f"trial {program.trial_ids[row or 0]}", len(program.trial_ids) - 1
    if row is None and others:
        trials += f" and {others} other{'s' if others > 1 else ''}"
    return f"at step {program.step} for {trials} (batch size {study.batch_size})"


def class_name(value: Any) -> str:
    """Return the name of a class or function, else that of the value's class."""
    return value.__name__ if inspect.isclass(value) or inspect.isfunction(value) else type(value).__name__


def typed(value: Any) -> str:
    """Return a value and what it is, short.

    >>> typed(0.5)
    '0.5 (float)'
    """
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
