"""Looking at every file of a lab: read whole, checked against its seal and against the files beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from batchlab.core.confirmation import REPLICATE_STRIDE, Confirmation
from batchlab.core.study import Study
from batchlab.errors import VERIFY, DamagedError, LabError, MisnamedError, UnreadableError
from batchlab.files import TEMPORARY, check_regular, is_folder, is_there, names_in, unreadable
from batchlab.search.samplers import draw_points
from batchlab.store.checkpoint import read_checkpoint
from batchlab.store.consistency import check_outcome
from batchlab.store.lab import Lab, check_belongs, spec_path
from batchlab.store.pack_check import check_checkpoint, check_part, repeats
from batchlab.store.rejected import FILE as REJECTED
from batchlab.store.rejected import read_rejected
from batchlab.store.seal import damaged
from batchlab.store.set_aside import SET_ASIDE
from batchlab.store.stored_sweep import FORMER_FILES, StoredSweep
from batchlab.store.study_folder import OUTCOME, StudyFolder, study_places
from batchlab.store.study_record import StudyRecord
from batchlab.store.throughput import FOLDER as THROUGHPUTS
from batchlab.store.throughput import read_throughput
from batchlab.verify.findings import Finding, Verification, problem_of

Report = Callable[[float], None]
"""Told how much of the lab has been looked at, from 0 to 1."""

Problems = Iterator[tuple[Path, LabError]]

AGAIN = "`batchlab verify --repair` sets it aside, and `batchlab run` trains what it held again"
RESTORED = "`batchlab verify --repair` writes it again from the file beside it"
SMALLER = "`batchlab verify --repair` sets it aside; nothing that is answered today rests on it"
RENAMED = "`batchlab verify --repair` gives it its name again where that is free, else sets it aside"
SPEC = "`batchlab verify --repair` sets it aside; `batchlab run` with the sweep's spec writes it again"
OLDER = "`batchlab run` with the spec that has this batch size takes it up again"
IMPORTED = "`batchlab verify --repair` writes it again from its studies"
TIMED = "`batchlab verify --repair` sets it aside, and `batchlab scaling` measures again"
LINK = "`batchlab verify --repair` sets it aside; what it points to is left alone"
LOCK = "`batchlab verify --repair` sets it aside; until then nothing can be run in the lab"
UNREADABLE = "it is left as it is until the system lets it be read"
PACKS: tuple[Literal["parts", "checkpoints", "states"], ...] = ("parts", "checkpoints", "states")
FOLDERS = (*PACKS, "confirming", "growing", "replaced")
LAB_FILES = ("lab.json", "lock", REJECTED, "report.html")
"""What batchlab writes beside the sweeps: the last one unless it is told to write it elsewhere."""

SWEEP_FILES = ("sweep.json", "import.json", "source.json", *FORMER_FILES)


def verify_lab(folder: Path, *, deep: bool = False, report: Report = lambda share: None) -> Verification:
    """Look at all files of a lab; with `deep` also at what they say: points drawn again, outcomes computed again."""
    return _Look(Lab(folder), deep, report).verification


class _Look:
    """One pass over a lab."""

    def __init__(self, lab: Lab, deep: bool, report: Report) -> None:
        self._lab, self._deep, self._report = lab, deep, report
        self.verification = Verification(lab.folder, None)
        self._sizes = {path: size for path in _files(lab.folder) if (size := _size(path)) is not None}
        self._total = max(1, sum(self._sizes.values()))
        self._format()
        self._lab_files()
        for name in lab.sweep_names():
            self._sweep(name)
        self.verification.findings = list(dict.fromkeys(self.verification.findings))

    def _format(self) -> None:
        try:
            self.verification.format = self._lab.check_format()
        except LabError as error:
            follows = "no command reads the lab until `batchlab verify --repair` has written it again"
            self._found(self._lab.folder / "lab.json", error, follows)

    def _lab_files(self) -> None:
        try:
            check_regular(self._lab.folder / "lock")
        except LabError as error:
            self._found(self._lab.folder / "lock", error, LOCK)
        try:
            read_rejected(self._lab.folder)
        except LabError as error:
            self._found(self._lab.folder / REJECTED, error, SMALLER)
        self._throughputs()
        for name in _all_names(self._lab.folder):
            if name not in (*LAB_FILES, "sweeps", THROUGHPUTS, SET_ASIDE, "importing") and not name.endswith(TEMPORARY):
                self.verification.foreign.append(self._lab.folder / name)

    def _throughputs(self) -> None:
        """Look at the step times that were measured; whatever else lies there is foreign."""
        folder = self._lab.folder / THROUGHPUTS
        if is_there(folder) and not is_folder(folder):
            self._found(folder, LabError(f"{folder} is a link or a file, where a folder should be."), LINK)
            return
        for path in (folder / name for name in names_in(folder) if not name.endswith(TEMPORARY)):
            if path.suffix != ".json":
                self.verification.foreign.append(path)
                continue
            try:
                check_regular(path)
                read_throughput(path)
            except LabError as error:
                self._found(path, error, TIMED)
            self.verification.num_files += 1
            self.verification.num_bytes += self._sizes.get(path, 0)

    def _sweep(self, name: str) -> None:
        folder, sweep = self._lab.folder / "sweeps" / name, None
        try:
            sweep = self._lab.sweep(name)
        except LabError as error:
            is_renamed = isinstance(error, MisnamedError)
            path = folder if is_renamed or folder.is_symlink() else spec_path(folder)
            self._found(path, error, RENAMED if is_renamed else IMPORTED if path.name == "import.json" else SPEC)
            if folder.is_symlink():
                return
        studies = [path for place in (folder, folder / "growing", folder / "replaced") for path in study_places(place)]
        there = {_batch_size(path) for path in study_places(folder)}
        for missing in sorted(set(sweep.batch_sizes) - there) if sweep and not sweep.spec else ():
            path = folder / str(missing)
            self._found(path, DamagedError(f"{path} is missing."), "import its archive again")
        for path, older in (self._lab.unlisted(sweep) if sweep else {}).items():
            self._found(path, older, OLDER)
        for path in (*studies, folder / "growing", folder / "replaced"):
            if path.is_symlink():
                self._found(path, LabError(f"{path} is a link, which no lab holds."), LINK)
        for path in (path for path in studies if not path.is_symlink() and not _is_replaced(path)):
            self._study(StudyFolder(path, is_sealed=self._lab.is_sealed), name)
        known = {path.name for path in studies} | {*SWEEP_FILES, *FOLDERS}
        names = (name for name in names_in(folder) if name not in known and not name.endswith(TEMPORARY))
        self.verification.foreign += [folder / name for name in names]

    def _readable_sweep(self, name: str) -> StoredSweep | None:
        try:
            return self._lab.sweep(name)
        except LabError:
            return None

    def _study(self, folder: StudyFolder, name: str) -> None:
        self.verification.num_studies += 1
        for path, error in self._problems(folder, name):
            self._found(path, error, follows(path))
        self._count(folder.folder)

    def _problems(self, folder: StudyFolder, name: str) -> list[tuple[Path, LabError]]:
        """Return what is wrong with a study; looked at once more where a writer has changed it meanwhile."""
        version, sweep = folder.version, self._readable_sweep(name)
        problems = list(study_problems(folder, sweep, deep=self._deep))
        if problems and _is_replaced(folder.folder):
            return []
        if problems and (folder.version != version or self._readable_sweep(name) != sweep):
            return self._problems(folder, name)
        return [(path, error) for path, error in problems if path.parent.name not in PACKS or is_there(path)]

    def _found(self, path: Path, error: LabError, follows: str) -> None:
        is_unreadable = isinstance(error, UnreadableError)
        self.verification.findings.append(
            Finding(path, problem_of(error), UNREADABLE if is_unreadable else follows, is_unreadable)
        )

    def _count(self, folder: Path) -> None:
        """Count the files below a folder as looked at; what is no file of a study is foreign."""
        for path, size in self._sizes.items():
            if folder in path.parents:
                self.verification.num_files += 1
                self.verification.num_bytes += size
                if path.parent == folder and path.name not in ("study.json", *OUTCOME) and path.suffix != TEMPORARY:
                    self.verification.foreign.append(path)
        self._report(self.verification.num_bytes / self._total)


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
            check_belongs(folder, record, sweep, _batch_size(folder.folder))
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
    if sweep is not None and sweep.spec is not None and _batch_size(folder.folder) in sweep.batch_sizes:
        return sweep.spec.study(_batch_size(folder.folder))
    return None


def _is_replaced(study: Path) -> bool:
    """Return whether a larger study has taken the place of one: what is left of it, the next run removes."""
    return study.parent.name == "replaced" and is_folder(study.parents[1] / study.name)


def _batch_size(folder: Path) -> int:
    return int(folder.name)


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


def follows(path: Path) -> str:
    """Return what a file that is not sound means for the lab."""
    if path.name in ("study.json", "trials.json", "confirmed.json"):
        return RESTORED
    return SMALLER if path.name == "aside.parquet" else AGAIN


def _files(folder: Path) -> Iterator[Path]:
    for path in (folder / name for name in _all_names(folder)):
        if path.is_dir() and not path.is_symlink():
            if path.name != SET_ASIDE:
                yield from _files(path)
        else:
            yield path


def _all_names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:  # a writer at work has finished with it
        return []
    except OSError as error:
        raise unreadable(folder, error) from error


def _size(path: Path) -> int | None:
    """Return the bytes of a file; None where it is gone, as what a writer makes for a moment is."""
    try:
        return path.lstat().st_size
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
