"""One study on disk, from its points to its last measurement.

::

    study.json            what was asked (the study), the points, the pack size; at the end the outcome
    parts/R-P.parquet     while it runs: a finished pack, its curves and its trials' outcomes in one file
    checkpoints/R-P.npz   while it runs: an unfinished pack, as it last was
    trials.json           at the end: a record for each trial
    measurements.parquet  at the end: every stored step of every trial

A study is finished once study.json says so; that is written last. Until then the parts hold the truth.
"""

from __future__ import annotations

import contextlib
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import TypeAdapter, ValidationError, model_validator

from batchlab.core.measurement import Measurements
from batchlab.core.result import StudyResult
from batchlab.core.space import SearchSpace
from batchlab.core.study import Study
from batchlab.core.trial import Status, Trial
from batchlab.core.value import Value
from batchlab.errors import LabError, SpecError
from batchlab.files import TEMPORARY, make_folder, read_json, whole_file, write_file, write_json
from batchlab.store import parquet

_TRIALS = TypeAdapter(list[Trial])


class ImportedStudy(Value):
    """What an archive tells of a study that was not run here."""

    workload: str
    batch_size: int
    search_space: SearchSpace
    train_steps: int
    """The least number of steps of a complete trial; 0 means that there was a time budget instead."""

    early_stopping: bool = False


class StudyRecord(Value):
    """The contents of study.json: a study that is run here, or an imported one."""

    study: Study | None = None
    imported: ImportedStudy | None = None
    points: tuple[dict[str, float], ...] = ()
    """The points of the search space, drawn up front; trial i trains point i."""

    pack_size: int | None = None
    """Trials trained together, once it is chosen."""

    state: Literal["running", "finished"] = "running"
    best_steps: int | None = None
    """Steps to the goal; none where it was not met."""

    end_step: int | None = None
    """The step to which the complete trials trained."""

    trained_steps: int | None = None
    """Updates computed for all trials, replaced and cut parts included."""

    wall_seconds: float | None = None
    """Processor time of all packs, on one core each."""

    counts: dict[Status, int] | None = None
    """Trials by how they ended."""

    num_measurements: int | None = None
    note: str | None = None
    """What a reader should know, such as a budget of trials that could not be met."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.study is None) == (self.imported is None):
            raise ValueError("a record holds a study or an imported one, and only one of them")
        return self

    @property
    def workload(self) -> str:
        """The name of the workload."""
        facts = self.facts
        return facts.workload.name if isinstance(facts, Study) else facts.workload

    @property
    def facts(self) -> Study | ImportedStudy:
        """The study, wherever it comes from: its batch size and search space."""
        facts = self.study or self.imported
        assert facts is not None
        return facts

    @property
    def full_steps(self) -> int:
        """The steps that the full protocol would train at the least; 0 where that is not known."""
        return self.study.trials * self.study.max_steps if self.study else 0

    def result(self, trials: Sequence[Trial], measurements: Measurements) -> StudyResult:
        """Return a finished study as the analyses read it."""
        assert self.end_step is not None
        return StudyResult(
            workload=self.workload,
            batch_size=self.facts.batch_size,
            trials=tuple(trials),
            measurements=measurements,
            search_space=self.facts.search_space,
            end_step=self.end_step,
        )


class StudyFolder:
    """Reads and writes the folder of one study."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def has_record(self) -> bool:
        """Whether study.json is there."""
        return (self.folder / "study.json").exists()

    def record(self) -> StudyRecord:
        """Return what study.json says."""
        path = self.folder / "study.json"
        try:
            return StudyRecord.parse(read_json(path), str(path))
        except SpecError as error:
            raise LabError(str(error)) from None

    def save_record(self, record: StudyRecord, *, sync: bool = True) -> None:
        """Write study.json, making the folders of a new study."""
        for folder in (self.folder, self.folder / "parts", self.folder / "checkpoints"):
            if record.state == "running":
                make_folder(folder)
        write_json(self.folder / "study.json", record.plain(), sync)

    def save_part(self, name: str, measurements: Measurements, outcome: dict[str, Any]) -> None:
        """Keep a finished pack; its checkpoint is no longer needed."""
        parquet.write_measurements(self.folder / "parts" / f"{name}.parquet", measurements, outcome)
        self.checkpoint_path(name).unlink(missing_ok=True)

    def parts(self) -> dict[str, tuple[Measurements, dict[str, Any]]]:
        """Return the finished packs by name: their measurements and outcomes."""
        paths = sorted((self.folder / "parts").glob("*.parquet"))
        return {path.stem: (parquet.read_measurements(path), parquet.read_record(path)) for path in paths}

    def checkpoint_path(self, name: str) -> Path:
        """Return where the checkpoint of an unfinished pack lies."""
        return self.folder / "checkpoints" / f"{name}.npz"

    def finish(
        self, record: StudyRecord, trials: list[Trial], measurements: Measurements, *, sync: bool = True
    ) -> None:
        """Store the study's outcome; the parts go once it is safe."""
        parquet.write_measurements(self.folder / "measurements.parquet", measurements, sync=sync)
        write_trials(self.folder / "trials.json", trials, sync=sync)
        self.save_record(record, sync=sync)
        self.tidy()

    def tidy(self) -> None:
        """Remove what only a running study needs, also after a kill between two steps of `finish`."""
        for name in ("parts", "checkpoints"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for leftover in self.folder.glob(f"*{TEMPORARY}"):
            with contextlib.suppress(FileNotFoundError):
                leftover.unlink()

    def trials(self) -> list[Trial]:
        """Return the trial records of a finished study."""
        path = self.folder / "trials.json"
        try:
            return _TRIALS.validate_json(path.read_bytes())
        except OSError as error:
            raise LabError(f"Could not read {path}: {error.strerror}.") from error
        except ValidationError as error:
            detail = error.errors()[0]
            place = ".".join(str(part) for part in detail["loc"]) or "its start"
            raise LabError(
                f"{path} is corrupt: {detail['msg']} at {place}. Remove its study's folder and run again."
            ) from None

    def check_measurements(self, num_measurements: int) -> None:
        """Raise LabError where the stored table is not whole or has another number of rows; none is read."""
        path = self.folder / "measurements.parquet"
        num_rows = parquet.count_rows(path)
        if num_rows != num_measurements:
            raise LabError(
                f"{path} has {num_rows:,} rows, not the {num_measurements:,} of its study. "
                "Remove its study's folder and run again."
            )

    def result(self, metrics: list[str] | None = None) -> StudyResult:
        """Return a finished study as the analyses read it, with all metrics or only the named ones."""
        measurements = parquet.read_measurements(self.folder / "measurements.parquet", metrics)
        return self.record().result(self.trials(), measurements)


def write_trials(path: Path, trials: list[Trial], *, sync: bool = True) -> None:
    """Write the records of trials as JSON."""
    write_file(path, _TRIALS.dump_json(trials, exclude_none=True, indent=1), sync)


def write_checkpoint(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays to an .npz file, whole."""
    with whole_file(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_checkpoint(path: Path) -> dict[str, np.ndarray] | None:
    """Return the arrays of a checkpoint, or None where there is none."""
    if not path.exists():
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise LabError(f"{path} is corrupt: {error}. Remove it and run again.") from error
