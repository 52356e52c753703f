"""Measurements as Parquet: one row for each evaluated step, compressed, readable by anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from batchlab.core.confirmation import REPLICATE_STRIDE
from batchlab.core.measurement import Measurements
from batchlab.errors import LabError
from batchlab.files import whole_file
from batchlab.store.columns import to_arrow, to_numpy

RECORD_KEY = b"batchlab"


def write_measurements(path: Path, measurements: Measurements, record: Any = None, *, sync: bool = True) -> None:
    """Write the table; `record`, any JSON data, travels in the same file."""
    columns = {"trial_id": measurements.trial_id, "step": measurements.step, **measurements.metrics}
    table = pa.table({name: to_arrow(values) for name, values in columns.items()})
    if record is not None:
        table = table.replace_schema_metadata({RECORD_KEY: json.dumps(record).encode()})
    _write(path, table, sync)


def _write(path: Path, table: pa.Table, sync: bool) -> None:
    with whole_file(path, sync) as file:
        # Steps and metrics hardly repeat: a dictionary of them costs half of the time and saves nothing. Against lz4,
        # zstd would save 12 % of the space and take half as long again.
        pq.write_table(table, file, compression="lz4", use_dictionary=["trial_id"], write_page_checksum=True)


def write_replicates(path: Path, measurements: Measurements) -> None:
    """Write the table of replicates: their numbers as two columns, `trial_id` and `replicate`."""
    replicate, trial_id = np.divmod(measurements.trial_id, REPLICATE_STRIDE)
    columns = {"trial_id": trial_id, "replicate": replicate, "step": measurements.step, **measurements.metrics}
    _write(path, pa.table({name: to_arrow(values) for name, values in columns.items()}), sync=True)


def read_replicates(path: Path) -> Measurements:
    """Return the table that `write_replicates` wrote, each replicate by its number."""
    columns = read_measurements(path)
    metrics = dict(columns.metrics)
    if "replicate" not in metrics:
        raise LabError(f"{path} is no table of replicates. Remove it and confirmed.json, then confirm again.")
    replicate = metrics.pop("replicate").astype(np.int64)
    return Measurements(replicate * REPLICATE_STRIDE + columns.trial_id, columns.step, metrics)


def read_measurements(path: Path, metrics: list[str] | None = None) -> Measurements:
    """Return the table, or only the named metrics of it; LabError names a file that is not whole."""
    names = measured_metrics(path)
    wanted = names if metrics is None else [name for name in names if name in metrics]
    with _named_when_corrupt(path):
        table = pq.ParquetFile(path, page_checksum_verification=True).read(columns=["trial_id", "step", *wanted])
    return Measurements(
        trial_id=to_numpy(table["trial_id"]),
        step=to_numpy(table["step"]),
        metrics={name: to_numpy(table[name]) for name in wanted},
    )


def measured_metrics(path: Path) -> list[str]:
    """Return the names of the metric columns."""
    return [name for name in _schema(path).names if name not in ("trial_id", "step")]


def count_rows(path: Path) -> int:
    """Return the number of rows, from the end of the file alone."""
    with _named_when_corrupt(path):
        return int(pq.ParquetFile(path).metadata.num_rows)


def read_record(path: Path) -> Any:
    """Return the JSON data that travels in the file; LabError where there is none."""
    metadata = _schema(path).metadata or {}
    if RECORD_KEY not in metadata:
        raise LabError(f"{path} is no pack: it tells no outcomes. Remove it and run again.")
    return json.loads(metadata[RECORD_KEY])


def study_of(path: Path) -> str | None:
    """Return the fingerprint of the study that a table of measurements belongs to; None where it tells none."""
    metadata = _schema(path).metadata or {}
    study = json.loads(metadata.get(RECORD_KEY, b"{}")).get("study")
    return None if study is None else str(study)


def _schema(path: Path) -> pa.Schema:
    with _named_when_corrupt(path):
        return pq.ParquetFile(path).schema_arrow


@contextmanager
def _named_when_corrupt(path: Path) -> Iterator[None]:
    """Turn what a damaged file makes the reader raise into one line with the file's name."""
    try:
        yield
    except FileNotFoundError:
        raise LabError(
            f"{path} is missing. Restore it from a copy, or remove its study's folder and run again."
        ) from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise LabError(f"{path} is corrupt: {reason} Remove its study's folder and run again.") from error
