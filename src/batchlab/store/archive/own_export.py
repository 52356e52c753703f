"""What one of our own exports tells beside the published layout: the sweep that a study was of, and its record.

Both come from outside, as all of an archive does: a record that is not the one of its trials would be a wrong answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batchlab.core.growth import fixed_digest, study_changes
from batchlab.core.measurement import Measurements
from batchlab.core.sweep import Sweep
from batchlab.core.trial import Trial
from batchlab.errors import SpecError, shown
from batchlab.store.archive.admission import is_sweep_name
from batchlab.store.archive.layout import RejectedError, StudyPath
from batchlab.store.consistency import problems, steps_to_goal
from batchlab.store.migrations import upgraded_sweep
from batchlab.store.study_record import StudyRecord


def read_sweep(extra: Mapping[str, Any], path: StudyPath, name: str | None) -> Sweep:
    """Return the sweep that a study was of, under another name where one is given."""
    try:
        sweep = Sweep.parse(upgraded_sweep(extra["sweep"]), "study.json")
    except KeyError:
        raise RejectedError("study.json tells of a batchlab study without its sweep") from None
    except (SpecError, RecursionError) as error:
        raise RejectedError(str(error)) from None
    if sweep.workload.name != path.workload:
        raise RejectedError(f"study.json is of a sweep of {sweep.workload.name}, its folder of {path.workload}")
    if path.batch_size not in sweep.search.batch_sizes:
        raise RejectedError(f"study.json is of a sweep that has no batch size {path.batch_size}")
    sweep = sweep if name is None else sweep.model_copy(update={"name": name})
    if not is_sweep_name(sweep.name):
        raise RejectedError(f'no sweep can be called "{shown(sweep.name)}"; give it a name with --as')
    return sweep


def read_record(
    extra: Mapping[str, Any], sweep: Sweep, path: StudyPath, trials: Sequence[Trial], measurements: Measurements
) -> StudyRecord:
    """Return the record of a study; RejectedError where it is not one of this sweep, batch size and trials."""
    try:
        record = StudyRecord.parse(extra["record"], "study.json")
    except KeyError:
        raise RejectedError("study.json tells of a batchlab study without its record") from None
    except (SpecError, RecursionError) as error:
        raise RejectedError(str(error)) from None
    _check_study(record, sweep, path)
    for name, problem in problems(record, trials, measurements, None):
        raise RejectedError(f"the record in study.json is not that of its trials ({name}: {problem})")
    assert record.study is not None
    result = record.result(trials, measurements)
    if record.best_steps != (steps := steps_to_goal(result, record.study.goal)):
        raise RejectedError(f"study.json says that the goal took {record.best_steps} steps, its trials say {steps}")
    if record.end_step != record.study.end_step(steps):
        raise RejectedError(f"study.json says that training ended at step {record.end_step}, its trials tell otherwise")
    return record.model_copy(update={"files": None, "sweep": fixed_digest(sweep)})


def _check_study(record: StudyRecord, sweep: Sweep, path: StudyPath) -> None:
    """Refuse the record of another study."""
    if record.study is None or record.state != "finished":
        raise RejectedError("the record in study.json is not that of a finished study")
    if (record.workload, record.study.batch_size) != (path.workload, path.batch_size):
        raise RejectedError(f"the record in study.json is of {record.workload}/{record.study.batch_size}")
    study = sweep.study(path.batch_size)
    if record.study.fingerprint != study.fingerprint or study_changes(record.study, study):
        raise RejectedError("the record in study.json is of another study than its sweep's")
