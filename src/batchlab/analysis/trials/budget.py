"""Budgets: a study as if its trials had been given fewer steps, or fewer examples.

Both limits are inclusive. A batch size takes part only where its study trained to the end of the budget: otherwise an
unfinished study would look like a bad batch size. Under an epoch budget, examples are epochs times the size of the
training set. A race may be asked under any budget up to its end: so far all its trials did train.
"""

from __future__ import annotations

import math
from dataclasses import replace

from batchlab.analysis.answers.full_protocol import as_full
from batchlab.core.result import StudyResult
from batchlab.errors import InputError


def apply_step_budget(result: StudyResult, max_steps: float) -> StudyResult | None:
    """Return the study's rows with step <= `max_steps`, or None where it did not train that long.

    >>> from batchlab.analysis import example_study
    >>> apply_step_budget(example_study(), 200).measurements.step.max()
    np.int64(200)
    >>> apply_step_budget(example_study(), 301) is None
    True
    """
    _check_budget(max_steps, "steps")
    if result.end_step < max_steps:
        return None
    return as_full(within_steps(result, max_steps), math.floor(max_steps))


def apply_example_budget(result: StudyResult, max_examples: float) -> StudyResult | None:
    """Return the study's rows with at most `max_examples` seen, or None where it did not train that long.

    >>> from batchlab.analysis import example_workload
    >>> [apply_example_budget(study, 64 * 200) is not None for study in example_workload()]
    [True, True, True]
    >>> [apply_example_budget(study, 64 * 400) is not None for study in example_workload()]
    [False, False, True]
    """
    _check_budget(max_examples, "examples")
    if result.end_examples < max_examples:
        return None
    cut = replace(result, measurements=result.measurements.where(result.examples <= max_examples))
    return as_full(cut, result.end_step_within(max_examples))


def _check_budget(most: float, unit: str) -> None:
    if not most >= 0:
        raise InputError(f"A budget of {most} {unit} is none. Use 0 or more.")


def within_steps(result: StudyResult, max_steps: float) -> StudyResult:
    """Return the study's rows with step <= `max_steps`, however long it trained.

    >>> from batchlab.analysis import example_study
    >>> len(within_steps(example_study(), 100).measurements)
    8
    """
    return replace(result, measurements=result.measurements.where(result.measurements.step <= max_steps))
