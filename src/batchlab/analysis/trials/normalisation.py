"""Curves of different workloads on one scale: steps relative to the steps at one batch size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batchlab.analysis.answers.steps_to_result import StepsToResult
from batchlab.analysis.text import listed
from batchlab.errors import InputError


@dataclass(frozen=True)
class NormalisedPoint:
    """One batch size of a normalised curve."""

    batch_size: int
    ratio: float


def normalise_steps(rows: Sequence[StepsToResult], batch_size: int) -> tuple[NormalisedPoint, ...]:
    """Return steps relative to those at `batch_size`, for the rows that met the goal.

    InputError where no row has that batch size, where its goal was not met, or met before the first update.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> goal = Goal.read("val/classification_error < 0.1")
    >>> points = normalise_steps([steps_to_result(study, goal) for study in example_workload()], batch_size=16)
    >>> [(point.batch_size, point.ratio) for point in points]
    [(16, 1.0), (64, 0.25), (256, 0.125)]
    """
    reached = [row for row in rows if row.steps is not None]
    base = next((row for row in reached if row.batch_size == batch_size and row.steps), None)
    if base is None or not base.steps:
        sizes = [row.batch_size for row in reached if row.steps]
        way_out = f"Choose one of {listed(sizes)}" if sizes else "No batch size met it by training"
        raise InputError(f"The goal was not met by training at batch size {batch_size}. {way_out}.")
    return tuple(NormalisedPoint(row.batch_size, (row.steps or 0) / base.steps) for row in reached)
