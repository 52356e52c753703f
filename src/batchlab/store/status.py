"""The state of a lab, from its records alone: no measurement is read."""

from __future__ import annotations

from dataclasses import dataclass

from batchlab.store.files import read_json
from batchlab.store.lab import Lab


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


def sweep_statuses(lab: Lab) -> list[SweepStatus]:
    """Return the status of every sweep, by name."""
    return [_status(lab, name) for name in lab.sweep_names()]


def _status(lab: Lab, name: str) -> SweepStatus:
    sweep = lab.sweep(name)
    folders = [lab.study_folder(name, batch_size) for batch_size in sweep.sweep.batch_sizes]
    # The records are read as plain JSON: checking half a million points would take seconds.
    records = [read_json(folder.folder / "study.json") for folder in folders if folder.has_record]
    finished = [record for record in records if record["state"] == "finished"]
    counts = [record["counts"] for record in finished]
    return SweepStatus(
        sweep=name,
        workload=sweep.workload.name,
        studies=len(folders),
        finished=len(finished),
        complete=sum(count["COMPLETE"] for count in counts),
        infeasible=sum(count["INFEASIBLE"] for count in counts),
        incomplete=sum(count["INCOMPLETE"] for count in counts),
        measurements=sum(record["num_measurements"] for record in finished),
    )
