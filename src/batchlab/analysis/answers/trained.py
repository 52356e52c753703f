"""How far trials were trained, as far as a goal's metric tells: loops of one's own measure when they like."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from batchlab.core.result import StudyResult


def last_measured(result: StudyResult, metric: str, trial_ids: Container[int]) -> int:
    """Return the step to which all of some trials were measured: one that missed the goal takes more than that.

    A loop of one's own may end by itself, and examples may run out where the batch size grows.

    >>> from batchlab.analysis import example_study
    >>> last_measured(example_study(), "val/classification_error", (0, 1))
    300
    """
    if result.protocol.kind == "imported":
        return result.end_step
    trials = [trial for trial in result.trials if trial.trial_id in trial_ids]
    lasts = [int(result.steps_of(trial.trial_id, metric).max(initial=0)) for trial in trials]
    return min([result.end_step, *lasts])


def ended_alone(result: StudyResult, metric: str, trial_ids: Container[int]) -> bool:
    """Return whether one of some trials ended by itself, before the study did: it was silent when a value was due."""
    if result.protocol.kind == "imported":
        return False
    trials = [trial for trial in result.trials if trial.trial_id in trial_ids]
    return any(next_due(result.steps_of(trial.trial_id, metric)) <= result.end_step for trial in trials)


def next_due(measured: np.ndarray) -> float:
    """Return when the next value is due after some measured steps: after a gap as the last, or one that grew again.

    >>> [next_due(np.array(steps)) for steps in ([0, 100, 200], [100, 150, 225], [40], [])]
    [300.0, 337.5, 80.0, 1.0]
    """
    last = int(measured.max(initial=0))
    before = int(measured[measured < last].max(initial=0))
    earlier = int(measured[measured < before].max(initial=0))
    gap = max(last - before, 1)
    return float(last + max(gap, gap**2 / (before - earlier) if before > earlier else gap))
