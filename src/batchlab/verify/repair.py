"""Making a damaged lab one that `batchlab run` completes: nothing is deleted, every sound part is kept.

What cannot be trusted goes to a folder of its own in the lab, `set-aside/TIME`, at the place that it had. What can be
written again from the files beside it is; of the rest the study forgets that it had it, so that the next run trains it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from batchlab.errors import BatchlabError, LabError, UnreadableError
from batchlab.files import is_folder, names_in, read_bounded, write_file, write_json
from batchlab.published.goals import paper_goal
from batchlab.store import parquet
from batchlab.store.lab import Lab, check_belongs
from batchlab.store.lock import hold_lock
from batchlab.store.migrations import FORMAT, migrate
from batchlab.store.seal import FileSeal, is_sealed, seal_of
from batchlab.store.set_aside import SetAside
from batchlab.store.stored_sweep import ImportRecord, StoredSweep
from batchlab.store.study_folder import CONFIRMED, OUTCOME, StudyFolder, parse_trials, study_places, trials_json
from batchlab.store.study_record import StudyRecord
from batchlab.verify.check import Report, study_problems, verify_lab
from batchlab.verify.findings import Finding, Verification


def repair_lab(
    folder: Path, *, deep: bool = False, report: Report = lambda share: None
) -> tuple[list[str], Verification]:
    """Repair a lab; return what was done, a sentence each, and what a second look found."""
    with hold_lock(folder / "lock"):
        repair = _Repair(folder)
        repair.format()
        findings = verify_lab(folder, deep=deep, report=lambda share: report(share / 2)).findings
        for finding in findings:
            if finding.is_unreadable:
                raise UnreadableError(f"{finding.problem} Nothing is set aside before all of the lab can be read.")
        for finding in findings:
            repair.mend(finding)
        return repair.done, verify_lab(folder, deep=deep, report=lambda share: report(0.5 + share / 2))


class _Repair:
    """One repair: where things are set aside, and what was done."""

    def __init__(self, folder: Path) -> None:
        self._lab, self.done = Lab(folder), list[str]()
        self._aside = SetAside(folder)
        self._mended: set[Path] = set()

    def format(self) -> None:
        """Write lab.json where it does not tell the format, and bring a lab of an older one up to date."""
        path = self._lab.folder / "lab.json"
        try:
            version = self._lab.check_format()
        except LabError as error:
            if "newer" in str(error) or isinstance(error, UnreadableError):
                raise
            self.set_aside(path, str(error))
            version = FORMAT if _has_seals(self._lab.folder) else 1
            write_json(path, {"format": version})
            self.done.append(f"{path}: written again, as format {version}")
        if version < FORMAT:
            migrate(self._lab.folder, version)
            self.done.append(f"{self._lab.folder}: brought from format {version} to {FORMAT}")
        self._lab.check_format()

    def mend(self, finding: Finding) -> None:
        """Do what can be done about one finding."""
        parts = finding.path.relative_to(self._lab.folder).parts
        if len(parts) < 3 or parts[0] != "sweeps" or _is_link_to_folder(finding.path):
            self.set_aside(finding.path, finding.problem)
        elif parts[2] in ("sweep.json", "import.json"):
            self._mend_spec(parts[1], finding)
        else:
            depth = 4 if parts[2] in ("growing", "replaced") else 3
            self._mend_study(parts[1], self._lab.folder.joinpath(*parts[:depth]))

    def _mend_spec(self, name: str, finding: Finding) -> None:
        self.set_aside(finding.path, finding.problem)
        records = [record for record in map(_record, self._studies(name)) if record is not None]
        imported = [record.imported for record in records if record.imported is not None]
        if imported and len(imported) == len(records):
            workload = imported[0].workload
            sizes = tuple(sorted(each.batch_size for each in imported))
            source = {"archive": "unknown: import.json was written again by `batchlab verify --repair`"}
            self._lab.save_import(
                ImportRecord(name=name, workload=workload, batch_sizes=sizes, goal=paper_goal(workload), source=source)
            )
            self.done.append(f"{finding.path}: written again from its studies; where they came from is lost")

    def _studies(self, name: str) -> list[StudyFolder]:
        return [StudyFolder(path) for path in study_places(self._lab.folder / "sweeps" / name) if is_folder(path)]

    def _mend_study(self, name: str, path: Path) -> None:
        """Mend all that is wrong with one study, once."""
        if path in self._mended:
            return
        self._mended.add(path)
        folder, sweep = StudyFolder(path), self._sweep(name)
        problems = {found: str(error) for found, error in study_problems(folder, sweep, deep=True)}
        if path in problems:
            self._mend_stranger(path, problems[path])
            return
        for found, problem in problems.items():
            if found.parent.name in ("parts", "checkpoints", "states") or _is_link_to_folder(found):
                self.set_aside(found, problem)
        bad = {
            found.name: problem
            for found, problem in problems.items()
            if found.parent == path and found.name in ("study.json", *OUTCOME)
        }
        if "study.json" in bad:
            self._restore_record(folder, sweep, bad)
        elif bad:
            self._mend_outcome(folder, folder.record(), bad)

    def _sweep(self, name: str) -> StoredSweep | None:
        try:
            return self._lab.sweep(name)
        except LabError:
            return None

    def _mend_stranger(self, path: Path, problem: str) -> None:
        """Set a study aside that is another than its sweep's; one that is only more of it waits for the larger spec."""
        if "asks for more than its sweep" in problem:
            self.done.append(f"{path}: left as it is; run the larger spec again, that it was trained for")
        else:
            self.set_aside(path, problem)

    def _restore_record(self, folder: StudyFolder, sweep: StoredSweep | None, bad: dict[str, str]) -> None:
        """Write study.json again from what measurements.parquet carries; else forget the outcome."""
        self._set_aside_files(folder, bad)
        try:
            record = restored_record(folder)
            folder.save_record(record)
            if sweep is not None:
                check_belongs(folder, record, sweep, int(folder.folder.name))
            folder.result(record=record)
        except BatchlabError as error:
            why = f"{folder.folder}: without a study.json nothing vouches for it ({error})"
            self._set_aside_files(folder, dict.fromkeys(("study.json", *OUTCOME), why))
            self.done.append(f"{folder.folder}: its outcome is set aside; `batchlab run` trains what is missing again")
        else:
            self.done.append(f"{folder.folder / 'study.json'}: written again from measurements.parquet")

    def _mend_outcome(self, folder: StudyFolder, record: StudyRecord, bad: dict[str, str]) -> None:
        """Write again what a sound file beside it carries; forget what cannot be."""
        self._set_aside_files(folder, bad)
        for name, table, key in (
            ("trials.json", "measurements.parquet", "trials"),
            ("confirmed.json", "confirmed.parquet", "confirmation"),
        ):
            if name in bad and table not in bad and _restore_text(folder, record, name, table, key):
                self.done.append(f"{folder.folder / name}: written again from {table}")
                del bad[name]
        if bad.keys() & set(CONFIRMED):
            self._set_aside_files(folder, {name: f"{name} beside it is not sound" for name in CONFIRMED})
            self.done.append(f"{folder.folder}: no longer confirmed; `batchlab run` confirms it again")
        record = record.without_files({*bad, *(CONFIRMED if bad.keys() & set(CONFIRMED) else ())})
        if not bad.keys() & {"trials.json", "measurements.parquet"}:
            folder.save_record(record)
        elif record.study is None:
            self.set_aside(folder.folder, "an imported study that is not whole")
            self.done.append(f"{folder.folder}: import its archive again")
        else:
            self._reopen(folder, record)

    def _reopen(self, folder: StudyFolder, record: StudyRecord) -> None:
        """Let a study be searched again; what was confirmed stays, for it will fit again."""
        names = ("trials.json", "measurements.parquet", "aside.parquet")
        self._set_aside_files(folder, dict.fromkeys(names, "its study is searched again"))
        kept = {name: seal for name, seal in (record.files or {}).items() if name in CONFIRMED}
        folder.save_record(record.begun_anew().with_files(kept))
        self.done.append(f"{folder.folder}: `batchlab run` trains it again")

    def _set_aside_files(self, folder: StudyFolder, names: dict[str, str]) -> None:
        for name, problem in names.items():
            self.set_aside(folder.folder / name, problem)

    def set_aside(self, path: Path, problem: str) -> None:
        """Move a file, or a folder, out of the way; what is not there is left so."""
        if self._aside.take(path, problem):
            self.done.append(f"{path}: set aside in {self._aside.folder}")


