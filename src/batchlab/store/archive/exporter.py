"""Any lab in the published layout, so that the authors' own loader reads it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial
from batchlab.errors import InputError, LabError, shown
from batchlab.files import MOST_PATH, write_file
from batchlab.store.archive.layout import EXTRA, is_workload, parameter_configs
from batchlab.store.archive.manifest import NAME as MANIFEST
from batchlab.store.archive.manifest import write_manifest
from batchlab.store.lab import Lab
from batchlab.store.seal import digest
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_record import StudyRecord


def export_lab(lab: Lab, out: Path, workload: str | None = None) -> Iterator[Path]:
    """Write the finished studies of a lab, or of one workload, below a new or empty folder; yield the folder of each.

    The manifest is written last, and until then an empty one stands in its place: an export that was stopped is told
    from a whole one.
    """
    sweeps = [lab.find(workload)] if workload else lab.sweeps()
    _check_distinct(sweeps)
    _check_names(lab, sweeps)
    _check_empty(out)
    write_file(out / MANIFEST, b"")
    digests: dict[str, str] = {}
    for sweep in sweeps:
        results = lab.results(sweep)
        if results.problems:
            raise results.problems[0]
        sweep = results.sweep  # which may have grown since
        for record, result in zip(results.records, results.results, strict=True):
            place = f"{sweep.workload}/{result.batch_size}"
            for name, content in _study_files(sweep, record, result):
                write_file(out / place / name, content)
                digests[f"{place}/{name}"] = digest(content)
            yield out / place
    write_file(out / MANIFEST, write_manifest(digests))


def _check_empty(out: Path) -> None:
    try:
        is_empty = not out.exists() or not any(out.iterdir())
    except OSError as error:
        raise InputError(f"Could not write to {shown(str(out), MOST_PATH)}: {error.strerror}.") from None
    if not is_empty:
        raise InputError(f"{shown(str(out), MOST_PATH)} is not empty. Export into a new folder: nothing is replaced.")


def _check_names(lab: Lab, sweeps: list[StoredSweep]) -> None:
    """Refuse a workload whose name would lead out of the folder: a lab may be somebody else's."""
    for sweep in sweeps:
        if sweep.spec is not None and sweep.spec.workload.is_own_loop:
            raise LabError(
                f'Sweep "{shown(sweep.name)}" in lab {lab.folder} is of a loop of your own: the published layout has a'
                " folder for each dataset, model and optimizer, and a loop names none. Nothing was exported; name"
                " another workload with --workload, or copy the lab, or join labs with `batchlab merge`."
            )
        if not is_workload(sweep.workload):
            raise LabError(
                f'Sweep "{shown(sweep.name)}" in lab {lab.folder} has a workload "{shown(sweep.workload)}", which '
                "cannot be a path. Nothing was exported."
            )


def _check_distinct(sweeps: list[StoredSweep]) -> None:
    workloads = [sweep.workload for sweep in sweeps]
    for sweep in sweeps:
        if workloads.count(sweep.workload) > 1:
            raise InputError(
                f"Two sweeps of this lab have the workload {sweep.workload}; the published layout has room for one. "
                f"Export one of them, --workload {sweep.name}, or from labs with one sweep for each workload."
            )


def _study_files(sweep: StoredSweep, record: StudyRecord, result: StudyResult) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a study by their paths within its folder."""
    yield "study.json", _json(_study(sweep, record, result))
    columns = {"step": result.measurements.step, **_examples(result), **result.measurements.metrics}
    texts, header = _csv_texts(result.measurements.trial_id, columns), ",".join(columns).encode() + b"\n"
    for trial in result.trials:
        yield f"{trial.trial_id}/metadata.json", _json(_metadata(trial))
        yield f"{trial.trial_id}/measurements.csv", header + texts.get(trial.trial_id, b"")


def _study(sweep: StoredSweep, record: StudyRecord, result: StudyResult) -> dict[str, Any]:
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
    return study


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


def _examples(result: StudyResult) -> dict[str, np.ndarray]:
    """Return the column that the published layout has not, where step and batch size do not tell it."""
    return {} if result.has_one_batch_size else {"examples": result.examples}


def _csv_texts(trial_id: np.ndarray, columns: Mapping[str, np.ndarray]) -> dict[int, bytes]:
    """Return the rows of every trial as CSV: all at once, then cut at the line ends."""
    out = io.BytesIO()
    pa.csv.write_csv(pa.table(dict(columns)), out, pa.csv.WriteOptions(include_header=False))
    lines = out.getvalue().splitlines(keepends=True)
    texts: dict[int, list[bytes]] = {}
    for number, line in zip(trial_id.tolist(), lines, strict=True):
        texts.setdefault(number, []).append(line)
    return {number: b"".join(parts) for number, parts in texts.items()}
