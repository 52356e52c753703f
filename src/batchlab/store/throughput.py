"""throughput/NAME.json: the step times of one workload on one machine, as they were measured.

One sealed file for each workload and machine; a new measurement takes the place of the old one. Nothing that was
trained depends on them.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator

from batchlab.core.limits import MOST_BATCH_SIZE, MOST_WORKERS
from batchlab.core.sweep import Engine
from batchlab.core.value import Items, Value, doubled
from batchlab.errors import LabError, SpecError
from batchlab.files import is_there, make_folder, names_in
from batchlab.locked_folders import refuse_links
from batchlab.store.seal import damaged, read_sealed, write_sealed
from batchlab.store.stored_sweep import StoredSweep

FOLDER = "throughput"
PRECISION = Engine().precision
"""What steps are computed in unless the spec says otherwise."""

MOST_NAME = 100
"""Letters of a workload that the name of a file begins with."""


Seconds = Annotated[float, Field(ge=1e-12, le=1e9)]
"""What is shorter or longer was never measured: it would be no step, or take thirty years."""

Bytes = Annotated[int, Field(ge=1, le=10**18)]


class MeasuredSteps(Value):
    """The step times at one batch size on some workers."""

    batch_size: Annotated[int, Field(ge=1, le=MOST_BATCH_SIZE)]
    workers: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 1
    seconds: Annotated[Items[Seconds], Field(min_length=1)]
    """Of a step, one for each repeat."""


class MeasuredSums(Value):
    """The times of sums over some workers of some bytes, with nothing beside them."""

    num_bytes: Bytes
    workers: Annotated[int, Field(ge=2, le=MOST_WORKERS)]
    seconds: Annotated[Items[Seconds], Field(min_length=1)]
    """Of a sum, one for each repeat."""


class MeasuredLink(Value):
    """What plain sockets saw of a link that was made for the measurement."""

    means: str
    """Who delays and who shapes, in a few words."""

    round_trip: Seconds

    throughput: Annotated[float, Field(gt=0, le=1e18)]
    """Bytes per second, one way."""

    without: MeasuredSums
    """The times of a short sum over workers that the link does not join, taken in turns with the others."""


class ThroughputRecord(Value):
    """The contents of one file."""

    workload: str
    """Its name."""

    spec: dict[str, Any]
    """The `[workload]` table of its spec, with all defaults."""

    engine: dict[str, Any]
    device: str
    """What PyTorch calls it, a GPU with its model."""

    link: str | None = None
    """What was made to join the workers, as `--link` has it; None where they meet in the machine, or are one."""

    seen: MeasuredLink | None = None

    machine: dict[str, Any]
    """Host, processor, cores, versions."""

    train_examples: Annotated[int, Field(ge=1)] | None = None
    """Of the training set; None where that is not known."""

    measured_at: str
    """The time of day, by the clock of the machine, in ISO format."""

    times: Annotated[Items[MeasuredSteps], Field(min_length=2)]
    sums: Items[MeasuredSums] = ()
    """None of one worker."""

    payloads: Items[Bytes] = ()
    """Bytes of each sum of a step on several workers."""

    @field_validator("times")
    @classmethod
    def _check_times(cls, times: tuple[MeasuredSteps, ...]) -> tuple[MeasuredSteps, ...]:
        if twice := doubled((each.batch_size, each.workers) for each in times):
            raise ValueError(f"batch size {twice[0][0]} on {twice[0][1]} workers is there twice")
        if len({math.ceil(each.batch_size / each.workers) for each in times}) == 1:
            raise ValueError("one batch size of each worker cannot tell the time of a step from that of an example")
        return times

    @field_validator("sums")
    @classmethod
    def _check_sums(cls, sums: tuple[MeasuredSums, ...]) -> tuple[MeasuredSums, ...]:
        if twice := doubled((each.num_bytes, each.workers) for each in sums):
            raise ValueError(f"{twice[0][0]} bytes on {twice[0][1]} workers are there twice")
        if len({each.num_bytes for each in sums}) == 1:
            raise ValueError("sums of one size cannot tell latency from bandwidth")
        return sums

    @property
    def file_name(self) -> str:
        """The name of its file: it follows from the workload, the machine, the device and the link."""
        facts = [self.workload, self.spec, self.machine.get("cpu"), self.machine.get("cores"), self.device, self.link]
        digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:12]
        return f"{re.sub('[^A-Za-z0-9_-]', '.', self.workload)[:MOST_NAME]}-{digest}.json"

    @property
    def machine_name(self) -> str:
        """The machine in a few words, and what of the engine's settings makes its steps other than they usually are."""
        cpu, cores = self.machine.get("cpu", "a processor that is not known"), self.machine.get("cores")
        precision, size = self.engine.get("precision", PRECISION), self.engine.get("microbatch_size")
        parts = [
            str(cpu) if self.device == "cpu" else f"{self.device} of {cpu}",
            f"{cores} cores" if cores else "",
            str(precision) if precision != PRECISION else "",
            f"microbatches of {size}" if size else "",
            f"workers joined by {self.link}" if self.link else "",
        ]
        return ", ".join(part for part in parts if part)

    def is_shared(self, workers: int) -> bool:
        """Return whether so many workers are more than the cores that they train on."""
        cores = self.machine.get("cores")
        return self.device == "cpu" and isinstance(cores, int) and workers > cores

    def is_of(self, sweep: StoredSweep) -> bool:
        """Return whether it is the throughput of what a sweep trained."""
        return self.workload == sweep.workload and sweep.spec is not None and self.spec == sweep.spec.workload.plain()


def make_place(lab: Path) -> None:
    """Make the folder of step times in a lab, whose lock is held; an error where nothing can be written there."""
    refuse_links(lab, lab / FOLDER)
    make_folder(lab / FOLDER)


def save_throughput(lab: Path, record: ThroughputRecord) -> Path:
    """Write a record into a lab, whose lock is held; return its place."""
    make_place(lab)
    path = lab / FOLDER / record.file_name
    refuse_links(lab, path)
    write_sealed(path, record.plain())
    return path


def read_throughput(path: Path) -> ThroughputRecord:
    """Return the record in a file; DamagedError where it is not as it was written, or lies under another's name."""
    try:
        record = ThroughputRecord.parse(read_sealed(path), str(path))
    except SpecError as error:
        raise damaged(path, str(error).removesuffix(".")) from None
    if record.file_name != path.name:
        raise damaged(path, f"its name should be {record.file_name}")
    return record


def throughput_paths(lab: Path) -> list[Path]:
    """Return the files of a lab that hold step times, sorted; LabError where a link would lead out of it."""
    folder = lab / FOLDER
    refuse_links(lab, folder)
    names = names_in(folder) if is_there(folder) else []
    return [folder / name for name in names if name.endswith(".json")]


def read_throughputs(lab: Path) -> tuple[list[ThroughputRecord], list[LabError]]:
    """Return what was measured, the newest first, and why some of it cannot be read."""
    found, problems = list[ThroughputRecord](), list[LabError]()
    try:
        paths = throughput_paths(lab)
    except LabError as error:
        return [], [error]
    for path in paths:
        try:
            refuse_links(lab, path)
            found.append(read_throughput(path))
        except LabError as error:
            problems.append(error)
    return sorted(found, key=lambda record: record.measured_at, reverse=True), problems
