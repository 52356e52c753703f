"""Making a damaged lab one that `batchlab run` completes: nothing is deleted, every sound part is kept.

What cannot be trusted goes to a folder of its own in the lab, `set-aside/TIME`, at the place that it had. What can be
written again from the files beside it is; of the rest the study forgets that it had it, so that the next run trains it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from batchlab.core.confirmation import Confirmation
from batchlab.core.growth import fixed_digest
from batchlab.core.sweep import Sweep
from batchlab.errors import BatchlabError, LabError
from batchlab.files import make_folder, read_json, storage_error, write_file, write_json
from batchlab.published.goals import paper_goal
from batchlab.search.samplers import draw_points
from batchlab.store import parquet
from batchlab.store.consistency import check_files
from batchlab.store.lab import ASKS_FOR_MORE, Lab, check_belongs
from batchlab.store.lock import hold_lock
from batchlab.store.migrations import FORMAT, migrate, upgraded_sweep
from batchlab.store.seal import FileSeal, is_sealed, read_sealed, seal_of
from batchlab.store.stored_sweep import ImportRecord, StoredSweep
from batchlab.store.study_folder import CONFIRMED, OUTCOME, StudyFolder, parse_trials, trials_json
from batchlab.store.study_record import StudyRecord
from batchlab.verify.check import SET_ASIDE, Report, has_packs, study_problems, verify_lab
from batchlab.verify.findings import Finding, Verification

MOST_ROUNDS = 5
ASIDE = "before-0"
"""The part that holds trials aside while their study is searched again."""


def repair_lab(
    folder: Path, *, deep: bool = False, report: Report = lambda share: None
) -> tuple[list[str], Verification]:
    """Repair a lab; return what was done, a sentence each, and what a second look found."""
    with hold_lock(folder / "lock"):
        repair = _Repair(folder)
        repair.format()
        found = verify_lab(folder, deep=deep, report=lambda share: report(share / 2))
        for _ in range(MOST_ROUNDS):  # what was moved to its place may have damages of its own
            if not repair.mend_all(found.findings):
                break
            found = verify_lab(folder, deep=deep, report=lambda share: report(0.5 + share / 2))
        repair.close()
        return repair.done, found


class _Repair:
    """One repair: where things are set aside, and what was done."""

    def __init__(self, folder: Path) -> None:
        self._lab, self.done = Lab(folder), list[str]()
        self._aside = _free_folder(folder / SET_ASIDE)
        self._why: list[dict[str, str]] = []
        self._mended: set[Path] = set()
        self._strangers: list[Path] = []

    def format(self) -> None:
        """Write lab.json where it does not tell the format, and bring a lab of an older one up to date."""
        path = self._lab.folder / "lab.json"
        try:
            version = self._lab.check_format()
        except LabError as error:
            if "newer" in str(error):
                raise
            self.set_aside(path, str(error))
            version = FORMAT if _has_seals(self._lab.folder) else 1
            write_json(path, {"format": version})
            self.done.append(f"{path}: written again, as format {version}")
        if version < FORMAT:
            migrate(self._lab.folder, version)
            self.done.append(f"{self._lab.folder}: brought from format {version} to {FORMAT}")
        self._lab.check_format()

    def mend_all(self, findings: Sequence[Finding]) -> bool:
        """Do what can be done about some findings; return whether anything was."""
        self._mended, self._strangers, before = set(), [], len(self.done)
        for finding in findings:
            self._mend(finding)
        self._put_back()
        return len(self.done) > before

    def _mend(self, finding: Finding) -> None:
        parts = finding.path.relative_to(self._lab.folder).parts
        if len(parts) == 2 and parts[0] == "sweeps":
            self._mend_name(finding)
        elif len(parts) < 3 or parts[0] != "sweeps":
            self.set_aside(finding.path, finding.problem)
        elif parts[2] in ("sweep.json", "import.json"):
            self._mend_spec(parts[1], finding)
        else:
            depth = 4 if parts[2] in ("growing", "replaced") else 3
            self._mend_study(parts[1], self._lab.folder.joinpath(*parts[:depth]))

    def _mend_name(self, finding: Finding) -> None:
        """Give a sweep its own name again where that is free; of one that is there twice, or a spec of others, less."""
        spec, name = _spec_in(finding.path)
        place = self._lab.folder / "sweeps" / name
        if not self._is_spec_of(spec, finding.path):
            self._mend_spec(finding.path.name, replace(finding, path=spec))
        elif place.exists() or place.parent != finding.path.parent:
            self.set_aside(finding.path, finding.problem)
        else:
            move(finding.path, place)
            self.done.append(f"{finding.path}: named {place.name} again, which is the name of its sweep")

    def _is_spec_of(self, spec: Path, folder: Path) -> bool:
        """Return whether the studies in a folder are those of a spec, all that can be read."""
        records = [record for record in map(_record, self._studies(folder.name)) if record is not None]
        with suppress(BatchlabError):
            data = read_sealed(spec)
            if spec.name == "import.json":
                return all(record.workload == data["workload"] for record in records)
            digest = fixed_digest(Sweep.parse(upgraded_sweep(data), str(spec)))
            return all(record.sweep == digest for record in records)
        return False

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
        folders = (self._lab.folder / "sweeps" / name).iterdir()
        return [StudyFolder(folder) for folder in sorted(folders) if folder.name.isdecimal()]

    def _mend_study(self, name: str, path: Path) -> None:
        """Mend all that is wrong with one study, once."""
        if path in self._mended:
            return
        self._mended.add(path)
        folder, sweep = StudyFolder(path), self._sweep(name)
        problems = {found: str(error) for found, error in study_problems(folder, sweep, deep=True)}
        if path in problems:
            self._mend_stranger(folder, sweep, problems[path])
            return
        for found, problem in problems.items():
            if found.parent.name in ("parts", "checkpoints", "states"):
                self.set_aside(found, problem)
        bad = {found.name: problem for found, problem in problems.items() if found.parent == path}
        restored = Restored.of(folder, sweep) if bad.keys() & {"study.json", "measurements.parquet"} else None
        if restored is not None:
            self._restore(folder, restored, bad)
        elif "study.json" in bad:
            self._forget(folder, sweep, bad)
        elif bad:
            self._mend_outcome(folder, folder.record(), bad)

    def _sweep(self, name: str) -> StoredSweep | None:
        try:
            return self._lab.sweep(name)
        except LabError:
            return None

    def _mend_stranger(self, folder: StudyFolder, sweep: StoredSweep | None, problem: str) -> None:
        """Set a study aside that is another than its sweep's; one that is only more of it waits for the larger spec."""
        if ASKS_FOR_MORE in problem:
            return
        if restored := Restored.of(folder, sweep):  # only its study.json is another's
            self._restore(folder, restored, {"study.json": problem})
        else:
            self._strangers.append(self.set_aside(folder.folder, problem))

    def _put_back(self) -> None:
        """Give studies that were found in another place their own again, where that is free."""
        for place in self._strangers:
            record = _record(StudyFolder(place))
            home = None if record is None else self._home(StudyFolder(place), record)
            if home is not None:
                move(place, home)
                self.done.append(f"{home}: put back, it lay in the place of another study")

    def _home(self, folder: StudyFolder, record: StudyRecord) -> Path | None:
        """Return the place where a study belongs; None where there is none, or something is there."""
        size = record.facts.batch_size
        for name in self._lab.sweep_names():
            sweep, home = self._sweep(name), self._lab.study_folder(name, size).folder
            if sweep is None or size not in sweep.batch_sizes or home.exists():
                continue
            with suppress(LabError):
                check_belongs(folder, record, sweep, size)
                return home
        return None

    def _restore(self, folder: StudyFolder, restored: Restored, bad: dict[str, str]) -> None:
        """Write study.json again, and what else measurements.parquet and confirmed.parquet carry."""
        bad.pop("measurements.parquet", None)
        self._set_aside_files(folder, bad)
        self.set_aside(folder.folder / "study.json", "it was written again from measurements.parquet")
        for name in OUTCOME:
            if not restored.holds(folder.folder / name):
                self.set_aside(folder.folder / name, "it is not as measurements.parquet tells")
        for name, text in restored.texts.items():
            write_file(folder.folder / name, text)
        folder.save_record(restored.record)
        self.done.append(f"{folder.folder / 'study.json'}: written again from measurements.parquet")

    def _forget(self, folder: StudyFolder, sweep: StoredSweep | None, bad: dict[str, str]) -> None:
        """Set the outcome of a study aside for which nothing vouches any more; its packs, if any, are gone on from."""
        if self._go_on_growing(folder):
            return
        self._set_aside_files(folder, bad)
        self._set_aside_files(folder, dict.fromkeys(OUTCOME, "without a study.json nothing vouches for it"))
        size = int(folder.folder.name)
        if sweep is not None and sweep.spec is not None and size in sweep.batch_sizes and has_packs(folder):
            study = sweep.spec.study(size)
            points = tuple(draw_points(study))
            folder.save_record(StudyRecord(study=study, points=points, sweep=fixed_digest(sweep.spec)))
            self.done.append(f"{folder.folder / 'study.json'}: written again; `batchlab run` goes on from its packs")

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
        """Let a study be searched again; trials aside go on as a part of it, and what was confirmed will fit again."""
        if self._go_on_growing(folder):
            return
        self._set_aside_files(
            folder, dict.fromkeys(("trials.json", "measurements.parquet"), "its study is searched again")
        )
        kept = {name: seal for name, seal in (record.files or {}).items() if name in CONFIRMED}
        if (folder.folder / "aside.parquet").exists():
            make_folder(folder.part_path(ASIDE).parent)
            move(folder.folder / "aside.parquet", folder.part_path(ASIDE))
        folder.save_record(record.begun_anew().with_files(kept))
        self.done.append(f"{folder.folder}: `batchlab run` trains it again")

    def _go_on_growing(self, folder: StudyFolder) -> bool:
        """Let the study that was growing beside one take its place: it holds all that was known, and more."""
        growing = folder.growing
        if not growing.has_record or list(study_problems(growing, self._sweep(folder.folder.parent.name))):
            return False
        self.set_aside(folder.folder, "its study was growing, and the larger one is sound")
        move(growing.folder, folder.folder)
        self.done.append(f"{folder.folder}: the larger study that was growing took its place")
        return True

    def _set_aside_files(self, folder: StudyFolder, names: dict[str, str]) -> None:
        for name, problem in names.items():
            self.set_aside(folder.folder / name, problem)

    def set_aside(self, path: Path, problem: str) -> Path:
        """Move a file, or a folder, out of the way and return where it is; what is not there is left so."""
        place = _free(self._aside / path.relative_to(self._lab.folder))
        if not (path.exists() or path.is_symlink()):
            return place
        make_folder(place.parent)
        move(path, place)
        self._why.append({"path": str(path.relative_to(self._lab.folder)), "problem": problem})
        self.done.append(f"{path}: set aside in {self._aside}")
        return place

    def close(self) -> None:
        """Write beside what was set aside why it was."""
        if self._why:
            write_json(self._aside / "why.json", self._why)


