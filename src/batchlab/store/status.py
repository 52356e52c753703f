"""The state of a lab, from its records; of the measurements only the number is read, to see that they are there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from batchlab.core.growth import fixed_digest
from batchlab.core.study import Study
from batchlab.core.trial import Status
from batchlab.errors import VERIFY, DamagedError, LabError, SpecError, shown
from batchlab.store.lab import Lab, not_imported
from batchlab.store.rejected import FILE, count_rejected
from batchlab.store.seal import FileSeal, damaged, read_sealed
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_folder import StudyFolder
from batchlab.store.throughput import FOLDER, read_throughputs

_STATUSES = {status.value for status in Status}


@dataclass(frozen=True)
class SweepStatus:
    """How far one sweep is. Trials are those of finished studies."""

    sweep: str
    workload: str
    studies: int
    finished: int
    complete: int
    infeasible: int
    incomplete: int
    measurements: int
    rejected: int = 0
    """Broken studies and trials that imports have left out of it."""

    throughputs: int = 0
    """Machines on which its step times were measured."""

    growing: int = 0
    """Finished studies of which more was asked than is there; until it is, the smaller one answers."""

    problems: tuple[str, ...] = ()
    """What cannot be read of it, a sentence each."""


def sweep_statuses(lab: Lab) -> list[SweepStatus]:
    """Return the status of every sweep, by name; then what imports have left out that is of none of them."""
    statuses = [_status(lab, name) for name in lab.sweep_names()]
    try:
        rejected = count_rejected(lab.folder, {status.sweep: status.workload for status in statuses})
    except LabError as error:
        return [*statuses, SweepStatus(FILE, "cannot be read", 0, 0, 0, 0, 0, 0, problems=(str(error),))]
    known = [replace(status, rejected=rejected.pop(status.sweep, 0)) for status in statuses]
    others = (SweepStatus(name, "nothing came", 0, 0, 0, 0, 0, 0, number) for name, number in sorted(rejected.items()))
    return [*known, *others, *_unreadable_throughputs(lab)]


def _unreadable_throughputs(lab: Lab) -> list[SweepStatus]:
    """Return a line for step times that cannot be read."""
    problems = tuple(map(str, read_throughputs(lab.folder)[1]))
    return [SweepStatus(FOLDER, "cannot be read", 0, 0, 0, 0, 0, 0, problems=problems)] if problems else []


def _count_throughputs(lab: Lab, sweep: StoredSweep) -> int:
    return sum(record.is_of(sweep) for record in read_throughputs(lab.folder)[0])


def _status(lab: Lab, name: str) -> SweepStatus:
    try:
        sweep = lab.sweep(name)
    except LabError as error:
        return SweepStatus(name, "cannot be read", 0, 0, 0, 0, 0, 0, problems=(str(error),))
    finished, growing, problems = [], 0, []
    for batch_size in sweep.batch_sizes:
        try:
            if record := _sound_record(lab, sweep, batch_size):
                finished.append(record)
                growing += _is_growing(lab, sweep, batch_size, record)
            elif sweep.spec is None:
                problems.append(str(not_imported(lab, name, batch_size)))
        except LabError as error:
            problems.append(str(error))
    counts = [record["counts"] for record in finished]
    return SweepStatus(
        sweep=name,
        workload=sweep.workload,
        studies=len(sweep.batch_sizes),
        finished=len(finished),
        complete=sum(count["COMPLETE"] for count in counts),
        infeasible=sum(count["INFEASIBLE"] for count in counts),
        incomplete=sum(count["INCOMPLETE"] for count in counts),
        measurements=sum(record["num_measurements"] for record in finished),
        throughputs=_count_throughputs(lab, sweep),
        growing=growing,
        problems=tuple(problems),
    )


def _sound_record(lab: Lab, sweep: StoredSweep, batch_size: int) -> dict[str, Any] | None:
    """Return the record of a finished study whose table is there; None of one that has not finished."""

    def look(folder: StudyFolder) -> dict[str, Any] | None:
        record = _finished_record(folder, sweep, batch_size)
        if record is not None:
            folder.check_measurements(record["num_measurements"], _table_seal(folder, record))
        return record

    return lab.study_folder(sweep.name, batch_size).undisturbed(look)


def _is_growing(lab: Lab, sweep: StoredSweep, batch_size: int, record: dict[str, Any]) -> bool:
    """Return whether more was asked of a finished study than its record, as plain JSON, asks for."""
    if sweep.spec is None:
        return False
    path = lab.study_folder(sweep.name, batch_size).folder / "study.json"
    try:
        study = Study.parse(record.get("study"), str(path))
    except SpecError as error:
        raise DamagedError(f"{error} {VERIFY}") from None
    return lab.is_growing(sweep.spec, batch_size, study)


def _table_seal(folder: StudyFolder, record: dict[str, Any]) -> FileSeal | None:
    """Return the seal of the table; None in a lab that has none."""
    try:
        return FileSeal.parse(_listed(record)["measurements.parquet"], "study.json")
    except (KeyError, SpecError):
        if folder.is_sealed:
            raise damaged(folder.folder / "study.json", "it lists no measurements") from None
        return None


def _listed(record: dict[str, Any]) -> dict[str, Any]:
    """Return the seals that a record lists, by file."""
    files = record.get("files")
    return files if isinstance(files, dict) else {}


def _finished_record(folder: StudyFolder, sweep: StoredSweep, batch_size: int) -> dict[str, Any] | None:
    """Return study.json of a finished study as plain JSON: checking half a million points would take seconds."""
    if not folder.has_begun():
        return None
    path = folder.folder / "study.json"
    record = read_sealed(path, is_sealed=folder.is_sealed)
    if folder.is_sealed:
        _check_belongs(path, record, sweep, batch_size)
    if not (record.get("state") == "running" or _tells_outcome(record)):
        raise damaged(path, "it tells no outcome")
    folder.check_listed(record["state"], _listed(record))
    return None if record["state"] == "running" else record


def _check_belongs(path: Path, record: dict[str, Any], sweep: StoredSweep, batch_size: int) -> None:
    """Raise DamagedError where a record is of another study, or of another sweep."""
    facts = record.get("study" if sweep.spec else "imported")
    if not isinstance(facts, dict) or facts.get("batch_size") != batch_size:
        raise damaged(path, "it is of another study")
    if record.get("sweep") != (fixed_digest(sweep.spec) if sweep.spec else None):
        raise damaged(path, "it is of another sweep")
    if sweep.spec is None and facts.get("workload") != sweep.workload:
        raise damaged(path, f"it is of {shown(facts.get('workload'))}")


def _tells_outcome(record: dict[str, Any]) -> bool:
    """Return whether a record holds the numbers that a finished study has."""
    counts = record.get("counts")
    numbers = [record.get("num_measurements"), *(counts.values() if isinstance(counts, dict) else [None])]
    are_counts = all(isinstance(number, int) for number in numbers)
    return record.get("state") == "finished" and are_counts and _STATUSES == set(counts or ())
