"""A lab: a directory of plain files that holds sweeps and all their curves.

::

    lab.json                              the format's version
    lock                                  held by the one runner
    sweeps/NAME/sweep.json                the resolved spec, as it was first run; import.json for an imported sweep
    sweeps/NAME/BATCH_SIZE/...            one study, see `store.study_folder`

What survives a kill at any moment: every file is whole or absent, a finished pack is kept, an unfinished one
goes on from its last checkpoint. Readers need no lock and see each study either running or finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from batchlab.core.growth import GROWS, continued, not_grown
from batchlab.core.result import StudyResult
from batchlab.core.sweep import Sweep
from batchlab.core.value import Value
from batchlab.errors import LabError, SpecError, unknown_name
from batchlab.files import TEMPORARY, make_folder, read_json, write_json
from batchlab.store.lock import hold_lock
from batchlab.store.migrations import FORMAT, migrate, upgraded_sweep
from batchlab.store.stored_sweep import ImportRecord, StoredSweep
from batchlab.store.study_folder import StudyFolder

_Kind = TypeVar("_Kind", bound=Value)


@dataclass(frozen=True)
class SweepResults:
    """The finished studies of one sweep, and what could not be read."""

    sweep: StoredSweep
    results: list[StudyResult]
    unfinished: list[int]
    """Batch sizes whose study has not finished."""

    problems: list[LabError]


class Lab:
    """Reads and writes one lab."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls, folder: Path) -> Lab:
        """Return the lab in `folder`; LabError if there is none or a newer version wrote it."""
        lab = cls(folder)
        if not (folder / "lab.json").exists():
            raise LabError(f"There is no lab in {folder}. Make one with `batchlab run SPEC --lab {folder}`.")
        lab._check_format()
        return lab

    @classmethod
    def create(cls, folder: Path) -> Lab:
        """Return the lab in `folder`, a new one if there is none."""
        lab = cls(folder)
        if (folder / "lab.json").exists():
            lab._check_format()
            return lab
        if folder.exists() and not _is_fresh(folder):
            raise LabError(f"{folder} is neither empty nor a lab. Use another --lab.")
        make_folder(folder / "sweeps")
        write_json(folder / "lab.json", {"format": FORMAT})
        return lab

    def _check_format(self) -> int:
        """Return the lab's format; LabError where it cannot be read here."""
        path = self.folder / "lab.json"
        data = read_json(path)
        version = data.get("format") if isinstance(data, dict) else None
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise LabError(f"{path} does not tell the lab's format. Restore it from a copy.")
        if version > FORMAT:
            raise LabError(
                f"Lab {self.folder} has format {version}, written by a newer batchlab; this one reads up to {FORMAT}. "
                "Update batchlab."
            )
        return version

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lab as its one writer; one of an older format is brought to this one first."""
        with hold_lock(self.folder / "lock"):
            migrate(self.folder, self._check_format())
            yield

    def sweep_names(self) -> list[str]:
        """Return the names of the sweeps, sorted."""
        files = [*(self.folder / "sweeps").glob("*/sweep.json"), *(self.folder / "sweeps").glob("*/import.json")]
        return sorted({path.parent.name for path in files})

    def sweeps(self) -> list[StoredSweep]:
        """Return all sweeps, by name; LabError where there is none."""
        sweeps = [self.sweep(name) for name in self.sweep_names()]
        if not sweeps:
            raise LabError(f"Lab {self.folder} holds no sweep yet.")
        return sweeps

    def sweep(self, name: str) -> StoredSweep:
        """Return a stored sweep, run or imported."""
        folder = self.folder / "sweeps" / name
        if (folder / "sweep.json").exists():
            stored = StoredSweep.run(self._spec(name))
        else:
            stored = StoredSweep.imported(_read(ImportRecord, folder / "import.json"))
        if stored.name != name:
            raise LabError(f"{folder} holds sweep {stored.name}. Give the folder its name back, or remove it.")
        return stored

    def _spec(self, name: str) -> Sweep:
        path = self.folder / "sweeps" / name / "sweep.json"
        return _parsed(Sweep, upgraded_sweep(read_json(path)), path)

    def admit(self, sweep: Sweep) -> Sweep:
        """Store a new sweep, or check that it is the one already stored under its name, or more of it.

        Returns it with what its spec leaves open as it was stored.
        """
        path = self.folder / "sweeps" / sweep.name / "sweep.json"
        if (path.parent / "import.json").exists():
            raise SpecError(
                f'Sweep "{sweep.name}" in lab {self.folder} was imported. Give yours another name or --lab.'
            )
        if not path.exists():
            make_folder(path.parent)
            write_json(path, sweep.plain())
            return sweep
        stored = self._spec(sweep.name)
        sweep = continued(sweep, stored)
        changes = not_grown(stored, sweep)
        if changes:
            raise SpecError(
                f'Sweep "{sweep.name}" in lab {self.folder} was begun with another spec; changed: '
                f"{'; '.join(changes)}. Change it back, or give it a new name or another --lab. {GROWS}"
            )
        if sweep.plain() != stored.plain():
            write_json(path, sweep.plain())
        return sweep

    def study_folder(self, sweep_name: str, batch_size: int) -> StudyFolder:
        """Return the folder of one study."""
        return StudyFolder(self.folder / "sweeps" / sweep_name / str(batch_size))

    def is_finished(self, sweep_name: str, batch_size: int) -> bool:
        """Return whether the search at one batch size has ended."""
        folder = self.study_folder(sweep_name, batch_size).readable
        return folder.has_record and folder.record().state == "finished"

    def find(self, name: str | None = None, sweep_name: str | None = None) -> StoredSweep:
        """Return the one sweep that is meant; `name` is its workload's or its own. What leaves one may be left out."""
        sweeps = self.sweeps()
        is_workload = name is not None and "/" in name  # a sweep's name has no stroke in it
        self._check_known("workload" if is_workload else "sweep", name, sweeps)
        self._check_known("sweep", sweep_name, sweeps)
        meant = [s for s in sweeps if name in (None, s.workload, s.name) and sweep_name in (None, s.name)]
        if len(meant) != 1:
            choices = ", ".join(f"{s.workload} (sweep {s.name})" for s in meant or sweeps)
            way_out = "Name the workload or the sweep." if name is None else "Name one with --sweep."
            raise LabError(f"Lab {self.folder} holds several sweeps: {choices}. {way_out}")
        return meant[0]

    def _check_known(self, kind: Literal["workload", "sweep"], name: str | None, sweeps: list[StoredSweep]) -> None:
        known = {sweep.workload if kind == "workload" else sweep.name for sweep in sweeps}
        if name is not None and name not in known:
            raise LabError(f"Lab {self.folder}: " + unknown_name(kind, name, known))

    def results(self, sweep: Sweep | StoredSweep, metrics: list[str] | None = None) -> SweepResults:
        """Return the finished studies of a sweep; what cannot be read is told, and the rest is returned."""
        sweep = StoredSweep.run(sweep) if isinstance(sweep, Sweep) else sweep
        results, unfinished, problems = [], [], []
        for batch_size in sweep.batch_sizes:
            try:
                if self.is_finished(sweep.name, batch_size):
                    results.append(self._result(sweep, batch_size, metrics))
                else:
                    unfinished.append(batch_size)
            except LabError as error:
                problems.append(error)
        return SweepResults(sweep, results, unfinished, problems)

    def _result(self, sweep: StoredSweep, batch_size: int, metrics: list[str] | None) -> StudyResult:
        """Return one finished study; read again where a grown one took its place meanwhile."""
        home = self.study_folder(sweep.name, batch_size)
        folder, identity = home.readable, home.readable.identity
        try:
            result = folder.result(metrics)
        except LabError:
            if home.readable.identity == identity:
                raise
            return self._result(sweep, batch_size, metrics)
        if home.readable.identity != identity:
            return self._result(sweep, batch_size, metrics)
        if (result.workload, result.batch_size) != (sweep.workload, batch_size):
            raise LabError(
                f"{folder.folder / 'study.json'} is of {result.workload} at batch size {result.batch_size}. "
                "Restore it from a copy, or remove its study's folder and run again."
            )
        return result


def _read(kind: type[_Kind], path: Path) -> _Kind:
    return _parsed(kind, read_json(path), path)


def _parsed(kind: type[_Kind], data: Any, path: Path) -> _Kind:
    try:
        return kind.parse(data, str(path))
    except SpecError as error:
        raise LabError(str(error)) from None


def _is_fresh(folder: Path) -> bool:
    """Return whether a folder holds nothing, or only what a kill leaves of a lab in the making."""
    return folder.is_dir() and all(
        path.suffix == TEMPORARY or (path.name == "sweeps" and not any(path.iterdir())) for path in folder.iterdir()
    )
