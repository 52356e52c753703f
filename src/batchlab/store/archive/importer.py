"""Bringing an archive into a lab: both cores, bounded memory, all or nothing for each sweep.

A sweep appears in the lab once all its studies are there. A tree is imported study by study, so an import that
was stopped goes on where it was. A tar file streams by once, its studies waiting on the disk, parsed and
compressed, until its end proves that it is whole.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, as_completed, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from batchlab.core.best_so_far import BestSoFar
from batchlab.core.sweep import Sweep
from batchlab.core.trial import Status
from batchlab.errors import InputError, LabError, SpecError
from batchlab.files import make_folder, sync_files, write_json
from batchlab.processes import die_with_parent
from batchlab.published.goals import paper_goal
from batchlab.store.archive import sources, staging
from batchlab.store.archive.convert import ConvertedStudy, Piece, assemble, digest
from batchlab.store.archive.layout import RejectedError, StudyPath, end_step
from batchlab.store.best_so_far import best_so_far, join_best_so_far
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import ImportRecord
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord

READING = 0.9
"""The share of the time that a tar file takes to be read; the rest is for storing its studies."""

Report = Callable[[float], None]
"""Told how much of the work is done, from 0 to 1."""


@dataclass(frozen=True)
class StudyOutcome:
    """What became of one study."""

    path: StudyPath
    sweep_name: str
    counts: dict[str, int] = field(default_factory=dict)
    num_measurements: int = 0
    rejected: list[tuple[str, str]] = field(default_factory=list)
    spec: dict[str, Any] | None = None
    """The spec of the sweep, in an archive that batchlab exported."""

    best: BestSoFar | None = None
    """Its improving rows, where it was stored just now and its workload has a goal."""

    is_imported: bool = True


@dataclass(frozen=True)
class ImportOutcome:
    """What became of an archive."""

    studies: list[StudyOutcome]

    @property
    def rejected(self) -> list[tuple[str, str]]:
        """Everything that was left out, by its path in the archive, with the reason."""
        return [reason for study in self.studies for reason in study.rejected]


def import_archive(
    path: Path,
    lab: Path,
    *,
    strict: bool = False,
    processes: int | None = None,
    report: Report = lambda share: None,
) -> ImportOutcome:
    """Import a tree or a tar file into a lab; what is in the lab already is left as it is.

    A study or trial that is broken is named in the lab's rejected.json and the rest is imported; with `strict`
    the first one ends the import.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist. Give an unpacked archive or a tar file.")
    source: dict[str, Any] = {"archive": path.name, "imported": datetime.now(UTC).isoformat(timespec="seconds")}
    if not path.is_dir():
        source["sha256"] = sources.check_official(path)
        sources.check_tar(path)
    store = Lab.create(lab)
    with store.locked(), _Pool(processes or os.cpu_count() or 1) as pool:
        jobs, read = (
            (_tree_jobs(path, store), 0.0) if path.is_dir() else (_tar_jobs(path, store, pool, report), READING)
        )
        outcomes = []
        for number, outcome in enumerate(pool.results(jobs)):
            if strict and outcome.rejected:
                raise InputError("{}: {} (--strict)".format(*outcome.rejected[0]))
            outcomes.append(outcome)
            report(read + (1 - read) * (number + 1) / len(jobs))
        _list_sweeps(store, outcomes, {name: value for name, value in source.items() if value})
    outcome = ImportOutcome(sorted(outcomes, key=lambda each: each.path))
    write_json(lab / "rejected.json", [{"path": place, "reason": reason} for place, reason in outcome.rejected])
    return outcome


Job = tuple[Callable[..., StudyOutcome], tuple[Any, ...]]


def _tree_jobs(root: Path, store: Lab) -> list[Job]:
    return [(_import_tree_study, (store.folder, study, folder)) for study, folder in sources.tree_studies(root).items()]


def _import_tree_study(lab: Path, path: StudyPath, folder: Path) -> StudyOutcome:
    done = _stored_outcome(lab, path)
    return done or _finish(lab, path, [digest(sources.read_tree_study(path, folder))])


def _tar_jobs(path: Path, store: Lab, pool: _Pool, report: Report) -> list[Job]:
    """Read the tar file to its end, parsing in the workers; return the jobs that store its studies."""
    waiting = store.folder / "importing"
    shutil.rmtree(waiting, ignore_errors=True)
    make_folder(waiting)
    pieces: dict[StudyPath, list[Path]] = {}
    try:
        for number, files in enumerate(sources.tar_studies(path, lambda share: report(READING * share))):
            piece = waiting / f"{number}.parquet"
            pieces.setdefault(files.path, []).append(piece)
            pool.submit(staging.stage, files, piece)
        pool.drain()
    except BaseException:
        shutil.rmtree(waiting, ignore_errors=True)
        raise
    if not pieces:
        raise InputError(f"{path} holds no study.json. Is it an archive of studies?")
    return [(_import_staged_study, (store.folder, study, paths)) for study, paths in sorted(pieces.items())]


def _import_staged_study(lab: Path, path: StudyPath, pieces: list[Path]) -> StudyOutcome:
    outcome = _stored_outcome(lab, path) or _finish(lab, path, [staging.load(piece) for piece in pieces])
    for piece in pieces:
        piece.unlink()
    return outcome


