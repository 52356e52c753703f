"""Under which name each sweep of an archive is stored, and that nothing in the lab is in its way.

A sweep is new; or the lab holds all of it already, and nothing is done; or the lab lists it and lacks some of its
studies, which were set aside, and these are put back. Whatever else has its name is left alone, and the import ends.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from batchlab.core.measurement import Measurements
from batchlab.core.sweep import Sweep
from batchlab.errors import InputError, LabError, shown
from batchlab.files import TEMPORARY, is_there
from batchlab.store.lab import Lab
from batchlab.store.seal import digest
from batchlab.store.stored_sweep import FORMER_FILES, StoredSweep
from batchlab.store.study_folder import StudyFolder
from batchlab.store.sweep_folder import spec_path

SOURCE = "source.json"
"""Beside the sweep.json of a sweep that came from an export: it was not run here."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class ArchivedSweep:
    """A sweep of an archive, its studies converted and waiting."""

    name: str
    workload: str
    studies: Mapping[int, Path]
    """Where the study of each batch size waits."""

    spec: Sweep | None = None
    """What was run, in one of our own exports."""


@dataclass(frozen=True)
class Admission:
    """What of an archive's sweep is to be stored."""

    sweep: ArchivedSweep
    is_new: bool
    """Whether there is nothing of that name in the lab."""

    missing: Sequence[int] = ()
    """Batch sizes of a sweep that is there, but for their studies."""

    is_listed: bool = False
    """Whether the lab shows a sweep that is there; an import that was stopped leaves one that it does not."""

    @property
    def is_news(self) -> bool:
        """Whether anything is to be stored."""
        return self.is_new or bool(self.missing) or not self.is_listed


def is_sweep_name(name: str) -> bool:
    """Return whether a lab reads a sweep in a folder of this name."""
    return _NAME.fullmatch(name) is not None and not name.casefold().endswith(TEMPORARY)


def check_name(name: str | None) -> None:
    """Raise InputError where `--as` gives no name that a sweep can have."""
    if name is not None and not is_sweep_name(name):
        raise InputError(
            f'--as "{shown(name)}": a sweep\'s name begins with a letter or digit; letters, digits, dots, - and _ may '
            f"follow, up to 100 in all, and it does not end in {TEMPORARY}."
        )


def default_name(workload: str) -> str:
    """Return the name of a sweep that was not run by batchlab.

    >>> default_name("mnist/fc_1024/sgd")
    'mnist--fc_1024--sgd'
    """
    return workload.replace("/", "--")


