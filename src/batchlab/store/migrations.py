"""How labs of older formats become labs of this one: numbered steps, each applied once, by the next writer.

Readers never change a lab: what they need of an older one they make up while reading (`upgraded_sweep`). A step may be
cut short by a kill and is then applied again, so each leaves alone what it has done already; the lab's number is
written last.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from batchlab.core.growth import fixed_digest
from batchlab.core.sweep import Sweep
from batchlab.errors import LabError
from batchlab.files import read_json, write_json
from batchlab.store import parquet
from batchlab.store.checkpoint import read_checkpoint, trials_of_checkpoint, write_checkpoint
from batchlab.store.pack_name import pack_name
from batchlab.store.seal import is_sealed, read_sealed, seal_of, write_sealed
from batchlab.store.study_folder import OUTCOME, StudyFolder


def m002_points_are_a_sequence(folder: Path) -> None:
    """Format 2: a sampler has a version, and packs are named by their trials instead of by round and place."""
    for path in folder.glob("sweeps/*/sweep.json"):
        with suppress(LabError):  # what cannot be read is left to `batchlab verify`
            data = read_json(path)
            if data != (upgraded := upgraded_sweep(data)):
                write_json(path, upgraded)
    for path in folder.glob("sweeps/*/*/checkpoints/*.npz"):
        with suppress(LabError):
            path.rename(path.with_name(f"{pack_name(trials_of_checkpoint(path))}.npz"))


def m003_files_are_sealed(folder: Path) -> None:
    """Format 3: every file carries a seal, or has one in its study.json. What is not sound gets none."""
    for path in (*folder.glob("sweeps/*/sweep.json"), *folder.glob("sweeps/*/import.json")):
        with suppress(LabError):
            if not is_sealed(path):
                write_sealed(path, read_sealed(path, is_sealed=False))
            spec = Sweep.parse(read_sealed(path), str(path)) if path.name == "sweep.json" else None
            for record in (*path.parent.glob("*/study.json"), *path.parent.glob("*/*/study.json")):
                _seal_study(record.parent, None if spec is None else fixed_digest(spec))


def _seal_study(folder: Path, sweep: str | None) -> None:
    """Seal the files of a study; one whose files do not belong together is left as it is, and is reported then."""
    study = StudyFolder(folder, is_sealed=False)
    with suppress(LabError):
        if is_sealed(folder / "study.json"):
            return
        record, files = study.record(), {}
        _seal_packs(study, record.fingerprint)
        _seal_packs(study.confirming, record.fingerprint)
        if record.state == "finished":
            study.result()
            files = {path.name: seal_of(path.read_bytes()) for name in OUTCOME if (path := folder / name).is_file()}
        study.save_record(record.model_copy(update={"sweep": sweep, "files": files or None}))


def _seal_packs(study: StudyFolder, fingerprint: str) -> None:
    for path in (*study.folder.glob("parts/*.parquet"), *study.folder.glob("aside.parquet")):
        rows, record = parquet.read_whole(path, is_sealed=False)
        parquet.write_measurements(path, rows, {**record, "study": fingerprint})
    for path in (*study.folder.glob("checkpoints/*.npz"), *study.folder.glob("states/*.npz")):
        write_checkpoint(path, read_checkpoint(path) or {}, fingerprint)


MIGRATIONS: dict[int, Callable[[Path], None]] = {2: m002_points_are_a_sequence, 3: m003_files_are_sealed}
SEALED_SINCE = 3
"""The format since which a file without a seal is a damaged one."""

FORMAT = max(MIGRATIONS)
"""Raised when an older batchlab could no longer read what this one writes."""


def migrate(folder: Path, version: int) -> None:
    """Bring a lab of format `version` to this one; its lock is held."""
    for number in range(version + 1, FORMAT + 1):
        MIGRATIONS[number](folder)
        write_json(folder / "lab.json", {"format": number})


def upgraded_sweep(data: Any) -> Any:
    """Return a stored spec as this format has it: before a sampler had a version, it went by the first."""
    plan = data.get("sweep") if isinstance(data, dict) else None
    return {**data, "sweep": {"sampler_version": 1, **plan}} if isinstance(plan, dict) else data
