"""Trials stuck at chance: they did not diverge, and they did not learn."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult

MIN_PROGRESS = 0.1
"""A trial has left chance once it has closed more than this share of the way from chance to the threshold."""


def count_stuck(result: StudyResult, goal: Goal, trial_ids: Collection[int] | None = None) -> int:
    """Return how many of the complete trials, or of those named, never left chance, as far as they were evaluated.

    Chance is the median of the goal's metric at step 0, over these trials. 0 where it was not measured there, is
    infinite, or meets the goal.

    >>> from batchlab.analysis import example_study
    >>> count_stuck(example_study(), Goal.read("val/classification_error < 0.08"))
    0
    """
    rows = result.measurements
    if goal.metric not in rows.metrics:
        return 0
    if trial_ids is None:
        trial_ids = [trial.trial_id for trial in result.first_complete()]
    is_used = np.isin(rows.trial_id, list(trial_ids))
    ids, steps, costs = (column[is_used] for column in (rows.trial_id, rows.step, rows.metrics[goal.metric]))
    costs, threshold = (costs, goal.threshold) if goal.is_lower_better else (-costs, -goal.threshold)
    is_later = (steps > 0) & ~np.isnan(costs)
    if np.isnan(costs[steps == 0]).all() or not is_later.any():
        return 0
    chance = float(np.nanmedian(costs[steps == 0]))
    if chance <= threshold or not np.isfinite(chance):
        return 0
    has_left = is_later & (costs < chance - MIN_PROGRESS * (chance - threshold))
    return len(np.setdiff1d(_once(ids[is_later]), _once(ids[has_left])))


def _once(ids: np.ndarray) -> np.ndarray:
    """Return each trial once, since sorting millions of rows is slow: those of one trial stand together."""
    return np.compress(np.diff(ids, prepend=ids[:1] - 1) != 0, ids)
