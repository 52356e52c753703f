"""A lab: a directory of plain files that holds sweeps and all their curves.

::

    lab.json                              the format's version
    lock                                  held by the one runner
    sweeps/NAME/sweep.json                the resolved spec, sealed; import.json for an imported sweep
    sweeps/NAME/BATCH_SIZE/...            one study, see `store.study_folder`

What survives a kill at any moment: every file is whole or absent, a finished pack is kept, an unfinished one
goes on from its last checkpoint. Readers need no lock and see each study either running or finished.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from batchlab.core.growth import GROWS, continued, not_grown
from batchlab.core.result import StudyResult
from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.core.value import Value
from batchlab.errors import (
    MOST_NAMES,
    VERIFY,
    DamagedError,
    LabError,
    MisnamedError,
    NewerLabError,
    OlderSpecError,
    SpecError,
    shown,
    unknown_name,
)
from batchlab.files import is_temporary, is_there, make_folder, names_in, read_json, unreadable, write_json
from batchlab.locked_folders import refuse_links
from batchlab.store.belonging import finished_record
from batchlab.store.lock import hold_lock
from batchlab.store.migrations import FORMAT, SEALED_SINCE, lacks_seals, migrate, upgraded_sweep
from batchlab.store.seal import damaged, read_sealed, write_sealed
from batchlab.store.stored_sweep import ImportRecord, StoredSweep
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord
from batchlab.store.sweep_folder import folder_batch_size, holds_sweep, spec_path, study_places

_Kind = TypeVar("_Kind", bound=Value)
_NO_SWEEP = " holds no sweep yet."


@dataclass(frozen=True)
class SweepResults:
    """The finished studies of one sweep, and what could not be read."""

    sweep: StoredSweep
    results: list[StudyResult]
    records: list[StudyRecord]
    """What study.json says of each of them."""

    unfinished: list[int]
    """Batch sizes whose study has not finished."""

    problems: list[LabError]


class Lab:
    """Reads and writes one lab."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._format = FORMAT

    @classmethod
    def open(cls, folder: Path) -> Lab:
        """Return the lab in `folder`; LabError if there is none or a newer version wrote it."""
        lab = cls.at(folder)
        _check_told(folder)
        lab.check_format()
        return lab

    @classmethod
    def at(cls, folder: Path) -> Lab:
        """Return the lab in `folder`, however damaged; LabError if there is nothing of one, or one in the making."""
        if not is_there(folder / "lab.json") and not names_in(folder / "sweeps"):
            raise LabError(f"There is no lab in {folder}. Make one with `batchlab run SPEC --lab {folder}`.")
        return cls(folder)

    @classmethod
    def create(cls, folder: Path) -> Lab:
        """Return the lab in `folder`, a new one if there is none."""
        lab = cls(folder)
        if is_there(folder / "lab.json"):
            lab.check_format()
            return lab
        check_free(folder)
        make_folder(folder / "sweeps")
        refuse_links(folder, folder / "sweeps")
        write_json(folder / "lab.json", {"format": FORMAT})
        return lab

    def check_format(self) -> int:
        """Return the lab's format; LabError where it cannot be read here."""
        path = self.folder / "lab.json"
        data = read_json(path)
        version = data.get("format") if isinstance(data, dict) else None
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise damaged(path, "it does not name the lab's format")
        if version > FORMAT:
            raise NewerLabError(
                f"{path} names format {version}, written by a newer batchlab; this one reads up to {FORMAT}. "
                "Update batchlab."
            )
        if version >= SEALED_SINCE and lacks_seals(self.folder):
            raise damaged(path, f"it names format {version}, in which every file has a seal, and no sweep has one")
        self._format = version
        return version

    @property
    def is_sealed(self) -> bool:
        """Whether the lab's files have seals; one of an older format has none until the next writer has come by."""
        return self._format >= SEALED_SINCE

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lab as its one writer; one of an older format is brought to this one first."""
        with self.held():
            migrate(self.folder, self.check_format())
            self.check_format()
            yield

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep writers away from the lab, and leave it as it is."""
        with hold_lock(self.folder / "lock"):
            yield

    def sweep_names(self) -> list[str]:
        """Return the names of the sweeps, sorted; one whose spec is gone is among them, one being imported is not."""
        refuse_links(self.folder, self.folder / "sweeps")
        folders = _folders(self.folder / "sweeps")
        return sorted(folder.name for folder in folders if holds_sweep(folder, is_sealed=self.is_sealed))

    def sweeps(self) -> list[StoredSweep]:
        """Return all sweeps, by name; LabError where there is none, or one cannot be read."""
        sweeps, problems = self.readable_sweeps()
        if problems:
            raise problems[0]
        if not sweeps:
            raise LabError(f"Lab {self.folder}{_NO_SWEEP}")
        return sweeps

    def readable_sweeps(self) -> tuple[list[StoredSweep], list[LabError]]:
        """Return the sweeps whose spec can be read, by name, and why others cannot."""
        sweeps, problems = [], []
        for name in self.sweep_names():
            try:
                sweeps.append(self.sweep(name))
            except LabError as error:
                problems.append(error)
        return sweeps, problems

    def sweep(self, name: str) -> StoredSweep:
        """Return a stored sweep, run or imported; LabError where the lab has none of that name."""
        if name not in names_in(self.folder / "sweeps"):
            known = self.sweep_names()
            raise LabError(f"Lab {self.folder}{': ' + unknown_name('sweep', name, known) if known else _NO_SWEEP}")
        folder = self._sweep_folder(name)
        path = spec_path(folder)
        if not is_there(path):
            raise DamagedError(f"{path} is missing beside studies. {VERIFY}")
        if path.name == "sweep.json":
            stored = StoredSweep.run(self._spec(name))
        else:
            stored = StoredSweep.imported(_parsed(ImportRecord, self._read(path), path))
        if stored.name != name:
            raise MisnamedError(f"{folder} holds sweep {shown(stored.name)}: it was exchanged or renamed. {VERIFY}")
        return stored

    def readable_sweep(self, name: str) -> StoredSweep | None:
        """Return a stored sweep; None where it cannot be read."""
        try:
            return self.sweep(name)
        except LabError:
            return None

    def _sweep_folder(self, name: str) -> Path:
        """Return where a sweep lies; LabError where a link would lead out of the lab."""
        folder = self.folder / "sweeps" / name
        refuse_links(self.folder, folder)
        return folder

    def _spec(self, name: str) -> Sweep:
        path = self.folder / "sweeps" / name / "sweep.json"
        return _parsed(Sweep, upgraded_sweep(self._read(path)), path)

    def _read(self, path: Path) -> dict[str, Any]:
        return read_sealed(path, is_sealed=self.is_sealed)

    def save_spec(self, sweep: Sweep) -> None:
        """Write the spec of a sweep."""
        write_sealed(self.folder / "sweeps" / sweep.name / "sweep.json", sweep.plain())

    def save_import(self, record: ImportRecord) -> None:
        """Write what is known of an imported sweep."""
        write_sealed(self.folder / "sweeps" / record.name / "import.json", record.plain())

    def admit(self, sweep: Sweep) -> Sweep:
        """Store a new sweep, or one that is more of what is stored under its name, and return it as `admitted` does."""
        sweep = self.admitted(sweep)
        has_run = is_there(self._sweep_folder(sweep.name) / "sweep.json")
        if not has_run or sweep.plain() != self._spec(sweep.name).plain():
            self.save_spec(sweep)
        return sweep

    def admitted(self, sweep: Sweep) -> Sweep:
        """Return a sweep with what its spec leaves open as it was stored; nothing is written.

        SpecError where it is neither a new one, nor the one that is stored under its name, nor more of that.
        """
        path = self._sweep_folder(sweep.name) / "sweep.json"
        if is_there(path.parent / "import.json"):
            raise SpecError(f'Sweep "{sweep.name}" in lab {self.folder} was imported. Give yours another name or lab.')
        if not is_there(path):
            return self._as_studied(sweep)
        stored = self._spec(sweep.name)
        sweep = continued(sweep, stored)
        changes = not_grown(stored, sweep)
        if changes:
            raise SpecError(
                f'Sweep "{sweep.name}" in lab {self.folder} was begun with another spec; changed: '
                f"{'; '.join(changes)}. Change it back, or give it a new name (--set name=NAME) or another lab. "
                f"{GROWS}"
            )
        return sweep

    def workers_per_trial(self, name: str) -> int | None:
        """Return how many workers trained a trial when a sweep was last run; None where it never was."""
        has_run = is_there(self._sweep_folder(name) / "sweep.json")
        return self._spec(name).engine.workers_per_trial if has_run else None

    def _as_studied(self, sweep: Sweep) -> Sweep:
        """Return a spec that is stored anew, with what it leaves open as the studies that are there already have it."""
        kept: dict[str, Any] = {}
        for study in (self.study_folder(sweep.name, size) for size in sweep.search.batch_sizes):
            with suppress(LabError):
                record = study.record() if study.has_record else None
                if record is not None and record.study is not None:
                    kept = {"sampler_version": record.study.sampler_version, "confirm": record.study.confirm}
        kept = {name: value for name, value in kept.items() if name not in sweep.search.model_fields_set}
        return sweep.model_copy(update={"search": sweep.search.model_copy(update=kept)})

    def study_folder(self, sweep_name: str, batch_size: int) -> StudyFolder:
        """Return the folder of one study; LabError where it is a link."""
        folder = self._sweep_folder(sweep_name) / str(batch_size)
        refuse_links(self.folder, folder)
        return StudyFolder(folder, is_sealed=self.is_sealed)

    def is_finished(self, sweep_name: str, batch_size: int) -> bool:
        """Return whether the search at one batch size has ended."""
        home = self.study_folder(sweep_name, batch_size)
        return home.undisturbed(lambda folder: folder.has_begun() and folder.record().state == "finished")

    def is_growing(self, sweep: Sweep, batch_size: int, study: Study) -> bool:
        """Return whether more was asked of a finished search than is there; `study` is what its record asks for."""
        growing = self.study_folder(sweep.name, batch_size).growing
        return growing.has_record or not study.searches_as(sweep.study(batch_size))

    def find(self, name: str | None = None, sweep_name: str | None = None) -> StoredSweep:
        """Return the one sweep that is meant; `name` is its workload's or its own. What leaves one may be left out."""
        sweeps, problems = self.readable_sweeps()
        named = [sweep for sweep in sweeps if sweep.name in (name, sweep_name)]
        if problems and not named:  # one that cannot be read may be the one that is meant
            raise problems[0]
        if not sweeps:
            raise LabError(f"Lab {self.folder}{_NO_SWEEP}")
        is_workload = name is not None and "/" in name  # a sweep's name has no stroke in it
        self._check_known("workload" if is_workload else "sweep", name, sweeps)
        self._check_known("sweep", sweep_name, sweeps)
        meant = [s for s in sweeps if name in (None, s.workload, s.name) and sweep_name in (None, s.name)]
        if len(meant) != 1:
            choices = _listed(meant or sweeps)
            way_out = "Name the workload or the sweep." if name is None else "Name the sweep."
            raise LabError(f"Lab {self.folder} holds several sweeps: {choices}. {way_out}")
        return meant[0]

    def _check_known(self, kind: Literal["workload", "sweep"], name: str | None, sweeps: list[StoredSweep]) -> None:
        known = {sweep.workload if kind == "workload" else sweep.name for sweep in sweeps}
        if name is not None and name not in known:
            raise LabError(f"Lab {self.folder}: " + unknown_name(kind, name, known))

    def results(self, sweep: Sweep | StoredSweep, metrics: list[str] | None = None) -> SweepResults:
        """Return the finished studies of a sweep; what cannot be read is among their problems."""
        sweep = StoredSweep.run(sweep) if isinstance(sweep, Sweep) else sweep
        results, records, unfinished, problems = [], [], [], list[LabError]()
        for batch_size in sweep.batch_sizes:
            try:
                finished = self._finished(sweep, batch_size, metrics)
                if finished is not None:
                    records.append(finished[0])
                    results.append(finished[1])
                elif sweep.spec is None:
                    problems.append(not_imported(self, sweep.name, batch_size))
                else:
                    unfinished.append(batch_size)
            except LabError as error:
                problems.append(error)
        problems += self.unlisted(sweep).values()
        if problems and (grown := self._grown_since(sweep)):
            return self.results(grown, metrics)
        return SweepResults(sweep, results, records, unfinished, problems)

    def unlisted(self, sweep: StoredSweep) -> dict[Path, LabError]:
        """Return the studies that lie beside a spec which does not list them, so that it is older than they are."""
        folder = self._sweep_folder(sweep.name)
        others = [path for path in study_places(folder) if folder_batch_size(path.name) not in sweep.batch_sizes]
        return {
            path: OlderSpecError(f"{path} is no batch size of {spec_path(folder)}, which is older than it. {VERIFY}")
            for path in others
            if is_there(path / "study.json")
        }

    def _grown_since(self, sweep: StoredSweep) -> StoredSweep | None:
        """Return a sweep as it is stored now, where a writer has let it grow since it was read."""
        stored = self.readable_sweep(sweep.name)
        is_larger = stored and stored.spec and sweep.spec and not not_grown(sweep.spec, stored.spec)
        return stored if is_larger and stored != sweep else None

    def _finished(
        self, sweep: StoredSweep, batch_size: int, metrics: list[str] | None
    ) -> tuple[StudyRecord, StudyResult] | None:
        """Return one study once it has ended and all of it has been found to belong together, else None."""

        def look(folder: StudyFolder) -> tuple[StudyRecord, StudyResult] | None:
            record = finished_record(folder, sweep, batch_size)
            return None if record is None else (record, folder.result(metrics, record))

        return self.study_folder(sweep.name, batch_size).undisturbed(look)