def restored_record(folder: StudyFolder) -> StudyRecord:
    """Return the record that the tables of a finished study carry, with the seals of the files that are sound.

    trials.json and confirmed.json are written again where they are not as their tables say.
    """
    table = folder.folder / "measurements.parquet"
    _, notes = parquet.read_whole(table)
    if not isinstance(notes, dict) or "record" not in notes:
        raise LabError(f"{table} carries no record of its study.")
    record = StudyRecord.parse(notes["record"], str(table))
    seals = {table.name: seal_of(read_bounded(table, parquet.MOST_BYTES))}
    text = trials_json(parse_trials(str(notes["trials"]).encode(), table))
    write_file(folder.folder / "trials.json", text)
    seals["trials.json"] = seal_of(text)
    seals |= _sound_seal(folder, record, "aside.parquet", lambda notes: None)
    confirmed = _sound_seal(folder, record, "confirmed.parquet", _confirmation_text)
    if confirmed:
        text = _confirmation_text(parquet.read_whole(folder.folder / "confirmed.parquet")[1])
        write_file(folder.folder / "confirmed.json", text)
        seals |= {**confirmed, "confirmed.json": seal_of(text)}
    return record.model_copy(update={"files": seals})


def _sound_seal(
    folder: StudyFolder, record: StudyRecord, name: str, check: Callable[[dict[str, str]], object]
) -> dict[str, FileSeal]:
    """Return the seal of a table that is sound and of this study, by its name; nothing where there is none."""
    path = folder.folder / name
    try:
        _, notes = parquet.read_whole(path)
        if notes["study"] != record.fingerprint:
            return {}
        check(notes)
    except (BatchlabError, KeyError, TypeError):
        return {}
    return {name: seal_of(read_bounded(path, parquet.MOST_BYTES))}


