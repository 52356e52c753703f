"""Making a damaged lab one that `batchlab run` completes: nothing is deleted, every sound part is kept.

What cannot be trusted goes to a folder of its own in the lab, `set-aside/TIME`, at the place that it had. What can be
written again from the files beside it is; of the rest the study forgets that it had it, so that the next run trains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from batchlab.core.growth import fixed_digest
from batchlab.core.sweep import Sweep
from batchlab.errors import BatchlabError, LabError, NewerLabError, OlderSpecError, UnreadableError
from batchlab.files import check_regular, is_folder, is_there, make_folder, read_json, write_file, write_json
from batchlab.published.goals import paper_goal
from batchlab.search.samplers import draw_points
from batchlab.store.belonging import check_belongs
from batchlab.store.lab import Lab
from batchlab.store.lock import hold_lock
from batchlab.store.migrations import FORMAT, lacks_seals, migrate, upgraded_sweep
from batchlab.store.seal import read_sealed
from batchlab.store.set_aside import SetAside
from batchlab.store.stored_sweep import ImportRecord, StoredSweep
from batchlab.store.study_folder import CONFIRMED, OUTCOME, StudyFolder
from batchlab.store.study_record import StudyRecord
from batchlab.store.sweep_folder import study_places
from batchlab.tidying import move
from batchlab.verify.findings import Finding, Verification, problem_of
from batchlab.verify.lab import Report, verify_lab
from batchlab.verify.restored import Restored, restore_text
from batchlab.verify.study import PACKS, has_packs, study_problems

MOST_ROUNDS = 5
CARRIED_BY: dict[Literal["trials.json", "confirmed.json"], str] = {
    "trials.json": "measurements.parquet",
    "confirmed.json": "confirmed.parquet",
}
ASIDE = "before-0"
"""The part that holds trials aside while their study is searched again."""


def repair_lab(
    folder: Path, *, deep: bool = False, report: Report = lambda share: None
) -> tuple[list[str], Verification]:
    """Repair a lab; return what was done, a sentence each, and what a second look found."""
    repair = _Repair(folder)
    repair.lock()
    with hold_lock(folder / "lock"):
        repair.format()
        found = verify_lab(folder, deep=deep, report=lambda share: report(share / 2))
        _check_readable(found)
        for _ in range(MOST_ROUNDS):  # what was moved to its place may have damages of its own
            if not repair.mend_all(found.findings):
                break
            found = verify_lab(folder, deep=deep, report=lambda share: report(0.5 + share / 2))
        return repair.done, found


def _check_readable(found: Verification) -> None:
    """Raise UnreadableError where the system did not let everything be read: then nothing is set aside."""
    for finding in found.findings:
        if finding.is_unreadable:
            raise UnreadableError(f"{finding.problem} Nothing is set aside before all of the lab can be read.")


class _Repair:
    """One repair: where things are set aside, and what was done."""

    def __init__(self, folder: Path) -> None:
        self._lab, self.done = Lab(folder), list[str]()
        self._aside = SetAside(folder)
        self._mended: set[Path] = set()
        self._strangers: list[Path] = []

    def lock(self) -> None:
        """Set something aside that keeps everyone from locking the lab: a link, or a folder, in the lock's place."""
        path = self._lab.folder / "lock"
        try:
            check_regular(path)
        except UnreadableError:
            raise
        except LabError as error:
            self.set_aside(path, problem_of(error))

    def format(self) -> None:
        """Write lab.json where it does not tell the format, and bring a lab of an older one up to date."""
        path = self._lab.folder / "lab.json"
        try:
            version = self._lab.check_format()
        except (NewerLabError, UnreadableError):
            raise
        except LabError as error:
            self.set_aside(path, problem_of(error))
            version = 1 if lacks_seals(self._lab.folder) else FORMAT
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
        if _is_link_to_folder(finding.path):
            self.set_aside(finding.path, finding.problem)
        elif len(parts) == 2 and parts[0] == "sweeps":
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
            # Also of a study whose record is still to be mended.
            sizes = tuple(study.batch_size for study in self._studies(name))
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
        folder, sweep = StudyFolder(path), self._lab.readable_sweep(name)
        errors = dict(study_problems(folder, sweep, deep=True))
        if path in errors:
            self._mend_stranger(folder, sweep, errors[path])
            return
        problems = {found: problem_of(error) for found, error in errors.items()}
        for found, problem in problems.items():
            if found.parent.name in PACKS or _is_link_to_folder(found):
                self.set_aside(found, problem)
        names = ("study.json", *OUTCOME)
        bad = {path.name: why for path, why in problems.items() if path.parent == folder.folder and path.name in names}
        restored = Restored.of(folder, sweep) if bad.keys() & {"study.json", "measurements.parquet"} else None
        if restored is not None:
            self._restore(folder, restored, bad)
        elif "study.json" in bad:
            self._forget(folder, sweep, bad)
        elif bad:
            self._mend_outcome(folder, folder.record(), bad)

    def _mend_stranger(self, folder: StudyFolder, sweep: StoredSweep | None, error: LabError) -> None:
        """Set a study aside that is another than its sweep's; one that is only more of it waits for the larger spec."""
        if isinstance(error, OlderSpecError):
            return
        if restored := Restored.of(folder, sweep):  # only its study.json is another's
            self._restore(folder, restored, {"study.json": problem_of(error)})
        else:
            place = self.set_aside(folder.folder, problem_of(error))
            self._strangers += [place] if place else []

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
            sweep, home = self._lab.readable_sweep(name), self._lab.study_folder(name, size).folder
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
        size = folder.batch_size
        if sweep is not None and sweep.spec is not None and size in sweep.batch_sizes and has_packs(folder):
            study = sweep.spec.study(size)
            points = tuple(draw_points(study))
            folder.save_record(StudyRecord(study=study, points=points, sweep=fixed_digest(sweep.spec)))
            self.done.append(f"{folder.folder / 'study.json'}: written again; `batchlab run` goes on from its packs")

    def _mend_outcome(self, folder: StudyFolder, record: StudyRecord, bad: dict[str, str]) -> None:
        """Write again what a sound file beside it carries; forget what cannot be."""
        self._set_aside_files(folder, bad)
        for name, table in CARRIED_BY.items():
            if name in bad and table not in bad and (seal := restore_text(folder, name)):
                self.done.append(f"{folder.folder / name}: written again from {table}; only it knew times and machines")
                record = record.with_files(seal)
                del bad[name]
        if bad.keys() & set(CONFIRMED):
            self._set_aside_files(folder, {name: f"{name} beside it is not sound" for name in CONFIRMED})
            self.done.append(f"{folder.folder}: no longer confirmed; `batchlab run` confirms it again")
        record = record.without_files({*bad, *(CONFIRMED if bad.keys() & set(CONFIRMED) else ())})
        if not bad.keys() & {"trials.json", "measurements.parquet"}:
            self._replace_record(folder, record, "its files are others now")
        elif record.study is None:
            self.set_aside(folder.folder, "an imported study that is not whole")
            self.done.append(f"{folder.folder}: import its archive again")
        else:
            self._reopen(folder, record)

    def _reopen(self, folder: StudyFolder, record: StudyRecord) -> None:
        """Let a study be searched again; trials aside go on as a part of it, and what was confirmed will fit again."""
        if self._go_on_growing(folder):
            return
        names = ("trials.json", "measurements.parquet")
        self._set_aside_files(folder, dict.fromkeys(names, "its study is searched again"))
        kept = {name: seal for name, seal in (record.files or {}).items() if name in CONFIRMED}
        if (folder.folder / "aside.parquet").exists():
            make_folder(folder.part_path(ASIDE).parent)
            move(folder.folder / "aside.parquet", folder.part_path(ASIDE))
        self._replace_record(folder, record.begun_anew().with_files(kept), "its study is searched again")
        self.done.append(f"{folder.folder}: `batchlab run` trains it again")

    def _replace_record(self, folder: StudyFolder, record: StudyRecord, why: str) -> None:
        """Write study.json anew; as it was, it is kept beside what was set aside."""
        self._aside.keep(folder.folder / "study.json", why)
        folder.save_record(record)

    def _go_on_growing(self, folder: StudyFolder) -> bool:
        """Let the study that was growing beside one take its place: it holds all that was known, and more."""
        growing = folder.growing
        if not growing.has_record or list(study_problems(growing, self._lab.readable_sweep(folder.folder.parent.name))):
            return False
        self.set_aside(folder.folder, "its study was growing, and the larger one is sound")
        move(growing.folder, folder.folder)
        self.done.append(f"{folder.folder}: the larger study that was growing took its place")
        return True

    def _set_aside_files(self, folder: StudyFolder, names: dict[str, str]) -> None:
        for name, problem in names.items():
            self.set_aside(folder.folder / name, problem)

    def set_aside(self, path: Path, problem: str) -> Path | None:
        """Move a file, or a folder, out of the way and return where it is; None where it was not there."""
        place = self._aside.take(path, problem)
        if place is not None:
            self.done.append(f"{path}: set aside in {self._aside.folder}")
        return place


def _is_link_to_folder(path: Path) -> bool:
    """Return whether a link takes the place of a folder of a lab."""
    return path.is_symlink() and path.suffix not in (".json", ".parquet", ".safetensors", ".npz")


def _spec_in(folder: Path) -> tuple[Path, str]:
    """Return the file that tells of a sweep, and the name that it gives it; its folder's where it tells none."""
    path = folder / ("sweep.json" if is_there(folder / "sweep.json") else "import.json")
    with suppress(LabError):
        data = read_json(path)
        if isinstance(data, dict) and isinstance(data.get("name"), str):
            return path, str(data["name"])
    return path, folder.name


def _record(folder: StudyFolder) -> StudyRecord | None:
    try:
        return folder.record() if folder.has_record else None
    except LabError:
        return None