class Admissions:
    """Decides what of an archive a lab takes; it looks at the lab as it is when this is made."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._listed = {name for name in lab.sweep_names() if is_there(spec_path(lab.folder / "sweeps" / name))}
        names = sorted(os.listdir(lab.folder / "sweeps"))
        self._taken = {name.casefold(): name for name in names} | {name: name for name in names}
        """By name, and by name on a disk that does not tell small letters from large ones."""

    def names(self, workloads: Collection[str]) -> dict[str, str]:
        """Return the names of sweeps that were not run by batchlab, by workload: no two of them share a folder.

        Of workloads that would, such as `x--y/m/sgd` and `x/y--m/sgd`, one may keep the plain name: the one that has
        it in the lab, or the one whose parts can be told apart in it.
        """
        shared = Counter(default_name(workload).casefold() for workload in workloads)
        names = {}
        for workload in workloads:
            name = default_name(workload)
            holder = self._imported_workload(name)
            is_alone = shared[name.casefold()] == 1 or _is_regular(workload)
            keeps = holder == workload or (holder is None and is_alone)
            names[workload] = name if keeps else f"{name[:91]}-{digest(workload.encode())[:8]}"
        return names

    def _imported_workload(self, name: str) -> str | None:
        """Return the workload of the imported sweep that has this name, in whatever case; None where there is none."""
        found = self._find(name)
        if found not in self._listed or not (self._lab.folder / "sweeps" / found / "import.json").exists():
            return None
        try:
            return self._lab.sweep(found).workload
        except LabError:
            return None

    def _find(self, name: str) -> str:
        return self._taken.get(name) or self._taken.get(name.casefold()) or ""

    def admit(self, sweeps: Sequence[ArchivedSweep]) -> list[Admission]:
        """Return what is to be stored of each sweep; InputError where something else in the lab has its name."""
        twice = [name for name, number in Counter(sweep.name.casefold() for sweep in sweeps).items() if number > 1]
        if twice:
            raise InputError(f'The archive holds two sweeps "{twice[0]}". Import them from archives of their own.')
        return [self._admit(sweep) for sweep in sweeps]

    def _admit(self, sweep: ArchivedSweep) -> Admission:
        found, folder = self._find(sweep.name), self._lab.folder / "sweeps" / sweep.name
        if not found:
            return Admission(sweep, is_new=True)
        if found != sweep.name or folder.is_symlink() or not folder.is_dir():
            raise _taken(self._lab, found, "it only looks like this one")
        if sweep.name in self._listed:
            _check_listed(self._lab, sweep)
            missing = [size for size in sweep.studies if not self._study(sweep, size).has_record]
        else:
            _check_begun(self._lab, sweep)
            missing = [size for size in sweep.studies if not _is_whole(self._study(sweep, size))]
        for size in sweep.studies.keys() - set(missing):
            if not _is_same(self._study(sweep, size), StudyFolder(sweep.studies[size])):
                raise _taken(self._lab, sweep.name, f"its study at batch size {size} is another")
        return Admission(sweep, is_new=False, missing=missing, is_listed=sweep.name in self._listed)

    def _study(self, sweep: ArchivedSweep, batch_size: int) -> StudyFolder:
        return self._lab.study_folder(sweep.name, batch_size)


def _is_regular(workload: str) -> bool:
    """Return whether a workload's parts can be read off its sweep's name."""
    return workload.casefold() == workload and default_name(workload).split("--") == workload.split("/")


def _check_listed(lab: Lab, sweep: ArchivedSweep) -> None:
    """Refuse a sweep of the same name that was run here, or is of other studies."""
    try:
        stored = lab.sweep(sweep.name)
    except LabError as error:
        raise _taken(lab, sweep.name, f"it cannot be read: {error}") from None
    if stored.spec is not None and not (lab.folder / "sweeps" / sweep.name / SOURCE).exists():
        raise _taken(lab, sweep.name, "it was run here")
    if not _is_same_sweep(stored, sweep):
        raise _taken(lab, sweep.name, "it was imported from another archive")


def _is_same_sweep(stored: StoredSweep, sweep: ArchivedSweep) -> bool:
    if stored.spec is not None or sweep.spec is not None:
        return stored.spec is not None and sweep.spec is not None and stored.spec.plain() == sweep.spec.plain()
    return stored.workload == sweep.workload and set(stored.batch_sizes) == set(sweep.studies)


def _check_begun(lab: Lab, sweep: ArchivedSweep) -> None:
    """Refuse to go on with a sweep that was begun and never listed, where it has more than the archive."""
    folder = lab.folder / "sweeps" / sweep.name
    more = sorted(set(os.listdir(folder)) - {str(size) for size in sweep.studies} - {*FORMER_FILES})
    if sweep.spec is not None or any(not name.endswith(TEMPORARY) for name in more):
        raise _taken(lab, sweep.name, "it is the beginning of another import")


def _taken(lab: Lab, name: str, why: str) -> InputError:
    return InputError(
        f'Lab {lab.folder} holds a sweep "{shown(name)}" already, and {why}. Nothing was imported; store this under '
        "another name with --as NAME, or in another lab."
    )


def _is_whole(study: StudyFolder) -> bool:
    """Return whether a study that an import left unlisted is whole; after a power cut it may not be."""
    try:
        record = study.record() if study.has_record else None
        if record is not None:
            study.check_measurements(record.num_measurements or 0, (record.files or {}).get("measurements.parquet"))
        return record is not None and record.state == "finished"
    except LabError:
        return False


def _is_same(stored: StudyFolder, waiting: StudyFolder) -> bool:
    """Return whether a stored study is what an archive would give: its trials and all their rows."""
    one, other = stored.record(), waiting.record()
    if one.model_copy(update={"files": None}) != other.model_copy(update={"files": None}):
        return False
    return stored.trials(one) == waiting.trials(other) and _equal(
        stored.result(record=one).measurements, waiting.result(record=other).measurements
    )


def _equal(one: Measurements, other: Measurements) -> bool:
    return (
        np.array_equal(one.trial_id, other.trial_id)
        and np.array_equal(one.step, other.step)
        and one.metrics.keys() == other.metrics.keys()
        and all(np.array_equal(values, other.metrics[name], equal_nan=True) for name, values in one.metrics.items())
    )
