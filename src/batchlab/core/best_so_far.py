"""BestSoFar: the rows of a sweep at which a metric was better than ever before in its trial.

These few rows answer when any goal was first met, and what the best value under any budget is, exactly as all
rows would.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from batchlab.core.result import StudyResult


@dataclass(frozen=True)
class BestSoFar:
    """The improving rows of the complete trials of a sweep, sorted by batch size, trial and step."""

    metric: str
    is_lower_better: bool
    end_steps: Mapping[int, int]
    """The step to which each study trained, by batch size."""

    batch_size: np.ndarray  # [num_rows] whole numbers
    order: np.ndarray  # [num_rows] whole numbers: the trial's place among the complete ones of its study, from 0
    trial_id: np.ndarray  # [num_rows] whole numbers
    step: np.ndarray  # [num_rows] int64
    value: np.ndarray  # [num_rows] float64

    def __len__(self) -> int:
        return len(self.step)

    @classmethod
    def of(cls, result: StudyResult, metric: str, is_lower_better: bool) -> BestSoFar:
        """Return the rows of one study; none where the metric was not measured."""
        trial_ids = np.array([trial.trial_id for trial in result.first_complete()], dtype=np.int64)
        rows, order = _improvements(result, metric, is_lower_better, trial_ids)
        return cls(
            metric=metric,
            is_lower_better=is_lower_better,
            end_steps={result.batch_size: result.end_step},
            batch_size=np.full(len(rows), result.batch_size, dtype=np.int64),
            order=order,
            trial_id=result.measurements.trial_id[rows],
            step=result.measurements.step[rows],
            value=result.measurements.metrics[metric][rows] if len(rows) else np.empty(0),
        )

    @classmethod
    def join(cls, parts: Iterable[BestSoFar]) -> BestSoFar:
        """Return the rows of several studies of one sweep; there is at least one."""
        parts = sorted(parts, key=lambda part: min(part.end_steps))
        return cls(
            metric=parts[0].metric,
            is_lower_better=parts[0].is_lower_better,
            end_steps={size: end_step for part in parts for size, end_step in part.end_steps.items()},
            batch_size=np.concatenate([part.batch_size for part in parts]),
            order=np.concatenate([part.order for part in parts]),
            trial_id=np.concatenate([part.trial_id for part in parts]),
            step=np.concatenate([part.step for part in parts]),
            value=np.concatenate([part.value for part in parts]),
        )


def _improvements(
    result: StudyResult, metric: str, is_lower_better: bool, trial_ids: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the improving rows of these ascending trials, and the place of each row's trial among them."""
    rows = result.measurements
    if metric not in rows.metrics:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    cost = rows.metrics[metric] if is_lower_better else -rows.metrics[metric]
    cost = np.where(np.isnan(cost), np.inf, cost)
    starts, ends = (np.searchsorted(rows.trial_id, trial_ids, side) for side in ("left", "right"))
    before = np.full(len(cost) + 1, -np.inf)  # the best before each row; rows of other trials never improve on it
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end > start:
            before[start] = np.inf
            np.minimum.accumulate(cost[start : end - 1], out=before[start + 1 : end])
    improving = np.flatnonzero(cost < before[:-1])
    order = np.searchsorted(trial_ids, rows.trial_id[improving])
    return improving, order
