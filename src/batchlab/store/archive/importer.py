"""Bringing an archive into a lab: both cores, bounded memory, and nothing shows before all of it has been read.

Every study is converted and waits in the lab's folder `importing`, so that an import that was stopped goes on where it
was. A tar file streams by once, its studies waiting in pieces until its end proves that it is whole. Then the sweeps
get their names, and what the lab lacks moves to its place, a sweep at a time.
"""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from batchlab.errors import InputError, shown
from batchlab.files import MOST_PATH
from batchlab.pool import Job, Pool
from batchlab.processes import usable_cores
from batchlab.store.archive import staging
from batchlab.store.archive.admission import Admissions, ArchivedSweep, check_name, default_name
from batchlab.store.archive.import_folder import ImportFolder, open_import_folder
from batchlab.store.archive.layout import StudyPath
from batchlab.store.archive.manifest import Manifest
from batchlab.store.archive.study_import import StudyJob, StudyOutcome, import_staged_study, import_tree_study
from batchlab.store.archive.tar_file import TarFile, check_official, check_tar
from batchlab.store.archive.tree import read_tree
from batchlab.store.rejected import Rejected, add_rejected, read_rejected

READING = 0.9
"""The share of the time that a tar file takes to be read; the rest is for storing its studies."""

Report = Callable[[float], None]
"""Told how much of the work is done, from 0 to 1."""


@dataclass(frozen=True)
class ImportOutcome:
    """What became of an archive."""

    studies: list[StudyOutcome]
    stored: list[str] = field(default_factory=list)
    """Sweeps that the lab has now, or has the rest of."""

    known: list[str] = field(default_factory=list)
    """Sweeps that the lab held already: nothing was done."""

    manifest: str | None = None
    """The digest of the archive's manifest, where it has one; all files are as it says."""

    @property
    def rejected(self) -> list[tuple[str, str]]:
        """Everything that was left out, by its path in the archive, with the reason."""
        return [reason for study in self.studies for reason in study.rejected]


def import_archive(
    path: Path,
    lab: Path,
    *,
    name: str | None = None,
    strict: bool = False,
    processes: int | None = None,
    report: Report = lambda share: None,
) -> ImportOutcome:
    """Import a tree or a tar file into a lab, its one sweep under another name where one is given.

    What is in the lab is left as it is: a sweep that has the name of another is refused, and of one that the lab holds
    already nothing is stored. A study or trial that is broken is named in the lab's rejected.json and the rest is
    imported; with `strict` the first one ends the import. An import that ends with an InputError has stored nothing,
    and leaves no lab where there was none.
    """
    check_name(name)
    source = _source(path)
    with open_import_folder(lab) as importing, Pool(processes or usable_cores()) as pool:
        read_rejected(lab)
        jobs, manifest, read = _read(path, importing, name, pool, report)
        outcomes: list[StudyOutcome] = []
        for outcome in pool.results(jobs):
            if strict and outcome.rejected:
                raise InputError("{}: {} (--strict)".format(*outcome.rejected[0]))
            outcomes.append(outcome)
            report(read + (1 - read) * len(outcomes) / len(jobs))
        outcomes.sort(key=lambda each: each.path)
        _check_something_came(path, outcomes)
        return _store(importing, outcomes, name, source | ({"manifest": manifest} if manifest else {}))


def _source(path: Path) -> dict[str, Any]:
    """Return what is known of an archive before it is read; InputError where it is none."""
    place = shown(str(path), MOST_PATH)
    try:
        kind = path.stat().st_mode
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise InputError(f"Could not read {place}: {error.strerror}.") from None
        raise InputError(f"{place} does not exist. Give an unpacked archive or a tar file.") from None
    facts = {"archive": shown(path.name), "imported": datetime.now(UTC).isoformat(timespec="seconds")}
    if stat.S_ISDIR(kind):
        return facts
    if not stat.S_ISREG(kind):
        raise InputError(f"{place} is neither a folder nor a regular file. Give an unpacked archive or a tar file.")
    sha256 = check_official(path)
    check_tar(path)
    return facts | ({"sha256": sha256} if sha256 else {})


