"""Any lab in the published layout, so that the authors' own loader reads it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from batchlab.core.measurement import Measurements
from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial
from batchlab.errors import InputError
from batchlab.files import make_folder, write_file
from batchlab.store.archive.layout import EXTRA, parameter_configs
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_record import StudyRecord


def export_lab(lab: Lab, out: Path, workload: str | None = None) -> Iterator[Path]:
    """Write the finished studies of a lab, or of one workload, below `out`; yield the folder of each."""
    sweeps = [lab.find(workload)] if workload else lab.sweeps()
    _check_distinct(sweeps)
    for sweep in sweeps:
        results = lab.results(sweep)
        if results.problems:
            raise results.problems[0]
        for result in results.results:
            folder = out / sweep.workload / str(result.batch_size)
            _export_study(folder, sweep, lab.study_folder(sweep.name, result.batch_size).record(), result)
            yield folder


def _check_distinct(sweeps: list[StoredSweep]) -> None:
    workloads = [sweep.workload for sweep in sweeps]
    for sweep in sweeps:
        if workloads.count(sweep.workload) > 1:
            raise InputError(
                f"Two sweeps of this lab have the workload {sweep.workload}; the published layout has room for one. "
                "Export from labs with one sweep for each workload."
            )


def _export_study(folder: Path, sweep: StoredSweep, record: StudyRecord, result: StudyResult) -> None:
    make_folder(folder)
    dataset, model, optimizer = sweep.workload.rsplit("/", 2)
    imported = record.imported
    study: dict[str, Any] = {
        "batch_size": result.batch_size,
        "dataset": dataset.rsplit("/", 1)[-1],
        "early_stopping": imported.early_stopping if imported else False,
        "model": model,
        "optimizer": optimizer,
        "parameter_configs": parameter_configs(result.search_space),
        "train_steps": imported.train_steps if imported else result.end_step,
    }
    if sweep.spec is not None:
        study[EXTRA] = {"sweep": sweep.spec.plain(), "record": record.plain()}
    write_file(folder / "study.json", _json(study))
    texts = _csv_texts(result.measurements)
    for trial in result.trials:
        write_file(folder / str(trial.trial_id) / "metadata.json", _json(_metadata(trial)))
        text = texts.get(trial.trial_id, b"")
        write_file(folder / str(trial.trial_id) / "measurements.csv", _header(result.measurements) + text)


def _metadata(trial: Trial) -> dict[str, Any]:
    extra = trial.model_dump(
        mode="json", exclude_defaults=True, exclude={"trial_id", "status", "metaparameters", "last_step"}
    )
    return {
        **({EXTRA: extra} if extra else {}),
        "_internal_study_name": "batchlab",
        "_internal_trial_id": trial.trial_id,
        "parameters": dict(sorted(trial.metaparameters.items())),
        "status": str(trial.status),
        "steps": trial.last_step,
        "trial_id": trial.trial_id,
    }


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, indent=2, sort_keys=True).encode()


def _header(measurements: Measurements) -> bytes:
    return ",".join(["step", *measurements.metrics]).encode() + b"\n"


def _csv_texts(measurements: Measurements) -> dict[int, bytes]:
    """Return the rows of every trial as CSV: all at once, then cut at the line ends."""
    out = io.BytesIO()
    table = pa.table({"step": measurements.step, **measurements.metrics})
    pa.csv.write_csv(table, out, pa.csv.WriteOptions(include_header=False))
    lines = out.getvalue().splitlines(keepends=True)
    texts: dict[int, list[bytes]] = {}
    for trial_id, line in zip(measurements.trial_id.tolist(), lines, strict=True):
        texts.setdefault(trial_id, []).append(line)
    return {trial_id: b"".join(parts) for trial_id, parts in texts.items()}