@dataclass(frozen=True)
class Restored:
    """What the tables of a finished study prove of it, whatever its other files say."""

    record: StudyRecord
    """With the seals of all files."""

    texts: dict[str, bytes]
    """The files that the tables carry, by name."""

    @classmethod
    def of(cls, folder: StudyFolder, sweep: StoredSweep | None) -> Restored | None:
        """Return what can be restored; None where the tables do not prove it, or prove another study."""
        table = folder.folder / "measurements.parquet"
        try:
            rows, notes = parquet.read_whole(table)
            record = StudyRecord.parse(notes["record"], str(table))
            trials = parse_trials(notes["trials"].encode(), table)
            if sweep is not None:
                check_belongs(folder, record, sweep, int(folder.folder.name))
            check_files(folder.folder, record, trials, rows, None)
        except (BatchlabError, KeyError, TypeError, AttributeError):
            return None
        seals = {table.name: seal_of(table.read_bytes())}
        seals |= _proved(folder, record, "aside.parquet")
        texts = {"trials.json": trials_json(trials)}
        if confirmed := _proved(folder, record, "confirmed.parquet"):
            seals |= confirmed
            texts["confirmed.json"] = _confirmation(folder)
        seals |= {name: seal_of(text) for name, text in texts.items()}
        return cls(record.with_files(seals), texts)

    def holds(self, path: Path) -> bool:
        """Return whether a file is as it would be restored."""
        seal = (self.record.files or {}).get(path.name)
        return path.is_file() and seal is not None and seal_of(path.read_bytes()) == seal


