"""Whether the files of a finished study belong together: one that was exchanged or edited must not answer silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from batchlab.core.confirmation import Confirmation, Replicate
from batchlab.core.goal import Goal
from batchlab.core.measurement import Measurements
from batchlab.core.result import StudyResult
from batchlab.core.study import Study
from batchlab.core.trial import Trial
from batchlab.errors import VERIFY, DamagedError

if TYPE_CHECKING:
    from batchlab.store.study_record import StudyRecord


def check_files(
    folder: Path,
    record: StudyRecord,
    trials: Sequence[Trial],
    measurements: Measurements,
    confirmation: Confirmation | None,
) -> None:
    """Raise DamagedError for the first file of a finished study that does not agree with the others."""
    for name, problem in problems(record, trials, measurements, confirmation):
        raise DamagedError(f"{folder / name} does not belong to its study: {problem}. {VERIFY}")


def check_outcome(folder: Path, record: StudyRecord, result: StudyResult) -> None:
    """Raise DamagedError where the steps to the goal, computed again, are not those of the record."""
    if record.study is None:
        return
    if (steps := steps_to_goal(result, record.study.goal)) != record.best_steps:
        told = f"the goal was met after {steps} steps, not as it says"
        raise DamagedError(f"{folder / 'study.json'} is damaged: {told}. {VERIFY}")


def problems(
    record: StudyRecord, trials: Sequence[Trial], measurements: Measurements, confirmation: Confirmation | None
) -> Iterator[tuple[str, str]]:
    """Yield file and sentence of what does not agree; each test assumes that those before it passed."""
    if record.end_step is None or record.counts is None or record.num_measurements is None:
        yield "study.json", "it tells no outcome"
    if len(measurements) != record.num_measurements:
        yield "measurements.parquet", f"{len(measurements):,} rows, not {record.num_measurements:,}"
    if record.study is None:  # an archive is taken as it is
        return
    for problem in _trial_problems(record, record.study, trials):
        yield "trials.json", problem
    if not _is_sorted(measurements) or _last_steps(measurements) != {t.trial_id: t.last_step for t in trials}:
        yield "measurements.parquet", "its trials end at other steps than trials.json tells"
    if miscount := examples_problem(measurements, record.study):
        yield "measurements.parquet", miscount
    for problem in _confirmation_problems(trials, confirmation) if confirmation else ():
        yield "confirmed.json", problem


def examples_problem(rows: Measurements, study: Study) -> str | None:
    """Return what of the examples of rows, which are sorted, cannot be; None where all is well."""
    if rows.examples is None:
        return "it does not tell its examples" if study.workload.schedules_batch_size else None
    is_same = np.diff(rows.trial_id) == 0
    if np.any(rows.examples < 0) or np.any(np.diff(rows.examples)[is_same] < 0):
        return "its examples become fewer"
    return None


def steps_to_goal(result: StudyResult, goal: Goal) -> int | None:
    """Return the fewest steps in which a complete trial of a study met a goal; None where none did."""
    rows = result.measurements
    if goal.metric not in rows.metrics:
        return None
    complete = np.isin(rows.trial_id, [trial.trial_id for trial in result.first_complete()])
    steps = rows.step[complete & goal.is_met(rows.metrics[goal.metric])]
    return int(steps.min()) if len(steps) else None


def _trial_problems(record: StudyRecord, study: Study, trials: Sequence[Trial]) -> Iterator[str]:
    counts = Counter(trial.status for trial in trials)
    if any(counts[status] != number for status, number in (record.counts or {}).items()):
        yield "it has other numbers of trials"
    if [trial.trial_id for trial in trials] != list(range(len(trials))) or len(trials) > len(record.points):
        yield "its trials are not those of the points 0, 1, 2, ..."
    for trial, point in zip(trials, record.points, strict=False):
        if trial.metaparameters != study.metaparameters(point):
            yield f"trial {trial.trial_id} has other metaparameters than its point"


def _is_sorted(measurements: Measurements) -> bool:
    trial, step = np.diff(measurements.trial_id), np.diff(measurements.step)
    return bool(np.all((trial > 0) | ((trial == 0) & (step > 0))))


def _last_steps(measurements: Measurements) -> dict[int, int]:
    if not len(measurements):
        return {}
    ends = np.append(np.flatnonzero(np.diff(measurements.trial_id)), len(measurements) - 1)
    return dict(zip(measurements.trial_id[ends].tolist(), measurements.step[ends].tolist(), strict=True))


def _confirmation_problems(trials: Sequence[Trial], confirmation: Confirmation) -> Iterator[str]:
    if not {trial.trial_id for trial in trials} >= set(confirmation.trial_ids):
        yield "it is of trials that there are not"
    if not _has_all_replicates(confirmation):
        yield "its replicates are not those of its trials and seeds"
    if not all(_is_possible(each, confirmation.end_step) for each in confirmation.replicates):
        yield f"a replicate ends neither at the goal nor at its divergence nor at step {confirmation.end_step}"


def _is_possible(replicate: Replicate, end_step: int) -> bool:
    if not 0 <= replicate.last_step <= end_step:
        return False
    if replicate.goal_step is None:
        return replicate.diverged_step is not None or replicate.last_step == end_step
    return replicate.goal_step == replicate.last_step


def _has_all_replicates(confirmation: Confirmation) -> bool:
    if len(confirmation.replicates) != len(confirmation.trial_ids) * confirmation.seeds:
        return False  # before as many are counted as a damaged number says
    wanted = [(trial_id, i) for trial_id in confirmation.trial_ids for i in range(1, confirmation.seeds + 1)]
    return [(each.trial_id, each.replicate) for each in confirmation.replicates] == wanted
