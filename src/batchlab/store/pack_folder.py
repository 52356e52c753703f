"""The packs of a study on disk: finished ones (parts), unfinished ones (checkpoints), and last states."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from batchlab.core.measurement import Measurements
from batchlab.files import is_temporary, is_there, make_folder, names_in, read_bounded, write_file
from batchlab.locked_folders import refuse_links
from batchlab.store import parquet
from batchlab.store.checkpoint import MOST_BYTES as MOST_CHECKPOINT_BYTES
from batchlab.store.checkpoint import OLDER_SUFFIX, SUFFIX, Checkpoint, trials_of_checkpoint, write_checkpoint
from batchlab.store.pack_name import PATTERN, names_pack
from batchlab.store.seal import damaged
from batchlab.tidying import remove_file, remove_files

_PACK = rf"{PATTERN}\.(?:parquet|safetensors|npz)"

Kind = Literal["parts", "checkpoints", "states"]


class PackFolder:
    """Reads and writes what packs leave in a folder: see `store.study_folder` for the names.

    `is_sealed` is false in a lab from before there were seals, until the next writer has brought it up to date.
    """

    def __init__(self, folder: Path, *, is_sealed: bool = True) -> None:
        self.folder, self.is_sealed = folder, is_sealed

    def packs(self, kind: Kind) -> list[Path]:
        """Return the files of packs of one kind; LabError where their folder is a link."""
        folder = self.folder / kind
        refuse_links(self.folder, folder)
        suffixes = (".parquet",) if kind == "parts" else (SUFFIX, OLDER_SUFFIX)
        return [folder / name for name in names_in(folder) if re.fullmatch(_PACK, name) and name.endswith(suffixes)]

    def save_part(self, name: str, measurements: Measurements, record: dict[str, Any], study: str) -> None:
        """Keep a finished pack of the study with this fingerprint; its checkpoint is no longer needed."""
        parquet.write_measurements(self.part_path(name), measurements, {"study": study, **record})
        self._remove_checkpoint(name, SUFFIX, OLDER_SUFFIX)

    def parts(self, study: str) -> dict[str, tuple[Measurements, dict[str, Any]]]:
        """Return the finished packs by name: their measurements and records. Each must be of the study named."""
        return {path.stem: self.part(path, study) for path in self.packs("parts")}

    def part(self, path: Path, study: str | None) -> tuple[Measurements, dict[str, Any]]:
        """Return one finished pack; of whatever study where `study` is None."""
        measurements, record = parquet.read_whole(path, is_sealed=self.is_sealed)
        if not isinstance(record, dict) or "outcomes" not in record:
            raise damaged(path, "it tells no outcomes")
        found = record.pop("study", None if self.is_sealed else study)
        if study is not None and found != study:
            raise damaged(path, "it is of another study")
        return measurements, record

    def part_path(self, name: str) -> Path:
        """Return where a finished pack lies."""
        return self.folder / "parts" / f"{name}.parquet"

    def checkpoint_path(self, name: str) -> Path:
        """Return where the checkpoint of an unfinished pack lies."""
        return _newest(self.folder / "checkpoints", name)

    def save_checkpoint(self, name: str, checkpoint: Checkpoint, study: str) -> None:
        """Keep how far an unfinished pack of the study with this fingerprint is."""
        write_checkpoint(self.folder / "checkpoints" / f"{name}{SUFFIX}", checkpoint, study)
        self._remove_checkpoint(name, OLDER_SUFFIX)

    def _remove_checkpoint(self, name: str, *suffixes: str) -> None:
        for suffix in suffixes:
            remove_file(self.folder / "checkpoints" / f"{name}{suffix}")

    def state_path(self, name: str) -> Path:
        """Return where the last state of a pack is kept."""
        return _newest(self.folder / "states", name)

    def save_state(self, name: str, state: Checkpoint, study: str) -> None:
        """Keep the last state of a pack of the study with this fingerprint."""
        write_checkpoint(self.folder / "states" / f"{name}{SUFFIX}", state, study)
        remove_file(self.folder / "states" / f"{name}{OLDER_SUFFIX}")

    def states(self) -> list[tuple[int, ...]]:
        """Return the trials of each pack whose last state is kept."""
        states = {path: trials_of_checkpoint(path) for path in self.packs("states")}
        for path, trial_ids in states.items():
            if not names_pack(path.stem, trial_ids):
                raise damaged(path, "it is of other trials than its name says")
        return list(states.values())

    def resume_state(self, name: str) -> None:
        """Let a pack go on from its last state, unless it has gone on already."""
        if not is_there(self.checkpoint_path(name)):
            state = self.state_path(name)
            write_file(self.folder / "checkpoints" / state.name, read_bounded(state, MOST_CHECKPOINT_BYTES))

    def loop_path(self, name: str) -> Path:
        """Return the folder of a trial, or replicate, that a loop of the user's own trains; no link leads there."""
        path = self.folder / "loops" / name
        refuse_links(self.folder, path)
        return path

    def make_room(self) -> None:
        """Make the folders that packs in training need."""
        for name in ("parts", "checkpoints"):
            make_folder(self.folder / name)

    def remove_packs(self, *kinds: Kind) -> None:
        """Remove all that packs have left of some kinds, also what a kill left of a file."""
        for kind in kinds:
            remove_files(self.folder / kind, _is_of_packs)


def _newest(folder: Path, name: str) -> Path:
    """Return where a checkpoint of this name lies, or will: one of the older kind only while there is no other."""
    newer, older = folder / f"{name}{SUFFIX}", folder / f"{name}{OLDER_SUFFIX}"
    return older if is_there(older) and not is_there(newer) else newer


def _is_of_packs(name: str) -> bool:
    """Return whether a file is a pack's, or what a kill left of one."""
    return re.fullmatch(_PACK, name) is not None or is_temporary(name, _PACK)
