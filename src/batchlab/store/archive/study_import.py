"""One study of an archive on its way into a lab: converted, and waiting under the digest of its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from batchlab.core.sweep import Sweep
from batchlab.core.trial import Status
from batchlab.errors import LabError, SpecError, shown
from batchlab.files import make_folder
from batchlab.store.archive import staging
from batchlab.store.archive.admission import default_name, is_sweep_name
from batchlab.store.archive.convert import ConvertedStudy, Piece, assemble, parse_files
from batchlab.store.archive.layout import RejectedError, StudyPath, end_step
from batchlab.store.archive.manifest import Manifest
from batchlab.store.archive.own_export import read_record, read_sweep
from batchlab.store.archive.tree import read_tree_study
from batchlab.store.migrations import FORMAT
from batchlab.store.seal import digest, read_sealed, write_sealed
from batchlab.store.study_folder import StudyFolder
from batchlab.store.study_record import StudyRecord

OUTCOME = "outcome.json"
"""Beside a study that waits: what was left out of it, and the sweep that it was of. Written last."""


@dataclass(frozen=True)
class StudyOutcome:
    """What became of one study."""

    path: StudyPath
    counts: dict[str, int] = field(default_factory=dict)
    num_measurements: int = 0
    rejected: list[tuple[str, str]] = field(default_factory=list)
    place: Path | None = None
    """Where it waits; None where it was left out."""

    spec: Sweep | None = None
    """The sweep that it was of, in an archive that batchlab exported."""

    @property
    def is_imported(self) -> bool:
        """Whether anything came of it."""
        return self.place is not None


@dataclass(frozen=True)
class StudyJob:
    """What is to be done with one study, in whichever process."""

    path: StudyPath
    importing: Path
    name: str | None
    """The name that its sweep gets, where one is given."""

    manifest: Manifest | None
    """What the archive's manifest says of it."""

    def place(self, digests: Mapping[str, str], told: Sequence[tuple[str, str]]) -> Path:
        """Return where the study of these files waits, so that it is known again after a stop.

        InputError where the files are not as the manifest says. `told` is what was refused before it was parsed.
        """
        if self.manifest is not None:
            self.manifest.check_study(self.path, digests)
        facts = [FORMAT, str(self.path), self.name, sorted(digests.items()), told]
        return self.importing / "studies" / digest(json.dumps(facts).encode())


def import_tree_study(job: StudyJob, folder: Path) -> StudyOutcome:
    """Convert one study of a tree, unless it waits already."""
    digests, told, pieces = dict[str, str](), list[tuple[str, str]](), list[Piece]()
    place = job.importing
    for files, is_last in read_tree_study(job.path, folder):
        digests |= files.digests()
        told += files.rejected
        if is_last:
            place = job.place(digests, told)
            if waiting := _waiting(place, job.path):
                return waiting
        pieces.append(parse_files(files))
    return _convert(job, place, pieces)


def import_staged_study(job: StudyJob, where: Sequence[Path]) -> StudyOutcome:
    """Convert one study of a tar file, unless it waits already; its pieces are not needed any longer then."""
    loaded = [staging.load(path) for path in where]
    digests = {name: found for _, digests in loaded for name, found in digests.items()}
    place = job.place(digests, [each for piece, _ in loaded for each in piece.rejected])
    outcome = _waiting(place, job.path) or _convert(job, place, [piece for piece, _ in loaded])
    for path in where:
        path.unlink()
    return outcome


def _waiting(place: Path, path: StudyPath) -> StudyOutcome | None:
    """Return the outcome of a study that was converted before a stop; None where there is none that is whole."""
    folder = StudyFolder(place / "study")
    try:
        told, record = read_sealed(place / OUTCOME), folder.record()
        folder.result(record=record)  # a power cut may have torn its files
        spec = Sweep.parse(told["spec"], OUTCOME) if told.get("spec") else None
    except (LabError, SpecError):
        return None
    return _outcome(path, folder, record, [(where, reason) for where, reason in told["rejected"]], spec)


def _convert(job: StudyJob, place: Path, pieces: Sequence[Piece]) -> StudyOutcome:
    """Convert a study and let it wait; a broken one is reported, not raised."""
    path = job.path
    try:
        converted = assemble(path, pieces)
        spec, record = _record(converted, path, job.name)
    except RejectedError as error:
        return StudyOutcome(path, rejected=[(str(path), str(error))])
    folder = StudyFolder(place / "study")
    make_folder(folder.folder)
    rows = converted.measurements
    folder.finish(record, converted.trials, rows if spec is None else rows.counted(path.batch_size), sync=False)
    write_sealed(place / OUTCOME, {"rejected": converted.rejected, "spec": spec and spec.plain()}, sync=False)
    return _outcome(path, folder, record, converted.rejected, spec)


def _outcome(
    path: StudyPath, folder: StudyFolder, record: StudyRecord, rejected: Iterable[tuple[str, str]], spec: Sweep | None
) -> StudyOutcome:
    counts = {str(status): number for status, number in (record.counts or {}).items()}
    return StudyOutcome(path, counts, record.num_measurements or 0, list(rejected), folder.folder, spec)


def _record(converted: ConvertedStudy, path: StudyPath, name: str | None) -> tuple[Sweep | None, StudyRecord]:
    """Return the sweep that a study was of, where batchlab ran it, and its record."""
    if converted.extra is not None:
        sweep = read_sweep(converted.extra, path, name)
        return sweep, read_record(converted.extra, sweep, path, converted.trials, converted.measurements)
    if name is None and not is_sweep_name(default_name(path.workload)):
        raise RejectedError(f'no sweep can be called "{shown(default_name(path.workload))}"; give it a name with --as')
    return None, StudyRecord(
        imported=converted.study,
        state="finished",
        end_step=end_step(converted.study, converted.trials),
        counts={status: sum(trial.status is status for trial in converted.trials) for status in Status},
        num_measurements=len(converted.measurements),
    )
