"""Looking at every file of a lab: read whole, checked against its seal and against the files beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from batchlab.core.confirmation import REPLICATE_STRIDE, Confirmation
from batchlab.core.result import StudyResult
from batchlab.errors import VERIFY, DamagedError, LabError
from batchlab.files import TEMPORARY, read_json
from batchlab.search.samplers import draw_points
from batchlab.store.checkpoint import read_checkpoint
from batchlab.store.lab import Lab, check_belongs
from batchlab.store.seal import damaged
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_folder import OUTCOME, StudyFolder
from batchlab.store.study_record import StudyRecord
from batchlab.verify.findings import Finding, Verification

Report = Callable[[float], None]
"""Told how much of the lab has been looked at, from 0 to 1."""

Problems = Iterator[tuple[Path, LabError]]

AGAIN = "`batchlab verify --repair` sets it aside, and `batchlab run` trains what it held again"
RESTORED = "`batchlab verify --repair` writes it again from the file beside it"
SMALLER = "`batchlab verify --repair` sets it aside; nothing that is answered today rests on it"
RENAMED = "`batchlab verify --repair` gives it its name again where that is free, else sets it aside"
SPEC = "`batchlab verify --repair` sets it aside; `batchlab run` with the sweep's spec writes it again"
PACKS = ("parts", "checkpoints", "states")
FOLDERS = (*PACKS, "confirming", "growing", "replaced")
LAB_FILES = ("lab.json", "lock", "rejected.json")
SWEEP_FILES = ("sweep.json", "import.json", "best_so_far.arrow")
SET_ASIDE = "set-aside"


def verify_lab(folder: Path, *, deep: bool = False, report: Report = lambda share: None) -> Verification:
    """Look at all files of a lab; with `deep` also at what they say: points drawn again, outcomes computed again."""
    return _Look(Lab(folder), deep, report).verification


class _Look:
    """One pass over a lab."""

    def __init__(self, lab: Lab, deep: bool, report: Report) -> None:
        self._lab, self._deep, self._report = lab, deep, report
        self.verification = Verification(lab.folder, None)
        self._sizes = {path: _size(path) for path in _files(lab.folder)}
        self._total = max(1, sum(self._sizes.values()))
        self._format()
        self._lab_files()
        for name in lab.sweep_names():
            self._sweep(name)
        self.verification.findings = list(dict.fromkeys(self.verification.findings))

    def _format(self) -> None:
        try:
            self.verification.format = self._lab.check_format()
        except LabError as error:
            follows = "no command reads the lab until `batchlab verify --repair` has written it again"
            self._found(self._lab.folder / "lab.json", error, follows)

    def _lab_files(self) -> None:
        rejected = self._lab.folder / "rejected.json"
        if rejected.exists():
            try:
                read_json(rejected)
            except LabError as error:
                self._found(rejected, error, SMALLER)
        for path in self._lab.folder.iterdir():
            if path.name not in (*LAB_FILES, "sweeps", SET_ASIDE, "importing") and path.suffix != TEMPORARY:
                self.verification.foreign.append(path)

    def _sweep(self, name: str) -> None:
        folder, sweep = self._lab.folder / "sweeps" / name, None
        try:
            sweep = self._lab.sweep(name)
        except LabError as error:
            path = folder / ("import.json" if (folder / "import.json").exists() else "sweep.json")
            is_renamed = str(error).startswith(f"{folder} holds sweep")
            self._found(folder if is_renamed else path, error, RENAMED if is_renamed else SPEC)
        studies = [
            folder / name for folder in (folder, folder / "growing", folder / "replaced") for name in _sizes(folder)
        ]
        for missing in (
            sorted(set(sweep.batch_sizes) - set(map(int, _sizes(folder)))) if sweep and not sweep.spec else ()
        ):
            path = folder / str(missing)
            self._found(path, DamagedError(f"{path} is missing."), "import its archive again")
        for path in studies:
            self._study(StudyFolder(path, is_sealed=self._lab.is_sealed), name)
        known = {path.name for path in studies} | {*SWEEP_FILES, *FOLDERS}
        self.verification.foreign += [p for p in folder.iterdir() if p.name not in known and p.suffix != TEMPORARY]

    def _readable_sweep(self, name: str) -> StoredSweep | None:
        try:
            return self._lab.sweep(name)
        except LabError:
            return None

    def _study(self, folder: StudyFolder, name: str) -> None:
        self.verification.num_studies += 1
        for path, error in self._problems(folder, name):
            self._found(path, error, follows(path))
        self._count(folder.folder)

    def _problems(self, folder: StudyFolder, name: str) -> list[tuple[Path, LabError]]:
        """Return what is wrong with a study; looked at once more where a writer has changed it meanwhile."""
        version, sweep = folder.version, self._readable_sweep(name)
        problems = list(study_problems(folder, sweep, deep=self._deep))
        if problems and (folder.version != version or self._readable_sweep(name) != sweep):
            return self._problems(folder, name)
        return [(path, error) for path, error in problems if path.parent.name not in PACKS or path.exists()]

    def _found(self, path: Path, error: LabError, follows: str) -> None:
        self.verification.findings.append(Finding(path, str(error), follows))

    def _count(self, folder: Path) -> None:
        """Count the files below a folder as looked at; what is no file of a study is foreign."""
        for path, size in self._sizes.items():
            if folder in path.parents:
                self.verification.num_files += 1
                self.verification.num_bytes += size
                if path.parent == folder and path.name not in ("study.json", *OUTCOME) and path.suffix != TEMPORARY:
                    self.verification.foreign.append(path)
        self._report(self.verification.num_bytes / self._total)


def study_problems(folder: StudyFolder, sweep: StoredSweep | None, *, deep: bool = False) -> Problems:
    """Yield what of a study is not as it was written, file by file; `sweep` is None where its spec cannot be read."""
    path = folder.folder / "study.json"
    yield from _pack_problems(folder, sweep)
    try:
        if not folder.has_begun():
            _check_no_packs(folder)
            return
        record = folder.record()
    except LabError as error:
        yield path, error
        return
    try:
        if sweep is not None:
            check_belongs(folder, record, sweep, _batch_size(folder))
        if deep:
            _check_points(path, record)
    except LabError as error:
        yield folder.folder, error
        return
    try:
        folder.check_listed(record)
    except LabError as error:
        yield path, error
        return
    if record.state == "finished":
        yield from _outcome_problems(folder, record, deep)


def _check_no_packs(folder: StudyFolder) -> None:
    """Raise DamagedError where packs were trained for a study that has no study.json: it is written before them."""
    if folder.is_sealed and has_packs(folder):
        raise DamagedError(f"{folder.folder / 'study.json'} is missing beside packs of its study. {VERIFY}")


def has_packs(folder: StudyFolder) -> bool:
    """Return whether packs of a study lie in its folder.

    What a kill leaves of one that begins to grow are none: its states, and parts with what it knew before.
    """
    return any(any((folder.folder / kind).glob("trials-*")) for kind in ("parts", "checkpoints"))


def _outcome_problems(folder: StudyFolder, record: StudyRecord, deep: bool) -> Problems:
    """Yield what is wrong with the files of a finished study, then, where nothing is, with what they say together."""
    names = record.files if folder.is_sealed else [n for n in OUTCOME if (folder.folder / n).exists()]
    found = False
    for name in names or ():
        try:
            folder.check_file(name, record)
        except LabError as error:
            found = True
            yield folder.folder / name, error
    if found:
        return
    try:
        result = folder.result(record=record)
        if deep:
            _check_outcome(folder.folder, record, result)
            if result.confirmation is not None:
                _check_replicates(folder, result.confirmation)
    except LabError as error:
        yield _named(folder, error), error


def _named(folder: StudyFolder, error: LabError) -> Path:
    """Return the file of a study that an error names; its study.json where it names none."""
    paths = (folder.folder / name for name in OUTCOME)
    return next((path for path in paths if str(error).startswith(str(path))), folder.folder / "study.json")


def _pack_problems(folder: StudyFolder, sweep: StoredSweep | None) -> Problems:
    """Yield the packs and checkpoints of a study in training that cannot be gone on from."""
    study = _fingerprint(folder, sweep) if folder.is_sealed else None
    for place in (folder, folder.confirming):
        for path in sorted((place.folder / "parts").glob("*.parquet")):
            try:
                place.part(path, study)
            except LabError as error:
                yield path, error
        for path in sorted([*place.folder.glob("checkpoints/*.npz"), *place.folder.glob("states/*.npz")]):
            try:
                read_checkpoint(path, study)
            except LabError as error:
                yield path, error


def _fingerprint(folder: StudyFolder, sweep: StoredSweep | None) -> str | None:
    """Return the fingerprint that the study at this place should have; None where nobody can tell."""
    if sweep is not None and sweep.spec is not None and _batch_size(folder) in sweep.batch_sizes:
        return sweep.spec.study(_batch_size(folder)).fingerprint
    return None


def _batch_size(folder: StudyFolder) -> int:
    return int(folder.folder.name)


def _check_points(path: Path, record: StudyRecord) -> None:
    """Raise DamagedError where the points are not those that the sampler draws."""
    if record.study is not None and record.points != tuple(draw_points(record.study)):
        raise damaged(path, "its points are not those that its sampler draws")


def _check_outcome(folder: Path, record: StudyRecord, result: StudyResult) -> None:
    """Raise DamagedError where the steps to the goal, computed again, are not those of the record."""
    if record.study is None:
        return
    goal, steps = record.study.goal, []
    for trial in result.first_complete():
        curve = result.measurements.curve(trial.trial_id)
        met = curve.steps[goal.is_met(curve.metrics[goal.metric])]
        steps += met[:1].tolist()
    if min(steps, default=None) != record.best_steps:
        raise damaged(folder / "study.json", f"the goal was met after {min(steps, default=None)} steps, not as it says")


def _check_replicates(folder: StudyFolder, confirmation: Confirmation) -> None:
    """Raise DamagedError where the table of replicates has others than confirmed.json tells of."""
    rows = folder.replicates()
    ends = {int(number): int(rows.step[rows.trial_id == number].max()) for number in set(rows.trial_id.tolist())}
    told = {each.replicate * REPLICATE_STRIDE + each.trial_id: each.last_step for each in confirmation.replicates}
    if ends.keys() != told.keys() or any(ends[number] > told[number] for number in ends):
        raise damaged(folder.folder / "confirmed.parquet", "its replicates are not those of confirmed.json")


def follows(path: Path) -> str:
    """Return what a file that is not sound means for the lab."""
    if path.name in ("study.json", "trials.json", "confirmed.json"):
        return RESTORED
    return SMALLER if path.name == "aside.parquet" else AGAIN


def _sizes(folder: Path) -> list[str]:
    """Return the names in a folder that are batch sizes, as batchlab writes them."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted((name for name in names if name.isdecimal() and str(int(name)) == name), key=int)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink():
            if path.name != SET_ASIDE:
                yield from _files(path)
        else:
            yield path


def _size(path: Path) -> int:
    return path.lstat().st_size
