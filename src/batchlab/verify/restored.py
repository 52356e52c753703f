"""What the tables of a finished study carry of its other files, so that these can be written again."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from batchlab.core.confirmation import Confirmation
from batchlab.core.trial import Trial
from batchlab.errors import BatchlabError
from batchlab.files import is_there, parse_json, read_bounded, write_file
from batchlab.store import parquet
from batchlab.store.belonging import check_belongs
from batchlab.store.consistency import check_files
from batchlab.store.seal import FileSeal, seal_of
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord
from batchlab.store.trial_records import parse_trials, trials_json


@dataclass(frozen=True)
class Restored:
    """What the tables of a finished study prove of it, whatever its other files say."""

    record: StudyRecord
    """With the seals of all files."""

    texts: dict[str, bytes]
    """The files that the tables carry, by name."""

    @classmethod
    def of(cls, folder: StudyFolder, sweep: StoredSweep | None) -> Restored | None:
        """Return what can be restored; None where the tables do not prove it, or prove another study."""
        table = folder.folder / "measurements.parquet"
        try:
            rows, notes = parquet.read_whole(table)
            record = StudyRecord.parse(notes["record"], str(table))
            trials = parse_trials(notes["trials"].encode(), table)
            if sweep is not None:
                check_belongs(folder, record, sweep, folder.batch_size)
            check_files(folder.folder, record, trials, rows, None)
        except (BatchlabError, KeyError, TypeError, AttributeError):
            return None
        seals = {table.name: _seal(table), **_proved(folder, record, "aside.parquet")}
        texts = {"trials.json": _trials_text(folder, trials)}
        if confirmed := _proved(folder, record, "confirmed.parquet"):
            seals |= confirmed
            texts["confirmed.json"] = _confirmation_text(folder)
        seals |= {name: seal_of(text) for name, text in texts.items()}
        return cls(record.with_files(seals), texts)

    def holds(self, path: Path) -> bool:
        """Return whether a file is as it would be restored."""
        seal = (self.record.files or {}).get(path.name)
        return seal is not None and is_there(path) and _seal(path) == seal


def _seal(path: Path) -> FileSeal:
    return seal_of(read_bounded(path, parquet.MOST_BYTES))


def _proved(folder: StudyFolder, record: StudyRecord, name: str) -> dict[str, FileSeal]:
    """Return the seal of a table that is sound and of this study, by its name; nothing where there is none."""
    path = folder.folder / name
    try:
        notes = parquet.read_whole(path)[1]
        if notes["study"] != record.fingerprint:
            return {}
        if name == "confirmed.parquet":
            _confirmation_text(folder)
    except (BatchlabError, KeyError, TypeError, AttributeError, ValueError):
        return {}
    return {name: seal_of(read_bounded(path, parquet.MOST_BYTES))}


def _trials_text(folder: StudyFolder, carried: list[Trial]) -> bytes:
    """Return trials.json as it is where it says what the table carries, with the times that only it knows."""
    path = folder.folder / "trials.json"
    with suppress(BatchlabError):
        content = read_bounded(path, parquet.MOST_BYTES)
        if [t.without_times() for t in parse_trials(content, path)] == [t.without_times() for t in carried]:
            return content
    return trials_json(carried)


def _confirmation_text(folder: StudyFolder) -> bytes:
    """Return confirmed.json as it is where it says what the table carries, with the times that only it knows."""
    table, path = folder.folder / "confirmed.parquet", folder.folder / "confirmed.json"
    text: bytes = parquet.read_whole(table)[1]["confirmation"].encode()
    carried = Confirmation.parse(parse_json(text, table), str(table))
    with suppress(BatchlabError):
        content = read_bounded(path, parquet.MOST_BYTES)
        if Confirmation.parse(parse_json(content, path), str(path)).without_times() == carried.without_times():
            return content
    return text


def restore_text(folder: StudyFolder, name: Literal["trials.json", "confirmed.json"]) -> dict[str, FileSeal]:
    """Write a JSON file again from the sound table that carries it and return its seal; nothing where that has none."""
    try:
        if name == "confirmed.json":
            text = _confirmation_text(folder)
        else:
            table = folder.folder / "measurements.parquet"
            text = _trials_text(folder, parse_trials(parquet.read_whole(table)[1]["trials"].encode(), table))
    except (BatchlabError, KeyError, TypeError, AttributeError):
        return {}
    write_file(folder.folder / name, text)
    return {name: seal_of(text)}