def _proved(folder: StudyFolder, record: StudyRecord, name: str) -> dict[str, FileSeal]:
    """Return the seal of a table that is sound and of this study, by its name; nothing where there is none."""
    path = folder.folder / name
    try:
        notes = parquet.read_whole(path)[1]
        if notes["study"] != record.fingerprint:
            return {}
        if name == "confirmed.parquet":
            Confirmation.parse(json.loads(_confirmation(folder)), str(path))
    except (BatchlabError, KeyError, TypeError, AttributeError, ValueError):
        return {}
    return {name: seal_of(path.read_bytes())}


def _confirmation(folder: StudyFolder) -> bytes:
    text: str = parquet.read_whole(folder.folder / "confirmed.parquet")[1]["confirmation"]
    return text.encode()


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


def move(path: Path, place: Path) -> None:
    """Move a file or a folder to another place of the lab."""
    try:
        path.rename(place)
    except OSError as error:
        raise storage_error(place, error) from error


def _spec_in(folder: Path) -> tuple[Path, str]:
    """Return the file that tells of a sweep, and the name that it gives it; its folder's where it tells none."""
    path = folder / ("sweep.json" if (folder / "sweep.json").exists() else "import.json")
    with suppress(LabError):
        data = read_json(path)
        if isinstance(data, dict) and isinstance(data.get("name"), str):
            return path, str(data["name"])
    return path, folder.name


def _free(place: Path) -> Path:
    """Return a place where nothing is: this, or with a number behind its name."""
    names = (place.name if number == 1 else f"{place.name}.{number}" for number in count(1))
    paths = (place.with_name(name) for name in names)
    return next(path for path in paths if not (path.exists() or path.is_symlink()))


def _record(folder: StudyFolder) -> StudyRecord | None:
    try:
        return folder.record() if folder.has_record else None
    except LabError:
        return None


def _has_seals(folder: Path) -> bool:
    for path in (*folder.glob("sweeps/*/*.json"), *folder.glob("sweeps/*/*/study.json")):
        try:
            if is_sealed(path):
                return True
        except LabError:
            continue
    return False


def _free_folder(folder: Path) -> Path:
    """Return a folder for what is set aside now: named by the time, and by a number where there is one already."""
    now = datetime.now(UTC).strftime("%Y-%m-%d-%H%M%S")
    names = (now if number == 1 else f"{now}-{number}" for number in count(1))
    return next(folder / name for name in names if not (folder / name).exists())
