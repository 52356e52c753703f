"""Looking at every file of a lab: read whole, checked against its seal and against the files beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from batchlab.errors import DamagedError, LabError, MisnamedError, UnreadableError
from batchlab.files import TEMPORARY, check_regular, is_folder, is_there, names_in, unreadable
from batchlab.store.lab import Lab
from batchlab.store.rejected import FILE as REJECTED
from batchlab.store.rejected import read_rejected
from batchlab.store.set_aside import SET_ASIDE
from batchlab.store.stored_sweep import FORMER_FILES, StoredSweep
from batchlab.store.study_folder import OUTCOME, StudyFolder
from batchlab.store.sweep_folder import spec_path, study_places
from batchlab.store.throughput import FOLDER as THROUGHPUTS
from batchlab.store.throughput import read_throughput
from batchlab.verify.findings import Finding, Verification, problem_of
from batchlab.verify.study import PACKS, study_problems

Report = Callable[[float], None]
"""Told how much of the lab has been looked at, from 0 to 1."""

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
        self._check_format()
        self._check_lab_files()
        for name in lab.sweep_names():
            self._check_sweep(name)
        self.verification.findings = list(dict.fromkeys(self.verification.findings))

    def _check_format(self) -> None:
        follows = "no command reads the lab until `batchlab verify --repair` has written it again"
        with self._noting(self._lab.folder / "lab.json", follows):
            self.verification.format = self._lab.check_format()

    def _check_lab_files(self) -> None:
        folder = self._lab.folder
        with self._noting(folder / "lock", LOCK):
            check_regular(folder / "lock")
        with self._noting(folder / REJECTED, SMALLER):
            read_rejected(folder)
        self._check_throughputs(folder / THROUGHPUTS)
        known = (*LAB_FILES, "sweeps", THROUGHPUTS, SET_ASIDE, "importing")
        self._add_foreign(folder, (name for name in _all_names(folder) if name not in known))

    def _check_throughputs(self, folder: Path) -> None:
        """Look at the step times that were measured; whatever else lies there is foreign."""
        if is_there(folder) and not is_folder(folder):
            self._found(folder, LabError(f"{folder} is a link or a file, where a folder should be."), LINK)
            return
        for path in (folder / name for name in names_in(folder) if not name.endswith(TEMPORARY)):
            if path.suffix != ".json":
                self.verification.foreign.append(path)
                continue
            with self._noting(path, TIMED):
                check_regular(path)
                read_throughput(path)
            self.verification.num_files += 1
            self.verification.num_bytes += self._sizes.get(path, 0)

    def _check_sweep(self, name: str) -> None:
        folder = self._lab.folder / "sweeps" / name
        sweep = self._check_spec(folder)
        if folder.is_symlink():
            return
        if sweep is not None:
            self._check_listed(folder, sweep)
        grown = (folder / "growing", folder / "replaced")
        studies = [path for place in (folder, *grown) for path in study_places(place)]
        for path in (*studies, *grown):
            if path.is_symlink():
                self._found(path, LabError(f"{path} is a link, which no lab holds."), LINK)
        for path in studies:
            if not path.is_symlink() and not _is_replaced(path):
                self._check_study(StudyFolder(path, is_sealed=self._lab.is_sealed), name)
        known = {path.name for path in studies} | {*SWEEP_FILES, *FOLDERS}
        self._add_foreign(folder, (name for name in names_in(folder) if name not in known))

    def _check_spec(self, folder: Path) -> StoredSweep | None:
        """Return a sweep; None, and a finding, where what tells of it cannot be read."""
        try:
            return self._lab.sweep(folder.name)
        except LabError as error:
            is_renamed = isinstance(error, MisnamedError)
            path = folder if is_renamed or folder.is_symlink() else spec_path(folder)
            self._found(path, error, RENAMED if is_renamed else IMPORTED if path.name == "import.json" else SPEC)
            return None

    def _check_listed(self, folder: Path, sweep: StoredSweep) -> None:
        """Look for imported studies that are missing, and for studies that the spec does not list."""
        there = {int(path.name) for path in study_places(folder)}
        for missing in sorted(set(sweep.batch_sizes) - there) if not sweep.spec else ():
            path = folder / str(missing)
            self._found(path, DamagedError(f"{path} is missing."), "import its archive again")
        for path, older in self._lab.unlisted(sweep).items():
            self._found(path, older, OLDER)

    def _check_study(self, folder: StudyFolder, name: str) -> None:
        self.verification.num_studies += 1
        for path, error in self._problems(folder, name):
            self._found(path, error, follows(path))
        self._count(folder.folder)

    def _problems(self, folder: StudyFolder, name: str) -> list[tuple[Path, LabError]]:
        """Return what is wrong with a study; looked at once more where a writer has changed it meanwhile."""
        version, sweep = folder.version, self._lab.readable_sweep(name)
        problems = list(study_problems(folder, sweep, deep=self._deep))
        if problems and _is_replaced(folder.folder):
            return []
        if problems and (folder.version != version or self._lab.readable_sweep(name) != sweep):
            return self._problems(folder, name)
        return [(path, error) for path, error in problems if path.parent.name not in PACKS or is_there(path)]

    @contextmanager
    def _noting(self, path: Path, follows: str) -> Iterator[None]:
        """Note an error as a finding on a path, and go on."""
        try:
            yield
        except LabError as error:
            self._found(path, error, follows)

    def _found(self, path: Path, error: LabError, follows: str) -> None:
        is_unreadable = isinstance(error, UnreadableError)
        self.verification.findings.append(
            Finding(path, problem_of(error), UNREADABLE if is_unreadable else follows, is_unreadable)
        )

    def _add_foreign(self, folder: Path, names: Iterable[str]) -> None:
        """Note names in a folder that batchlab never writes; what a writer makes for a moment is none."""
        self.verification.foreign += [folder / name for name in names if not name.endswith(TEMPORARY)]

    def _count(self, folder: Path) -> None:
        """Count the files below a folder as looked at; what is no file of a study is foreign."""
        for path, size in self._sizes.items():
            if folder in path.parents:
                self.verification.num_files += 1
                self.verification.num_bytes += size
                if path.parent == folder and path.name not in ("study.json", *OUTCOME) and path.suffix != TEMPORARY:
                    self.verification.foreign.append(path)
        self._report(self.verification.num_bytes / self._total)


def _is_replaced(study: Path) -> bool:
    """Return whether a larger study has taken the place of one: what is left of it, the next run removes."""
    return study.parent.name == "replaced" and is_folder(study.parents[1] / study.name)


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
