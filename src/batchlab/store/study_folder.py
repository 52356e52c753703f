"""One study on disk, from its points to its last measurement.

::

    study.json                what was asked (the study), the points, the pack size; at the end the outcome
    parts/PACK.parquet        while it runs: a finished pack, its curves and its trials' outcomes in one file
    checkpoints/PACK.npz      while it runs: an unfinished pack, as it last was
    trials.json               at the end: a record for each trial
    measurements.parquet      at the end: every stored step of every trial
    aside.parquet             trials that were trained and do not count; a study that grows may want them
    states/PACK.npz           with engine.keep_states: every pack as its training ended
    confirming/               while the best points are trained again: parts and checkpoints of replicates
    confirmed.json            at the end of that: what became of the replicates
    confirmed.parquet         and their measurements

A pack is named by its trials (`store.pack_name`). A search is finished once study.json says so, its points are
confirmed once confirmed.json is there; each is written last. Until then the parts hold the truth.

A finished study that grows is filled anew beside its sweep, in `growing/BATCH_SIZE`; until that is complete the old
one answers. Then two renames exchange them: the old one goes to `replaced/BATCH_SIZE` and is removed.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from batchlab.core.confirmation import Confirmation
from batchlab.core.measurement import Measurements
from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial
from batchlab.errors import LabError, SpecError
from batchlab.files import TEMPORARY, make_folder, read_json, sync_path, whole_path, write_file, write_json
from batchlab.store import parquet
from batchlab.store.checkpoint import trials_of_checkpoint
from batchlab.store.consistency import check_files
from batchlab.store.study_record import StudyRecord

_TRIALS = TypeAdapter(list[Trial])


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
        if record.state == "running":
            self.make_room()
        write_json(self.folder / "study.json", record.plain(), sync)

    def save_part(self, name: str, measurements: Measurements, record: dict[str, Any]) -> None:
        """Keep a finished pack; its checkpoint is no longer needed."""
        parquet.write_measurements(self.folder / "parts" / f"{name}.parquet", measurements, record)
        self.checkpoint_path(name).unlink(missing_ok=True)

    def parts(self) -> dict[str, tuple[Measurements, dict[str, Any]]]:
        """Return the finished packs by name: their measurements and records."""
        paths = sorted((self.folder / "parts").glob("*.parquet"))
        return {path.stem: (parquet.read_measurements(path), parquet.read_record(path)) for path in paths}

    def checkpoint_path(self, name: str) -> Path:
        """Return where the checkpoint of an unfinished pack lies."""
        return self.folder / "checkpoints" / f"{name}.npz"

    def state_path(self, name: str) -> Path:
        """Return where the last state of a pack is kept."""
        return self.folder / "states" / f"{name}.npz"

    def states(self) -> list[tuple[int, ...]]:
        """Return the trials of each pack whose last state is kept."""
        return [trials_of_checkpoint(path) for path in sorted((self.folder / "states").glob("*.npz"))]

    def resume_state(self, name: str) -> None:
        """Let a pack go on from its last state, unless it has gone on already."""
        if not self.checkpoint_path(name).exists():
            with whole_path(self.checkpoint_path(name)) as temporary:
                shutil.copyfile(self.state_path(name), temporary)

    def save_aside(self, measurements: Measurements, record: dict[str, Any]) -> None:
        """Keep trials that do not count."""
        parquet.write_measurements(self.folder / "aside.parquet", measurements, record)

    def aside(self) -> tuple[Measurements, dict[str, Any]] | None:
        """Return the trials that do not count, where there are any."""
        path = self.folder / "aside.parquet"
        return (parquet.read_measurements(path), parquet.read_record(path)) if path.exists() else None

    def finish(
        self, record: StudyRecord, trials: list[Trial], measurements: Measurements, *, sync: bool = True
    ) -> None:
        """Store the study's outcome; the parts go once it is safe."""
        path, belongs_to = self.folder / "measurements.parquet", {"study": record.fingerprint}
        parquet.write_measurements(path, measurements, belongs_to, sync=sync)
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

    def forget_outcome(self) -> None:
        """Remove what a search and its confirmation left, once the parts hold it again."""
        for name in ("trials.json", "measurements.parquet", "aside.parquet", "confirmed.json", "confirmed.parquet"):
            (self.folder / name).unlink(missing_ok=True)

    @property
    def confirming(self) -> StudyFolder:
        """The folder in which replicates are kept while they train, by the same names as trials."""
        return StudyFolder(self.folder / "confirming")

    def make_room(self) -> None:
        """Make the folders that packs in training need."""
        for name in ("parts", "checkpoints"):
            make_folder(self.folder / name)

    def finish_confirmation(self, confirmation: Confirmation, measurements: Measurements) -> None:
        """Store what became of the replicates; `measurements` have their numbers, as `replicate_id` gives them."""
        parquet.write_replicates(self.folder / "confirmed.parquet", measurements)
        write_json(self.folder / "confirmed.json", confirmation.plain())
        self.end_confirming()

    def end_confirming(self) -> None:
        """Remove what only a study that is being confirmed needs."""
        shutil.rmtree(self.folder / "confirming", ignore_errors=True)

    def confirmation(self) -> Confirmation | None:
        """Return what became of the replicates, once they have trained."""
        path = self.folder / "confirmed.json"
        if not path.exists():
            return None
        try:
            return Confirmation.parse(read_json(path), str(path))
        except SpecError as error:
            raise LabError(str(error)) from None

    def replicates(self) -> Measurements:
        """Return the measurements of the replicates by their numbers."""
        return parquet.read_replicates(self.folder / "confirmed.parquet")

    @property
    def growing(self) -> StudyFolder:
        """Where this study is filled anew, when it grows."""
        return StudyFolder(self.folder.parent / "growing" / self.folder.name)

    @property
    def replaced(self) -> StudyFolder:
        """Where this study goes for a moment, when a grown one takes its place."""
        return StudyFolder(self.folder.parent / "replaced" / self.folder.name)

    def exchange(self) -> None:
        """Let the grown study take the place of this one; `settle` ends what a kill leaves of it."""
        make_folder(self.replaced.folder.parent)
        self.folder.rename(self.replaced.folder)
        self.settle()

    def settle(self) -> None:
        """End an exchange that was begun: this study is the grown one, and the old one is gone."""
        if self.growing.folder.exists() and self.replaced.folder.exists() and not self.folder.exists():
            self.growing.folder.rename(self.folder)
            sync_path(self.folder.parent)
        if self.folder.exists():
            shutil.rmtree(self.replaced.folder, ignore_errors=True)
        for empty in (self.growing.folder.parent, self.replaced.folder.parent):
            with contextlib.suppress(OSError):  # not there, or another batch size needs it
                empty.rmdir()

    @property
    def readable(self) -> StudyFolder:
        """This study, or while two renames exchange it for a grown one, the old one."""
        return self.replaced if not self.folder.exists() and self.replaced.folder.exists() else self

    @property
    def identity(self) -> int | None:
        """A number that another folder at this place would not have; None where there is none."""
        try:
            return self.folder.stat().st_ino
        except OSError:
            return None

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
        path = self.folder / "measurements.parquet"
        record, trials, confirmation = self.record(), self.trials(), self.confirmation()
        measurements = parquet.read_measurements(path, metrics)
        check_files(self.folder, record, trials, measurements, confirmation)
        if parquet.study_of(path) not in (None, record.fingerprint):
            raise LabError(f"{path} is of another study. Remove its study's folder and run again.")
        return record.result(trials, measurements, confirmation)


def write_trials(path: Path, trials: list[Trial], *, sync: bool = True) -> None:
    """Write the records of trials as JSON."""
    write_file(path, _TRIALS.dump_json(trials, exclude_none=True, indent=1), sync)
