"""How far trials were trained, as far as a goal's metric tells: loops of one's own measure when they like."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from batchlab.core.result import StudyResult


def measured_steps_of(result: StudyResult, metric: str, trial_ids: Collection[int]) -> dict[int, np.ndarray]:
    """Return the steps at which a metric was measured, by trial; nothing of an imported study, which ends as a whole.

    >>> from dataclasses import replace
    >>> from batchlab.analysis import example_study
    >>> from batchlab.core.protocol import Protocol
    >>> study = replace(example_study(), protocol=Protocol(kind="full"))
    >>> found = measured_steps_of(study, "val/classification_error", [0, 1])
    >>> {trial_id: steps.tolist() for trial_id, steps in found.items()}
    {0: [0, 100, 200, 300], 1: [0, 100, 200, 300]}
    """
    rows = result.measurements
    if result.protocol.kind == "imported" or metric not in rows.metrics:
        return {}
    is_there = ~np.isnan(rows.metrics[metric])
    owners, steps = rows.trial_id[is_there], rows.step[is_there]
    order = np.argsort(owners, kind="stable")
    found, starts = np.unique(owners[order], return_index=True)
    parts = dict(zip(found.tolist(), np.split(steps[order], starts[1:]), strict=False))  # no rows are split into one
    return {trial_id: parts.get(trial_id, steps[:0]) for trial_id in trial_ids}


def last_measured(result: StudyResult, measured: Iterable[np.ndarray]) -> int:
    """Return the step to which all of some trials were measured: one that missed the goal takes more than that.

    A loop of one's own may end by itself, and examples may run out where the batch size grows.
    """
    return min([result.end_step, *(int(steps.max(initial=0)) for steps in measured)])


def ended_alone(result: StudyResult, measured: Iterable[np.ndarray]) -> bool:
    """Return whether one of some trials ended by itself, before the study did: it was silent when a value was due."""
    return any(next_due(steps) <= result.end_step for steps in measured)


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
