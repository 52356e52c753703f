"""Looking at one study: what of it is not as it was written, file by file, and what its files say together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from batchlab.core.confirmation import REPLICATE_STRIDE, Confirmation
from batchlab.core.study import Study
from batchlab.errors import VERIFY, DamagedError, LabError
from batchlab.files import is_there
from batchlab.search.samplers import draw_points
from batchlab.store.belonging import check_belongs
from batchlab.store.checkpoint import read_checkpoint
from batchlab.store.consistency import check_outcome
from batchlab.store.pack_check import check_checkpoint, check_part, repeats
from batchlab.store.pack_folder import Kind
from batchlab.store.seal import damaged
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_folder import OUTCOME, StudyFolder
from batchlab.store.study_record import StudyRecord

Problems = Iterator[tuple[Path, LabError]]

PACKS: tuple[Kind, ...] = ("parts", "checkpoints", "states")


def study_problems(folder: StudyFolder, sweep: StoredSweep | None, *, deep: bool = False) -> Problems:
    """Yield what of a study is not as it was written, file by file; `sweep` is None where its spec cannot be read."""
    path = folder.folder / "study.json"
    yield from _pack_problems(folder, sweep)
    try:
        if not folder.has_begun():
            _check_no_packs(folder)
            return
        record = folder.record()
    except LabError as error:
        yield path, error
        return
    try:
        if sweep is not None:
            check_belongs(folder, record, sweep, folder.batch_size)
        if deep:
            _check_points(path, record)
    except LabError as error:
        yield folder.folder, error
        return
    try:
        folder.check_listed(record.state, record.files or {})
    except LabError as error:
        yield path, error
        return
    if record.state == "finished":
        yield from _outcome_problems(folder, record, deep)


def _check_no_packs(folder: StudyFolder) -> None:
    """Raise DamagedError where packs were trained for a study that has no study.json: it is written before them."""
    if folder.is_sealed and has_packs(folder):
        raise DamagedError(f"{folder.folder / 'study.json'} is missing beside packs of its study. {VERIFY}")


def has_packs(folder: StudyFolder) -> bool:
    """Return whether packs of a study lie in its folder.

    What a kill leaves of one that begins to grow are none: its states, and parts with what it knew before.
    """
    return any(any((folder.folder / kind).glob("trials-*")) for kind in ("parts", "checkpoints"))


def _outcome_problems(folder: StudyFolder, record: StudyRecord, deep: bool) -> Problems:
    """Yield what is wrong with the files of a finished study, then, where nothing is, with what they say together."""
    names = record.files if folder.is_sealed else [n for n in OUTCOME if is_there(folder.folder / n)]
    found = False
    for name in names or ():
        try:
            folder.check_file(name, record)
        except LabError as error:
            found = True
            yield folder.folder / name, error
    if found:
        return
    try:
        result = folder.result(record=record)
        if deep:
            check_outcome(folder.folder, record, result)
            if result.confirmation is not None:
                _check_replicates(folder, result.confirmation)
    except LabError as error:
        yield _named(folder, error), error


def _named(folder: StudyFolder, error: LabError) -> Path:
    """Return the file of a study that an error names; its study.json where it names none."""
    paths = (folder.folder / name for name in OUTCOME)
    return next((path for path in paths if str(error).startswith(str(path))), folder.folder / "study.json")


def _pack_problems(folder: StudyFolder, sweep: StoredSweep | None) -> Problems:
    """Yield the packs and checkpoints of a study in training that cannot be gone on from."""
    study = _study(folder, sweep) if folder.is_sealed else None
    for kind in PACKS:
        try:
            places = (folder, folder.confirming) if is_there(folder.folder / "confirming") else (folder,)
            paths = [(place, path) for place in places for path in place.packs(kind)]
        except LabError as error:
            yield _link(folder, kind), error
            continue
        told: dict[Path, Any] = {}
        for place, path in paths:
            try:
                if outcomes := _check_pack(place, path, study):
                    told[path] = outcomes
            except LabError as error:
                yield path, error
        yield from repeats(told)


def _check_pack(place: StudyFolder, path: Path, study: Study | None) -> Any:
    """Return what a finished pack tells of its trials; LabError where a pack is not as written, or not of its study."""
    fingerprint = None if study is None else study.fingerprint
    if path.suffix == ".parquet":
        rows, record = place.part(path, fingerprint)
        if study is not None:
            check_part(path, rows, record, study)
        return record["outcomes"]
    arrays = read_checkpoint(path, fingerprint)
    if study is not None and arrays is not None:
        check_checkpoint(path, arrays, study)
    return None


def _link(folder: StudyFolder, kind: str) -> Path:
    """Return the link that keeps the packs of one kind from being looked at."""
    places = (folder.folder / "confirming", folder.folder / kind, folder.folder / "confirming" / kind)
    return next((place for place in places if place.is_symlink()), folder.folder)


def _study(folder: StudyFolder, sweep: StoredSweep | None) -> Study | None:
    """Return the study that should be at this place; None where nobody can tell."""
    if sweep is not None and sweep.spec is not None and folder.batch_size in sweep.batch_sizes:
        return sweep.spec.study(folder.batch_size)
    return None


def _check_points(path: Path, record: StudyRecord) -> None:
    """Raise DamagedError where the points are not those that the sampler draws."""
    if record.study is not None and record.points != tuple(draw_points(record.study)):
        raise damaged(path, "its points are not those that its sampler draws")


def _check_replicates(folder: StudyFolder, confirmation: Confirmation) -> None:
    """Raise DamagedError where the table of replicates has others than confirmed.json tells of."""
    rows = folder.replicates()
    ends = {int(number): int(rows.step[rows.trial_id == number].max()) for number in set(rows.trial_id.tolist())}
    told = {each.replicate * REPLICATE_STRIDE + each.trial_id: each.last_step for each in confirmation.replicates}
    if ends.keys() != told.keys() or any(ends[number] > told[number] for number in ends):
        raise damaged(folder.folder / "confirmed.parquet", "its replicates are not those of confirmed.json")
