"""The state of a lab, from its records; of the measurements only the number is read, to see that they are there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from batchlab.core.trial import Status
from batchlab.errors import LabError
from batchlab.files import read_json
from batchlab.store.lab import Lab
from batchlab.store.study_folder import StudyFolder

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
    problems: tuple[str, ...] = ()
    """What cannot be read of it, a sentence each."""


def sweep_statuses(lab: Lab) -> list[SweepStatus]:
    """Return the status of every sweep, by name."""
    return [_status(lab, name) for name in lab.sweep_names()]


def _status(lab: Lab, name: str) -> SweepStatus:
    sweep = lab.sweep(name)
    folders = [lab.study_folder(name, batch_size).readable for batch_size in sweep.batch_sizes]
    finished, problems = [], []
    for folder in folders:
        try:
            if record := _finished_record(folder):
                finished.append(record)
                folder.check_measurements(record["num_measurements"])
        except LabError as error:
            problems.append(str(error))
    counts = [record["counts"] for record in finished]
    return SweepStatus(
        sweep=name,
        workload=sweep.workload,
        studies=len(folders),
        finished=len(finished),
        complete=sum(count["COMPLETE"] for count in counts),
        infeasible=sum(count["INFEASIBLE"] for count in counts),
        incomplete=sum(count["INCOMPLETE"] for count in counts),
        measurements=sum(record["num_measurements"] for record in finished),
        problems=tuple(problems),
    )


def _finished_record(folder: StudyFolder) -> dict[str, Any] | None:
    """Return study.json of a finished study as plain JSON: checking half a million points would take seconds."""
    path = folder.folder / "study.json"
    record = read_json(path) if folder.has_record else {"state": "running"}
    if not isinstance(record, dict) or not (record.get("state") == "running" or _tells_outcome(record)):
        raise LabError(f"{path} is corrupt: it tells no outcome. Remove its study's folder and run again.")
    return None if record["state"] == "running" else record


def _tells_outcome(record: dict[str, Any]) -> bool:
    """Return whether a record holds the numbers that a finished study has."""
    counts = record.get("counts")
    numbers = [record.get("num_measurements"), *(counts.values() if isinstance(counts, dict) else [None])]
    are_counts = all(isinstance(number, int) for number in numbers)
    return record.get("state") == "finished" and are_counts and _STATUSES == set(counts or ())
