"""A user's own edit, accepted: the file gets a new seal once all that it must agree with has been looked at."""

from __future__ import annotations

from pathlib import Path

from batchlab.core.confirmation import Confirmation
from batchlab.core.sweep import Sweep
from batchlab.errors import InputError, SpecError
from batchlab.files import parse_json, read_bounded
from batchlab.store import parquet
from batchlab.store.belonging import check_belongs
from batchlab.store.consistency import check_files, check_outcome
from batchlab.store.lab import Lab
from batchlab.store.seal import KEY, seal_of
from batchlab.store.stored_sweep import ImportRecord, StoredSweep
from batchlab.store.study_folder import MOST_BYTES, OUTCOME, StudyFolder
from batchlab.store.study_record import StudyRecord
from batchlab.store.sweep_folder import folder_batch_size, study_places
from batchlab.store.throughput import FOLDER as THROUGHPUTS
from batchlab.store.throughput import ThroughputRecord, save_throughput
from batchlab.store.trial_records import parse_trials


def accept_edit(lab: Lab, path: Path) -> None:
    """Give a file of a lab that was edited a new seal; InputError where it cannot be accepted, and why."""
    try:
        parts = (path.parent.resolve() / path.name).relative_to(lab.folder.resolve()).parts
    except (ValueError, OSError, RuntimeError):  # a link that leads to itself is the last
        raise InputError(f"{path} is not in lab {lab.folder}. Name a file of it.") from None
    if not lab.is_sealed:
        raise InputError(f"Lab {lab.folder} has no seals yet: `batchlab verify --repair` brings it up to date.")
    try:
        with lab.locked():
            if len(parts) == 2 and parts[0] == THROUGHPUTS and path.suffix == ".json":
                _accept_throughput(lab, lab.folder.joinpath(*parts))
                return
            if parts[:1] != ("sweeps",):
                raise InputError(f"{path} is no file of a sweep: there is nothing to accept.")
            if len(parts) == 3 and parts[2] in ("sweep.json", "import.json"):
                _accept_spec(lab, parts[1], lab.folder.joinpath(*parts))
            elif len(parts) == 4 and parts[3] in ("study.json", *OUTCOME):
                _accept_file(lab, parts[1], lab.folder.joinpath(*parts))
            else:
                raise InputError(f"{path} is no file of a sweep or a finished study: there is nothing to accept.")
    except SpecError as error:
        raise InputError(f"{path} cannot be accepted: {error}") from None


def _accept_throughput(lab: Lab, path: Path) -> None:
    record = ThroughputRecord.parse(_unsealed(path), str(path))
    if record.file_name != path.name:
        raise InputError(f"{path} is of another workload or machine now: its name should be {record.file_name}.")
    save_throughput(lab.folder, record)


def _accept_spec(lab: Lab, name: str, path: Path) -> None:
    data = _unsealed(path)
    if path.name == "import.json":
        record = ImportRecord.parse(data, str(path))
        _check_studies(lab, name, StoredSweep.imported(record))
        lab.save_import(record)
    else:
        sweep = Sweep.parse(data, str(path))
        _check_studies(lab, name, StoredSweep.run(sweep))
        lab.save_spec(sweep)


def _check_studies(lab: Lab, name: str, sweep: StoredSweep) -> None:
    """Raise LabError where a stored study is not of the sweep as it was edited."""
    if sweep.name != name:
        raise InputError(f"The sweep is called {sweep.name}, its folder {name}. Give both one name.")
    for path in study_places(lab.folder / "sweeps" / name):
        study = lab.study_folder(name, int(path.name))
        if study.has_record:
            check_belongs(study, study.record(), sweep, int(path.name))


def _accept_file(lab: Lab, name: str, path: Path) -> None:
    batch_size = folder_batch_size(path.parent.name)
    if batch_size is None:
        raise InputError(f"{path.parent} is no folder of a study: there is nothing to accept.")
    folder = lab.study_folder(name, batch_size)
    if path.name == "study.json":
        record = StudyRecord.parse(_unsealed(path), str(path))
    else:
        record = folder.record()
        record = record.with_files({path.name: seal_of(read_bounded(path, parquet.MOST_BYTES))})
    check_belongs(folder, record, lab.sweep(name), batch_size)
    if record.state == "finished":
        _check_together(folder, record)
    edited = tuple(sorted({*record.edited, path.name}))
    folder.save_record(record.model_copy(update={"edited": edited}))


def _unsealed(path: Path) -> object:
    data = parse_json(read_bounded(path, MOST_BYTES), path)
    if isinstance(data, dict):
        data.pop(KEY, None)
    return data


def _check_together(folder: StudyFolder, record: StudyRecord) -> None:
    """Raise LabError where the files as they are now do not belong together."""
    trials = parse_trials(read_bounded(folder.folder / "trials.json", MOST_BYTES), folder.folder / "trials.json")
    measurements = parquet.read_measurements(folder.folder / "measurements.parquet")
    check_files(folder.folder, record, trials, measurements, _confirmation(folder, record))
    check_outcome(folder.folder, record, record.result(trials, measurements))


def _confirmation(folder: StudyFolder, record: StudyRecord) -> Confirmation | None:
    path = folder.folder / "confirmed.json"
    return Confirmation.parse(_unsealed(path), str(path)) if path.name in (record.files or {}) else None
