"""The points of a study by what became of them: goal met, goal not met, infeasible."""

from __future__ import annotations

from dataclasses import dataclass

from batchlab.analysis.answers.full_protocol import check_full
from batchlab.analysis.answers.steps_to_result import first_steps
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.core.trial import Status, Trial


@dataclass(frozen=True, kw_only=True)
class ClassifiedPoints:
    """The complete and infeasible trials of a study, each in one class, in ascending id; incomplete ones in none."""

    met: tuple[Trial, ...]
    not_met: tuple[Trial, ...]
    infeasible: tuple[Trial, ...]
    """Diverged at some point, even if the goal had been met before."""

    best: Trial | None
    """Of those that met the goal the one with the fewest steps; ties go to the smallest id."""


def classify_points(result: StudyResult, goal: Goal, max_steps: float | None = None) -> ClassifiedPoints:
    """Return the classes of all complete and infeasible trials, under a budget of `max_steps` (inclusive) or none.

    InputError for a race that ended before the budget: it does not know what would have become of its trials.

    >>> from batchlab.analysis import example_study
    >>> points = classify_points(example_study(), Goal.read("val/classification_error < 0.08"), max_steps=200)
    >>> [[trial.trial_id for trial in group] for group in (points.met, points.not_met, points.infeasible)]
    [[3], [0, 1], [2]]
    >>> points.best.trial_id
    3
    """
    if max_steps is None or max_steps > result.end_step:
        check_full(result, "What became of every point")
    steps = first_steps(result, goal)
    if max_steps is not None:
        steps = {trial_id: step if _is_within(step, max_steps) else None for trial_id, step in steps.items()}
    met = tuple(trial for trial in result.trials if steps.get(trial.trial_id) is not None)
    return ClassifiedPoints(
        met=met,
        not_met=tuple(trial for trial in result.first_complete() if steps[trial.trial_id] is None),
        infeasible=tuple(trial for trial in result.trials if trial.status is Status.INFEASIBLE),
        best=min(met, key=lambda trial: (steps[trial.trial_id], trial.trial_id), default=None),
    )


def _is_within(step: int | None, max_steps: float) -> bool:
    return step is not None and step <= max_steps