def _finish(lab: Path, path: StudyPath, pieces: list[Piece]) -> StudyOutcome:
    """Store one study; a broken one is told, not raised."""
    name = _default_name(path)
    try:
        converted = assemble(pieces)
        spec = converted.extra.get("sweep")
        name = Sweep.parse(spec, "study.json").name if spec else name
        record = _record(converted)
    except (RejectedError, SpecError) as error:
        place = f"{path.workload}/{path.batch_size}"
        rejected = [(place, str(error)), *(reason for piece in pieces for reason in piece.rejected)]
        return StudyOutcome(path, name, rejected=rejected, is_imported=False)
    folder = StudyFolder(lab / "sweeps" / name / str(path.batch_size))
    make_folder(folder.folder)
    folder.finish(record, converted.trials, converted.measurements, sync=False)
    return replace(
        _outcome(path, name, record, converted.rejected),
        spec=spec,
        best=best_so_far(record.result(converted.trials, converted.measurements), paper_goal(path.workload)),
    )


def _record(converted: ConvertedStudy) -> StudyRecord:
    counts = {status: sum(trial.status is status for trial in converted.trials) for status in Status}
    stored = converted.extra.get("record")
    if stored:
        return StudyRecord.parse(stored, "study.json")
    return StudyRecord(
        imported=converted.study,
        state="finished",
        end_step=end_step(converted.study, converted.trials),
        counts=counts,
        num_measurements=len(converted.measurements),
    )


def _stored_outcome(lab: Path, path: StudyPath) -> StudyOutcome | None:
    """Return the outcome of a study that an earlier import has stored, or None."""
    folder = StudyFolder(lab / "sweeps" / _default_name(path) / str(path.batch_size))
    if not folder.has_record:
        return None
    try:
        record = folder.record()
        folder.check_measurements(record.num_measurements or 0, (record.files or {}).get("measurements.parquet"))
    except LabError:  # a power cut before the sweep was listed leaves files that are not whole: import them again
        return None
    return _outcome(path, _default_name(path), record, []) if record.state == "finished" else None


def _outcome(path: StudyPath, name: str, record: StudyRecord, rejected: list[tuple[str, str]]) -> StudyOutcome:
    counts = {str(status): number for status, number in (record.counts or {}).items()}
    return StudyOutcome(path, name, counts, record.num_measurements or 0, rejected)


def _study_folder(lab: Path, outcome: StudyOutcome) -> Path:
    return lab / "sweeps" / outcome.sweep_name / str(outcome.path.batch_size)


def _default_name(path: StudyPath) -> str:
    return path.workload.replace("/", "--")


def _list_sweeps(store: Lab, outcomes: Iterable[StudyOutcome], source: dict[str, Any]) -> None:
    """Make the imported studies visible: a sweep for each workload."""
    by_name: dict[str, list[StudyOutcome]] = {}
    for outcome in outcomes:
        if outcome.is_imported:
            by_name.setdefault(outcome.sweep_name, []).append(outcome)
    sync_files(_study_folder(store.folder, study) for studies in by_name.values() for study in studies)
    for name, studies in by_name.items():
        folder = store.folder / "sweeps" / name
        spec = next((study.spec for study in studies if study.spec), None)
        if spec:
            store.save_spec(Sweep.parse(spec, "study.json"))
            continue
        if (folder / "import.json").exists():
            known = set(store.sweep(name).batch_sizes)
            if known >= {study.path.batch_size for study in studies}:
                continue
        else:
            known = set()
        sizes = sorted(known | {study.path.batch_size for study in studies})
        workload = studies[0].path.workload
        goal = paper_goal(workload)
        if goal is not None:
            join_best_so_far(store, name, goal, sizes, {study.path.batch_size: study.best for study in studies})
        record = ImportRecord(name=name, workload=workload, batch_sizes=tuple(sizes), goal=goal, source=source)
        store.save_import(record)


class _Pool:
    """This process and others beside it, with a bounded queue; of one process there is only this one."""

    def __init__(self, processes: int) -> None:
        self._limit = 2 * processes
        self._running: set[Future[Any]] = set()
        context = multiprocessing.get_context("spawn")
        self._executor = ProcessPoolExecutor(processes - 1, context, die_with_parent) if processes > 1 else None

    def submit(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Start a piece of work, waiting while too many are under way; an error of an earlier one is raised."""
        if self._executor is None:
            function(*arguments)
            return
        self._wait(self._limit - 1)
        self._running.add(self._executor.submit(function, *arguments))

    def drain(self) -> None:
        """Wait for everything that was submitted."""
        self._wait(0)

    def results(self, jobs: Iterable[Job]) -> Iterator[Any]:
        """Do the jobs, here and in the other processes, and yield their results as they come."""
        running: set[Future[Any]] = set()
        for function, arguments in jobs:
            if self._executor is not None and len(running) < self._limit:
                running.add(self._executor.submit(function, *arguments))
                continue
            yield function(*arguments)
            done, running = wait(running, timeout=0)
            yield from (future.result() for future in done)
        for future in as_completed(running):
            yield future.result()

    def _wait(self, most: int) -> None:
        while len(self._running) > most:
            done, self._running = wait(self._running, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *details: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
