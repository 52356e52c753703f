"""The dual of a time to a goal: the best value that can be reached in a given time, from the stored curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from batchlab.analysis.answers.full_protocol import as_full, is_cut_short
from batchlab.analysis.times.expected import Expected
from batchlab.analysis.trials.best import best_measurement
from batchlab.analysis.trials.budget import within_steps
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial


@dataclass(frozen=True, kw_only=True)
class BestByDeadline:
    """The best value in time, and how to get it."""

    value: float
    batch_size: int
    workers: int
    step: int
    seconds: Expected
    """Until that step."""

    trial: Trial
    num_trials: int
    """Complete trials at its batch size, of which this is the best: the value is a lucky one, and has no interval."""

    raced: tuple[int, ...] = ()
    """Batch sizes whose race ended before the deadline: with all of the time they might do better."""

    spent: tuple[int, ...] = ()
    """Those whose budget did."""


def best_by_deadline(
    studies: Iterable[StudyResult],
    goal: Goal,
    seconds: float,
    step_seconds: Callable[[int, int], Expected],
    workers: Sequence[int] = (1,),
) -> BestByDeadline | None:
    """Return the best value of the goal's metric that a stored trial reached in `seconds`; None where none was.

    What a trial starts from, at step 0, is not counted. `step_seconds` gives the time of a step at a batch size on some
    workers. Of equal values the one that is there first counts, then the one on fewer workers.

    >>> from batchlab.analysis import example_workload
    >>> goal = Goal.read("val/classification_error < 0.1")
    >>> best = best_by_deadline(example_workload(), goal, 2.0, lambda size, workers: Expected(0.005 + size / 10_000))
    >>> best.value, best.batch_size, best.step, round(best.seconds.value, 2)
    (0.2, 64, 100, 1.14)
    """
    found, raced, spent = list[BestByDeadline](), set[int](), set[int]()
    for study in studies:
        for count in (count for count in workers if count <= study.batch_size):
            each = step_seconds(study.batch_size, count)
            steps = math.floor(seconds / each.value)
            if study.end_step < steps:
                (raced if is_cut_short(study) else spent).add(study.batch_size)
            if best := _best(study, goal, steps, each, count):
                found.append(best)
    sign = 1 if goal.is_lower_better else -1
    first = min(found, key=lambda each: (sign * each.value, each.seconds.value, each.workers), default=None)
    return replace(first, raced=tuple(sorted(raced)), spent=tuple(sorted(spent))) if first else None


def _best(study: StudyResult, goal: Goal, steps: int, each: Expected, workers: int) -> BestByDeadline | None:
    """Return the best value of one study within some steps, or as far as it was trained."""
    known = as_full(within_steps(study, steps), min(steps, study.end_step))
    best = best_measurement(known, goal)
    if best is None or best.step == 0:
        return None
    return BestByDeadline(
        value=best.value,
        batch_size=study.batch_size,
        workers=workers,
        step=best.step,
        seconds=each.scaled(best.step),
        trial=best.trial,
        num_trials=best.num_trials,
    )
