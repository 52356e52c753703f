"""Does a curve hinge on the single best trial? Steps to result when the best trials of each study are removed."""

from __future__ import annotations

from dataclasses import replace

from batchlab.analysis.answers.full_protocol import check_full
from batchlab.analysis.answers.steps_to_result import StepsToResult, fewest_steps, first_steps
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.errors import InputError


def steps_without_best(
    result: StudyResult, goal: Goal, num_removed: int, num_trials: int | None = None
) -> StepsToResult:
    """Return steps to result over the first complete trials without the `num_removed` that met the goal first.

    Trials are removed in the order of their steps, ties in the order of their ids; a trial that never met the goal goes
    last. InputError for a race that ended before its budget.

    >>> from batchlab.analysis import example_study
    >>> goal = Goal.read("val/classification_error < 0.085")
    >>> [steps_without_best(example_study(), goal, num_removed).steps for num_removed in (0, 1, 2, 3)]
    [200, 200, 300, None]
    """
    if num_removed < 0:
        raise InputError(f"num_removed = {num_removed} removes no trial. Use 0 or more.")
    if num_removed > 0:
        check_full(result, "What remains without the best trials")
    steps = first_steps(result, goal, num_trials)
    ranked = sorted(steps, key=lambda trial_id: (steps[trial_id] is None, steps[trial_id] or 0, trial_id))
    found = fewest_steps(result, goal, {trial_id: steps[trial_id] for trial_id in ranked[num_removed:]})
    return replace(found, best_of=None) if num_removed else found  # what is left is no random draw
