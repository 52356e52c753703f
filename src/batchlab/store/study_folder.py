"""One study on disk, from its points to its last measurement.

::

    study.json                what was asked (the study), the points, the pack size; at the end the outcome, and the
                              seals of the files below; it is sealed itself (`store.seal`)
    parts/PACK.parquet        while it runs: a finished pack, its curves and its trials' outcomes in one file
    checkpoints/PACK.safetensors   while it runs: an unfinished pack, as it last was
    trials.json               at the end: a record for each trial
    measurements.parquet      at the end: every stored step of every trial
    aside.parquet             trials that were trained and do not count; a study that grows may want them
    states/PACK.safetensors   with engine.keep_states: every pack as its training ended
    loops/PACK/               of a loop of the user's own: what its program has printed (output.txt); while it trains
                              its reports (reports.jsonl) and what it keeps to go on from (checkpoint/)
    confirming/               while the best points are trained again: parts and checkpoints of replicates
    confirmed.json            at the end of that: what became of the replicates
    confirmed.parquet         and their measurements

A pack is named by its trials (`store.pack_name`). A search is finished, and its points are confirmed, once study.json
says so: it is written last. Until then the parts hold the truth. Whoever reads a file checks it against its seal.
What study.json and trials.json say is kept in measurements.parquet as well, and confirmed.json in confirmed.parquet,
all but times and machines, so that `batchlab verify --repair` can write them again. So the same sweep leaves the same
bytes in both tables, whenever and wherever it is run to the same bits.

A finished study that grows is filled anew beside its sweep, in `growing/BATCH_SIZE`; until that is complete the old
one answers. Then two renames exchange them: the old one goes to `replaced/BATCH_SIZE` and is removed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Container
from pathlib import Path
from typing import Any, TypeVar

from batchlab.core.confirmation import Confirmation
from batchlab.core.measurement import Measurements
from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial
from batchlab.errors import VERIFY, DamagedError, SpecError
from batchlab.files import (
    is_folder,
    is_temporary,
    is_there,
    make_folder,
    names_in,
    parse_json,
    read_bounded,
    sync_path,
    write_file,
)
from batchlab.locked_folders import refuse_links
from batchlab.store import parquet
from batchlab.store.consistency import check_files
from batchlab.store.pack_folder import PackFolder
from batchlab.store.seal import FileSeal, MismatchError, changed, damaged, read_file, read_sealed, seal_of, sealed_json
from batchlab.store.study_record import StudyRecord
from batchlab.store.trial_records import parse_trials, trials_json
from batchlab.store.undisturbed import undisturbed
from batchlab.tidying import move, move_rest, remove_file, remove_if_empty

CONFIRMED = ("confirmed.json", "confirmed.parquet")
OUTCOME = ("trials.json", "measurements.parquet", "aside.parquet", *CONFIRMED)
"""What a finished study has beside its study.json, the last three only where there is something to store."""

MOST_BYTES = 1 << 30
"""Of trials.json or confirmed.json."""

_Seen = TypeVar("_Seen")
_OWN_FILES = "|".join(re.escape(name) for name in ("study.json", *OUTCOME))


class StudyFolder(PackFolder):
    """Reads and writes the folder of one study: its record, its packs, its outcome, its confirmation, its growth."""

    @property
    def batch_size(self) -> int:
        """That of the study which belongs here, by the name of the folder."""
        return int(self.folder.name)

    @property
    def has_record(self) -> bool:
        """Whether study.json is there."""
        return is_there(self.folder / "study.json")

    def has_begun(self) -> bool:
        """Return whether study.json is there; DamagedError where it is gone and files that need it are left."""
        for name in OUTCOME if not self.has_record else ():
            if is_there(self.folder / name):
                raise DamagedError(f"{self.folder / 'study.json'} is missing beside {name}. {VERIFY}")
        return self.has_record

    def record(self) -> StudyRecord:
        """Return what study.json says."""
        path = self.folder / "study.json"
        try:
            record = StudyRecord.parse(read_sealed(path, is_sealed=self.is_sealed), str(path))
        except SpecError as error:
            raise DamagedError(f"{error} {VERIFY}") from None
        if self.is_sealed and record.state == "finished" and not set(OUTCOME[:2]) <= set(record.files or ()):
            raise damaged(path, "it lists no files")
        if not set(record.files or ()) <= set(OUTCOME):
            raise damaged(path, "it lists files that no study has")
        return record

    def check_listed(self, state: str, files: Container[str]) -> None:
        """Raise DamagedError where a file lies here that the study has and study.json does not list.

        Then study.json is an older one: what is there without being told of is only ever there for a moment, while the
        parts or replicates that it is made of are still beside it.
        """
        if not self.is_sealed:
            return
        if state == "running" and (self.folder / "parts").exists():
            return
        is_confirming = (self.folder / "confirming").exists()
        for name in OUTCOME:
            is_expected = name in files or (name in CONFIRMED and is_confirming)
            if not is_expected and (self.folder / name).exists():
                raise damaged(self.folder / "study.json", f"it does not tell of {name}, which lies beside it")

    def save_record(self, record: StudyRecord, *, sync: bool = True) -> None:
        """Write study.json, making the folders of a new study."""
        if record.state == "running":
            self.make_room()
        write_file(self.folder / "study.json", sealed_json(record.plain()), sync)

    def finish(
        self,
        record: StudyRecord,
        trials: list[Trial],
        measurements: Measurements,
        aside: tuple[Measurements, dict[str, Any]] | None = None,
        *,
        sync: bool = True,
    ) -> StudyRecord:
        """Store the study's outcome, and `aside` the trials that are not part of it; the parts go once it is safe.

        Returns the record as it is stored, with the seals of all files.
        """
        text, seals = trials_json(trials), self._confirmed_seals(record)
        notes = {
            "study": record.fingerprint,
            "record": record.without_times().plain(),
            "trials": trials_json(trials, with_times=False).decode(),
        }
        if aside is not None:
            aside_notes = {"study": record.fingerprint, **aside[1]}
            path = self.folder / "aside.parquet"
            seals[path.name] = parquet.write_measurements(path, aside[0], aside_notes, sync=sync)
        path = self.folder / "measurements.parquet"
        seals[path.name] = parquet.write_measurements(path, measurements, notes, sync=sync)
        write_file(self.folder / "trials.json", text, sync)
        record = record.model_copy(update={"files": {**seals, "trials.json": seal_of(text)}})
        self.save_record(record, sync=sync)
        self.tidy()
        return record

    def _confirmed_seals(self, record: StudyRecord) -> dict[str, FileSeal]:
        """Return the seals of a confirmation that stays while its search is run again."""
        files = record.files or {}
        return {name: files[name] for name in CONFIRMED if name in files and is_there(self.folder / name)}

    def aside(self) -> tuple[Measurements, dict[str, Any]] | None:
        """Return the trials that were trained and are not part of the result, where there are any."""
        path, record = self.folder / "aside.parquet", self.record()
        if self.is_sealed and "aside.parquet" not in (record.files or {}):
            return None
        if not self.is_sealed and not is_there(path):
            return None
        parquet.read_measurements(path, seal=self._seal("aside.parquet", record))
        return self.part(path, record.fingerprint)

    def trials(self, record: StudyRecord | None = None) -> list[Trial]:
        """Return the trial records of a finished study; `record` is study.json's, read where None."""
        path = self.folder / "trials.json"
        return parse_trials(self._read(path.name, record or self.record()), path)

    def result(self, metrics: list[str] | None = None, record: StudyRecord | None = None) -> StudyResult:
        """Return a finished study as the analyses read it, with all metrics or only the named ones.

        `record` is what study.json says, read where None.
        """
        path, record = self.folder / "measurements.parquet", record or self.record()
        trials, confirmation = self.trials(record), self.confirmation(record)
        measurements = parquet.read_measurements(path, metrics, self._seal(path.name, record))
        check_files(self.folder, record, trials, measurements, confirmation)
        return record.result(trials, measurements, confirmation)

    def check_file(self, name: str, record: StudyRecord) -> None:
        """Raise DamagedError where a file of a finished study is not as it was written, or cannot be parsed."""
        path, seal = self.folder / name, self._seal(name, record)
        if name == "trials.json":
            self.trials(record)
        elif name == "confirmed.json":
            self.confirmation(record)
        elif name == "confirmed.parquet":
            parquet.read_replicates(path, seal)
        else:
            parquet.read_measurements(path, seal=seal)

    def check_bytes(self, name: str, record: StudyRecord) -> None:
        """Raise DamagedError where a file is not as its seal says; what is in one that is so is not looked at."""
        seal = self._seal(name, record)
        if seal is not None:
            with contextlib.suppress(MismatchError):
                read_file(self.folder / name, seal)
                return
        self.check_file(name, record)

    def check_measurements(self, num_measurements: int, seal: FileSeal | None) -> None:
        """Raise DamagedError where the stored table has another size, or without a seal another number of rows."""
        path = self.folder / "measurements.parquet"
        if not is_there(path):
            raise DamagedError(f"{path} is missing. {VERIFY}")
        if seal is not None:
            size = path.lstat().st_size
            if size != seal.size:
                raise damaged(path, f"it has {size:,} bytes, not the {seal.size:,} that were written")
        elif (num_rows := parquet.count_rows(path)) != num_measurements:
            raise damaged(path, f"it has {num_rows:,} rows, not the {num_measurements:,} of its study")

    def _seal(self, name: str, record: StudyRecord) -> FileSeal | None:
        """Return the seal of a file; None in a lab that has none."""
        if not self.is_sealed:
            return (record.files or {}).get(name)
        if name not in (record.files or {}):
            raise damaged(self.folder / "study.json", f"it does not list {name}")
        return (record.files or {})[name]

    def _read(self, name: str, record: StudyRecord) -> bytes:
        """Return the bytes of a file that is as its seal says."""
        path, seal = self.folder / name, self._seal(name, record)
        if not is_there(path):
            raise DamagedError(f"{path} is missing. {VERIFY}")
        if seal is None:
            return read_bounded(path, MOST_BYTES)
        try:
            return read_file(path, seal)
        except MismatchError as mismatch:
            parse_json(mismatch.content, path)
            raise changed(path) from None

    def tidy(self) -> None:
        """Remove what only a running study needs, also after a kill between two steps of `finish`."""
        self.remove_packs("parts", "checkpoints")
        for name in names_in(self.folder):
            if is_temporary(name, _OWN_FILES):
                remove_file(self.folder / name)

    def forget_outcome(self) -> None:
        """Remove what a search and its confirmation left, once the parts hold it again."""
        for name in OUTCOME:
            remove_file(self.folder / name)

    def clear(self) -> None:
        """Remove all that batchlab wrote here, the record first; what the user put here stays, and then the folder."""
        remove_file(self.folder / "study.json")
        self.forget_outcome()
        self.tidy()
        self.remove_packs("states")
        if is_folder(self.folder / "confirming"):
            self.confirming.clear()
        remove_if_empty(self.folder)

    @property
    def confirming(self) -> StudyFolder:
        """The folder in which replicates are kept while they train, by the same names as trials."""
        return self._near("confirming")

    def save_confirmation(self, confirmation: Confirmation, measurements: Measurements) -> None:
        """Store what became of the replicates; `measurements` have their numbers, as `replicate_id` gives them."""
        record = self.record()
        if any(name in CONFIRMED for name in record.files or {}):
            # A smaller confirmation is taken back before its files are replaced: a reader finds both or none.
            record = record.without_files(CONFIRMED)
            self.save_record(record)
        text, copy = _plain_json(confirmation), _plain_json(confirmation.without_times())
        notes = {"study": record.fingerprint, "confirmation": copy.decode()}
        seal = parquet.write_replicates(self.folder / "confirmed.parquet", measurements, notes)
        write_file(self.folder / "confirmed.json", text)
        self.save_record(record.with_files({"confirmed.parquet": seal, "confirmed.json": seal_of(text)}))

    def finish_confirmation(self, confirmation: Confirmation, measurements: Measurements) -> None:
        """Store what became of the replicates, and remove what was needed while they trained."""
        self.save_confirmation(confirmation, measurements)
        self.end_confirming()

    def end_confirming(self) -> None:
        """Remove what only a study that is being confirmed needs."""
        if is_folder(self.folder / "confirming"):
            self.confirming.clear()

    def confirmation(self, record: StudyRecord | None = None) -> Confirmation | None:
        """Return what became of the replicates, once they have trained; `record` is study.json's, read where None."""
        path, record = self.folder / "confirmed.json", record or self.record()
        is_told = "confirmed.json" in (record.files or {}) if self.is_sealed else is_there(path)
        if not is_told:
            return None
        data = parse_json(self._read(path.name, record), path)
        if isinstance(data, dict):
            data.pop("study", None)  # what confirmations were bound by before there were seals
        try:
            return Confirmation.parse(data, str(path))
        except SpecError as error:
            raise DamagedError(f"{error} {VERIFY}") from None

    def replicates(self) -> Measurements:
        """Return the measurements of the replicates by their numbers."""
        seal = self._seal("confirmed.parquet", self.record())
        return parquet.read_replicates(self.folder / "confirmed.parquet", seal)

    @property
    def growing(self) -> StudyFolder:
        """Where this study is filled anew, when it grows."""
        return self._near("growing", self.folder.name, of=self.folder.parent)

    @property
    def replaced(self) -> StudyFolder:
        """Where this study goes for a moment, when a grown one takes its place."""
        return self._near("replaced", self.folder.name, of=self.folder.parent)

    def _near(self, *names: str, of: Path | None = None) -> StudyFolder:
        """Return a folder of the same form in this one, or in another; LabError where a link leads there."""
        root = of or self.folder
        refuse_links(root, root.joinpath(*names))
        return StudyFolder(root.joinpath(*names), is_sealed=self.is_sealed)

    def exchange(self) -> None:
        """Let the grown study take the place of this one; `settle` ends what a kill leaves of it."""
        make_folder(self.replaced.folder.parent)
        move(self.folder, self.replaced.folder)
        self.settle()

    def settle(self) -> None:
        """End an exchange that was begun: this study is the grown one, and the old one is gone.

        A study that is no longer there leaves its place to the one that grew from it: that holds all that it knew.
        """
        can_replace = is_folder(self.growing.folder) and (is_folder(self.replaced.folder) or self.growing.has_record)
        if can_replace and not is_there(self.folder):
            move(self.growing.folder, self.folder)
            sync_path(self.folder.parent)
        if is_folder(self.folder) and is_folder(self.replaced.folder):
            self.replaced.clear()
            move_rest(self.replaced.folder, self.folder)
        for empty in (self.growing.folder.parent, self.replaced.folder.parent):
            remove_if_empty(empty)

    def undisturbed(self, look: Callable[[StudyFolder], _Seen]) -> _Seen:
        """Return what `look` sees of this study, all of it at one moment.

        It is given this folder, or while two renames exchange the study for a grown one, that of the old one.
        """
        return undisturbed(lambda: look(self.readable), lambda: self.standing)

    @property
    def standing(self) -> tuple[Path, tuple[int, ...]]:
        """Where the study lies now, which a rename changes, and its version, which a rename leaves as it is."""
        return (now := self.readable).folder, now.version

    @property
    def readable(self) -> StudyFolder:
        """This study, or while two renames exchange it for a grown one, the old one."""
        return self.replaced if not is_there(self.folder) and is_folder(self.replaced.folder) else self

    @property
    def version(self) -> tuple[int, ...]:
        """Numbers that change whenever a writer has changed the study: its folder's, and those of its study.json."""
        try:
            facts = (self.folder / "study.json").stat()
            return self.folder.stat().st_ino, facts.st_ino, facts.st_mtime_ns
        except OSError:
            return ()


def _plain_json(confirmation: Confirmation) -> bytes:
    return confirmation.model_dump_json(exclude_none=True, indent=1).encode()