def check_free(folder: Path) -> None:
    """Raise LabError where a folder without a lab has no room for one: something else is there, or a damaged one."""
    _check_told(folder)
    if is_there(folder) and not _is_fresh(folder):
        raise LabError(f"{folder} is neither empty nor a lab. Use another lab.")


def _listed(sweeps: list[StoredSweep]) -> str:
    """Return sweeps as a message lists them: of many a few, and none by a name that only says its workload again."""
    names = [
        s.workload if s.name == s.workload.replace("/", "--") else f"{s.workload} (sweep {s.name})" for s in sweeps
    ]
    return ", ".join(names) if len(names) <= MOST_NAMES else f"{', '.join(names[:5])} and {len(names) - 5} more"


def not_imported(lab: Lab, name: str, batch_size: int) -> DamagedError:
    """Return the error for a study of an imported sweep that is not there."""
    return DamagedError(f"{lab.study_folder(name, batch_size).folder} is missing. Import its archive again.")


def _parsed(kind: type[_Kind], data: Any, path: Path) -> _Kind:
    try:
        return kind.parse(data, str(path))
    except SpecError as error:
        raise DamagedError(f"{error} {VERIFY}") from None


def _folders(folder: Path) -> list[Path]:
    """Return the folders in a folder, and links to folders: whoever looks into one of those is refused."""
    return [folder / name for name in names_in(folder) if (folder / name).is_dir()]


def _check_told(folder: Path) -> None:
    """Raise DamagedError where sweeps lie in a folder, and no lab.json says in what format."""
    if not is_there(folder / "lab.json") and names_in(folder / "sweeps"):
        raise DamagedError(f"{folder / 'lab.json'} is missing beside sweeps. {VERIFY}")


def _is_fresh(folder: Path) -> bool:
    """Return whether a folder holds nothing, or only what a kill leaves of a lab in the making."""
    if not folder.is_dir():
        return False
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise unreadable(folder, error) from error
    return all(is_temporary(name, "lab.json") or (name == "sweeps" and not names_in(folder / name)) for name in names)
