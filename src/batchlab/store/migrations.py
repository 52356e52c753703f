"""How labs of older formats become labs of this one: numbered steps, each applied once, by the next writer.

Readers never change a lab: what they need of an older one they make up while reading (`upgraded_sweep`). A step may be
cut short by a kill and is then applied again, so each leaves alone what it has done already; the lab's number is
written last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from batchlab.core.growth import fixed_digest
from batchlab.core.sweep import Sweep
from batchlab.errors import LabError, LabLostError, SpecError, UnreadableError
from batchlab.files import is_folder, is_there, names_in, read_bounded, read_json, write_json
from batchlab.store import parquet
from batchlab.store.checkpoint import SUFFIX, read_checkpoint, trials_of_checkpoint, write_checkpoint
from batchlab.store.pack_name import pack_name
from batchlab.store.seal import is_sealed, read_sealed, seal_of, write_sealed
from batchlab.store.study_folder import OUTCOME, StudyFolder
from batchlab.store.sweep_folder import study_places
from batchlab.tidying import move, remove_file


@contextmanager
def _left_to_verify() -> Iterator[None]:
    """Leave what is damaged to `batchlab verify`; what the system refuses to read or write ends the step."""
    try:
        yield
    except (UnreadableError, LabLostError):
        raise
    except (LabError, SpecError):
        return


def m002_points_are_a_sequence(folder: Path) -> None:
    """Format 2: a sampler has a version, and packs are named by their trials instead of by round and place."""
    for sweep in _sweeps(folder):
        path = sweep / "sweep.json"
        with _left_to_verify():
            data = read_json(path)
            if data != (upgraded := upgraded_sweep(data)):
                write_json(path, upgraded)
        for study in study_places(sweep):
            for checkpoint in StudyFolder(study).packs("checkpoints"):
                with _left_to_verify():
                    name = pack_name(trials_of_checkpoint(checkpoint))
                    move(checkpoint, checkpoint.with_name(f"{name}{checkpoint.suffix}"))


def m003_files_are_sealed(folder: Path) -> None:
    """Format 3: every file carries a seal, or has one in its study.json. What is not sound gets none."""
    for path in (sweep / name for sweep in _sweeps(folder) for name in ("sweep.json", "import.json")):
        if not is_there(path):
            continue
        with _left_to_verify():
            if not is_sealed(path):
                write_sealed(path, read_sealed(path, is_sealed=False))
            spec = Sweep.parse(read_sealed(path), str(path)) if path.name == "sweep.json" else None
            places = (path.parent, path.parent / "growing", path.parent / "replaced")
            for study in (study for place in places for study in study_places(place)):
                if is_there(study / "study.json"):
                    _seal_study(study, None if spec is None else fixed_digest(spec))


def m004_rows_tell_examples(folder: Path) -> None:
    """Format 4: tables have a column `examples`, and a batch size may be scheduled. No file is written anew.

    Readers fill the column of older tables. But an older batchlab would take it for a metric, write it with gaps where
    a study grows, and go by step times batch size where that is wrong.
    """


def lacks_seals(folder: Path) -> bool:
    """Return whether a lab is of a format from before there were seals, whatever it says: specs, and not one sealed.

    No step leaves such a lab: each spec that can be read gets its seal.
    """
    specs = (sweep / name for sweep in _sweeps(folder) for name in ("sweep.json", "import.json"))
    found = [has_seal for path in specs if (has_seal := _has_seal(path)) is not None]
    records = (study / "study.json" for sweep in _sweeps(folder) for study in study_places(sweep))
    return bool(found) and not any(found) and not any(map(_has_seal, records))


def _has_seal(path: Path) -> bool | None:
    """Return whether a file carries a seal, right or wrong; None where that cannot be known."""
    try:
        return is_sealed(path) if is_there(path) else None
    except LabError:
        return None


def _sweeps(folder: Path) -> list[Path]:
    return [folder / "sweeps" / name for name in names_in(folder / "sweeps") if is_folder(folder / "sweeps" / name)]


def _seal_study(folder: Path, sweep: str | None) -> None:
    """Seal the files of a study; one whose files do not belong together is left as it is, and is reported then."""
    study = StudyFolder(folder, is_sealed=False)
    with _left_to_verify():
        if is_sealed(folder / "study.json"):
            return
        record, files = study.record(), {}
        _seal_packs(study, record.fingerprint)
        _seal_packs(study.confirming, record.fingerprint)
        if record.state == "finished":
            study.result()
            files = {
                name: seal_of(read_bounded(folder / name, parquet.MOST_BYTES))
                for name in OUTCOME
                if is_there(folder / name)
            }
        study.save_record(record.model_copy(update={"sweep": sweep, "files": files or None}))


def _seal_packs(study: StudyFolder, fingerprint: str) -> None:
    aside = study.folder / "aside.parquet"
    for path in (*study.packs("parts"), *([aside] if is_there(aside) else [])):
        rows, record = parquet.read_whole(path, is_sealed=False)
        parquet.write_measurements(path, rows, {**record, "study": fingerprint})
    for path in (*study.packs("checkpoints"), *study.packs("states")):
        write_checkpoint(path.with_suffix(SUFFIX), read_checkpoint(path) or {}, fingerprint)
        if path.suffix != SUFFIX:
            remove_file(path)


MIGRATIONS: dict[int, Callable[[Path], None]] = {
    2: m002_points_are_a_sequence,
    3: m003_files_are_sealed,
    4: m004_rows_tell_examples,
}
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