def _read(
    path: Path, importing: ImportFolder, name: str | None, pool: Pool, report: Report
) -> tuple[list[Job], str | None, float]:
    """Return the jobs that convert the studies of an archive, its manifest's digest, and how much is done then."""
    if path.is_dir():
        tree = read_tree(path)
        return *_jobs(import_tree_study, tree.studies, tree.manifest, importing, name), 0.0
    pieces: dict[StudyPath, list[Path]] = {}
    archive = TarFile(path, lambda share: report(READING * share))
    for number, files in enumerate(archive.studies()):
        pieces.setdefault(files.path, []).append(importing.piece(number))
        pool.submit(staging.stage, files, importing.piece(number))
    pool.drain()
    if not pieces:
        raise InputError(f"{shown(str(path), MOST_PATH)} holds no study.json. Is it an archive of studies?")
    top = f"{archive.manifest.place}/" if archive.manifest else ""
    studies = {StudyPath(each.workload.removeprefix(top), each.batch_size): where for each, where in pieces.items()}
    return *_jobs(import_staged_study, studies, archive.manifest, importing, name), READING


def _jobs(
    function: Callable[..., StudyOutcome],
    studies: Mapping[StudyPath, Any],
    manifest: Manifest | None,
    importing: ImportFolder,
    name: str | None,
) -> tuple[list[Job], str | None]:
    if manifest is not None:
        manifest.check_studies(studies.keys())
    jobs: list[Job] = [
        (function, (StudyJob(study, importing.folder, name, manifest and manifest.of(study)), where))
        for study, where in sorted(studies.items())
    ]
    return jobs, None if manifest is None else manifest.digest


def _check_something_came(path: Path, outcomes: Sequence[StudyOutcome]) -> None:
    if not any(outcome.is_imported for outcome in outcomes):
        place, reason = next(each for outcome in outcomes for each in outcome.rejected)
        more = f" {len(outcomes) - 1} other studies are broken, too." if len(outcomes) > 1 else ""
        raise InputError(
            f"Nothing can be imported from {shown(str(path), MOST_PATH)}: {place}: {reason}.{more} Nothing was stored."
        )


def _store(
    importing: ImportFolder, outcomes: list[StudyOutcome], name: str | None, source: dict[str, Any]
) -> ImportOutcome:
    """Let what is new move to its place in the lab; InputError, before anything is stored, where it cannot."""
    admissions = Admissions(importing.lab)
    sweeps = _sweeps(admissions, outcomes, name)
    admitted = admissions.admit(sweeps)
    names = {sweep.workload: sweep.name for sweep in sweeps}
    add_rejected(importing.lab.folder, _rejected(outcomes, names, name, source["archive"]))
    for each in admitted:
        if each.is_news:
            importing.put(each, source)
    return ImportOutcome(
        outcomes,
        stored=[each.sweep.name for each in admitted if each.is_news],
        known=[each.sweep.name for each in admitted if not each.is_news],
        manifest=source.get("manifest"),
    )


def _sweeps(admissions: Admissions, outcomes: Sequence[StudyOutcome], name: str | None) -> list[ArchivedSweep]:
    """Return the sweeps of an archive: one for each workload."""
    workloads: dict[str, list[StudyOutcome]] = {}
    for outcome in outcomes:
        workloads.setdefault(outcome.path.workload, []).append(outcome)
    if name is not None and len(workloads) > 1:
        raise InputError(
            f"--as {name} names one sweep, and the archive holds {len(workloads)}: "
            f"{shown(', '.join(workloads), 300)}. Import one workload at a time, or leave --as out."
        )
    names = admissions.names(workloads)
    imported = {workload: [each for each in studies if each.is_imported] for workload, studies in workloads.items()}
    return [_sweep(workload, studies, name or names[workload]) for workload, studies in imported.items() if studies]


def _sweep(workload: str, studies: Sequence[StudyOutcome], name: str) -> ArchivedSweep:
    """Return the sweep of one workload; all its studies must be of the same one."""
    specs = [study.spec for study in studies]
    if any(spec != specs[0] for spec in specs):
        other = next(study.path for study in studies if study.spec != specs[0])
        raise InputError(f"{studies[0].path} and {other} are of different sweeps. Nothing was imported.")
    places = {study.path.batch_size: study.place for study in studies if study.place is not None}
    return ArchivedSweep(specs[0].name if specs[0] else name, workload, places, specs[0])


def _rejected(
    outcomes: Sequence[StudyOutcome], names: Mapping[str, str], name: str | None, archive: str
) -> Iterator[Rejected]:
    """Yield what was left out, each with the sweep that it would be of."""
    for outcome in outcomes:
        workload = outcome.path.workload
        sweep = names.get(workload) or name or default_name(workload)
        for place, reason in outcome.rejected:
            yield Rejected(path=place, reason=reason, sweep=sweep, archive=archive)
