"""Whether a study in a lab is one of the sweep in whose folder it lies."""

from __future__ import annotations

from pathlib import Path

from batchlab.core.growth import fixed_digest, study_changes
from batchlab.errors import OlderSpecError, shown
from batchlab.store.seal import damaged
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord
from batchlab.store.sweep_folder import spec_path, sweep_folder_of


def check_belongs(folder: StudyFolder, record: StudyRecord, sweep: StoredSweep, batch_size: int) -> None:
    """Raise DamagedError where a stored study is not of its sweep."""
    path = folder.folder / "study.json"
    if record.workload != sweep.workload:
        spec = spec_path(sweep_folder_of(folder))
        raise damaged(path, f"it is of {shown(record.workload)}, and {spec} is of {shown(sweep.workload)}")
    if record.facts.batch_size != batch_size:
        raise damaged(path, f"it is of {shown(record.workload)} at batch size {record.facts.batch_size}")
    if (record.study is None) != (sweep.spec is None):
        raise damaged(path, "it was run, and its sweep imported, or the other way round")
    if record.study is None or sweep.spec is None:
        return
    if record.study.fingerprint != sweep.spec.study(batch_size).fingerprint:
        raise damaged(path, f"it is of another study than its sweep's, {_spec_of(folder)}")
    if changes := study_changes(record.study, sweep.spec.study(batch_size)):
        why = f"it asks for more than {_spec_of(folder)}: {'; '.join(changes)}; one of the two is older"
        raise damaged(path, why, OlderSpecError)
    if folder.is_sealed and record.sweep != fixed_digest(sweep.spec):
        raise damaged(path, "it is of another sweep")


def _spec_of(folder: StudyFolder) -> Path:
    """Return where the spec lies that a study is of."""
    return sweep_folder_of(folder) / "sweep.json"


def finished_record(folder: StudyFolder, sweep: StoredSweep, batch_size: int) -> StudyRecord | None:
    """Return the record of a study that has ended; DamagedError where it, ended or not, is none of its sweep."""
    if not folder.has_begun():
        return None
    record = folder.record()
    check_belongs(folder, record, sweep, batch_size)
    folder.check_listed(record.state, record.files or {})
    return record if record.state == "finished" else None