def _confirmation_text(notes: dict[str, str]) -> bytes:
    return notes["confirmation"].encode()


def _restore_text(folder: StudyFolder, record: StudyRecord, name: str, table: str, key: str) -> bool:
    """Write a JSON file again from the table that carries it, where that is what the record has sealed."""
    try:
        _, notes = parquet.read_whole(folder.folder / table)
        text = notes[key].encode()
    except (BatchlabError, KeyError, TypeError, AttributeError):
        return False
    if (record.files or {}).get(name) != seal_of(text):
        return False
    write_file(folder.folder / name, text)
    return True


def _is_link_to_folder(path: Path) -> bool:
    """Return whether a link takes the place of a folder of a lab."""
    return path.is_symlink() and path.suffix not in (".json", ".parquet", ".npz")


def _record(folder: StudyFolder) -> StudyRecord | None:
    try:
        return folder.record() if folder.has_record else None
    except LabError:
        return None


def _has_seals(folder: Path) -> bool:
    sweeps = [folder / "sweeps" / name for name in names_in(folder / "sweeps")]
    specs = [sweep / name for sweep in sweeps for name in ("sweep.json", "import.json")]
    records = [study / "study.json" for sweep in sweeps for study in study_places(sweep)]
    for path in (*specs, *records):
        try:
            if is_sealed(path):
                return True
        except LabError:
            continue
    return False
