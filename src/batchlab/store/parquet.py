"""Measurements as Parquet: one row for each evaluated step, compressed, readable by anything.

Every table carries a record, JSON data of its writer's choice, and the digest of both.
"""

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
from batchlab.errors import VERIFY, DamagedError, LabError
from batchlab.files import check_regular, is_there, make_folder, read_bounded, unreadable, whole_file
from batchlab.store.columns import to_arrow, to_numpy
from batchlab.store.seal import FileSeal, MismatchError, SealingFile, changed, damaged, digest, read_file

RECORD_KEY = b"batchlab"
DIGEST_KEY = b"batchlab.digest"
MOST_BYTES = 1 << 34
"""Of one table; the published archive has 50 MB at the most."""


def write_measurements(path: Path, measurements: Measurements, record: Any = None, *, sync: bool = True) -> FileSeal:
    """Write the table and return its seal; `record`, any JSON data, travels in the same file."""
    columns = {"trial_id": measurements.trial_id, **_columns(measurements)}
    return _write(path, columns, record, sync)


def _columns(measurements: Measurements) -> dict[str, np.ndarray]:
    """Return step, examples where they were counted, and metrics by the names of their columns."""
    counted = {} if measurements.examples is None else {"examples": measurements.examples}
    return {"step": measurements.step, **counted, **measurements.metrics}


def _write(path: Path, columns: dict[str, np.ndarray], record: Any, sync: bool) -> FileSeal:
    text = json.dumps(record).encode()
    table = pa.table({name: to_arrow(values) for name, values in columns.items()})
    table = table.replace_schema_metadata({RECORD_KEY: text, DIGEST_KEY: _content_digest(text, columns).encode()})
    # Steps and metrics hardly repeat: a dictionary of them costs half of the time and saves nothing. Against lz4,
    # zstd would save 12 % of the space and take half as long again.
    make_folder(path.parent)
    with whole_file(path, sync) as file:
        sealed = SealingFile(file)
        pq.write_table(table, sealed, compression="lz4", use_dictionary=["trial_id"], write_page_checksum=True)
    return sealed.seal()


def _content_digest(record: bytes, columns: dict[str, np.ndarray]) -> str:
    pieces: list[Any] = [record]
    for name, values in columns.items():
        pieces += [f"\0{name}\0{values.dtype.name}\0".encode(), np.ascontiguousarray(values)]
    return digest(*pieces)


def write_replicates(path: Path, measurements: Measurements, record: Any = None) -> FileSeal:
    """Write the table of replicates: their numbers as two columns, `trial_id` and `replicate`."""
    replicate, trial_id = np.divmod(measurements.trial_id, REPLICATE_STRIDE)
    columns = {"trial_id": trial_id, "replicate": replicate, **_columns(measurements)}
    return _write(path, columns, record, sync=True)


def read_replicates(path: Path, seal: FileSeal | None = None) -> Measurements:
    """Return the table that `write_replicates` wrote, each replicate by its number."""
    columns = read_measurements(path, seal=seal)
    metrics = dict(columns.metrics)
    if "replicate" not in metrics:
        raise damaged(path, "it is no table of replicates")
    replicate = metrics.pop("replicate").astype(np.int64)
    return Measurements(replicate * REPLICATE_STRIDE + columns.trial_id, columns.step, metrics, columns.examples)


def read_measurements(path: Path, metrics: list[str] | None = None, seal: FileSeal | None = None) -> Measurements:
    """Return the table, or only the named metrics of it; DamagedError names a file that is not as `seal` says.

    Without a seal, in a lab from before there were any, the pages' own checksums are counted on.
    """
    if seal is None:
        return _parse(path, _content(path), metrics)
    try:
        return _parse(path, read_file(path, seal), metrics, is_known=True)
    except MismatchError as mismatch:
        _parse(path, mismatch.content)
        raise changed(path) from None


def read_whole(path: Path, *, is_sealed: bool = True) -> tuple[Measurements, Any]:
    """Return a table and the record that travels with it, once their digest has proved both.

    With `is_sealed` false, of a lab from before there were seals, a table may lack its digest.
    """
    content = _content(path)
    rows, notes = _parse(path, content), _metadata(path, content)
    try:
        record = json.loads(notes[RECORD_KEY])
    except (KeyError, ValueError, RecursionError):
        raise damaged(path, "it carries no record") from None
    columns = {name: {"trial_id": rows.trial_id, **_columns(rows)}[name] for name in _names(path, content)}
    found = notes.get(DIGEST_KEY)
    if (found or is_sealed) and found != _content_digest(notes[RECORD_KEY], columns).encode():
        raise changed(path)
    return rows, record


def is_sealed(path: Path) -> bool:
    """Return whether a table carries the digest of its content, as all have since lab format 3."""
    return DIGEST_KEY in _metadata(path, _content(path))


def count_rows(path: Path) -> int:
    """Return the number of rows, from the end of the file alone."""
    check_regular(path)
    with _named_when_damaged(path):
        return int(pq.ParquetFile(path).metadata.num_rows)


def _content(path: Path) -> bytes:
    if not is_there(path):
        raise DamagedError(f"{path} is missing. {VERIFY}")
    return read_bounded(path, MOST_BYTES)


def _parse(path: Path, content: bytes, metrics: list[str] | None = None, *, is_known: bool = False) -> Measurements:
    """Return the table in some bytes; of `is_known` ones the pages' checksums need no proof."""
    names = _names(path, content)
    with _named_when_damaged(path):
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=not is_known)
        # A loop of the user's own may have called a metric so, before there was such a column.
        is_counted = "examples" in names and pa.types.is_integer(file.schema_arrow.field("examples").type)
        columns = ["trial_id", "step", *(["examples"] if is_counted else [])]
        wanted = [name for name in names if name not in columns and (metrics is None or name in metrics)]
        # Threads of Arrow's may still hold the bytes when Python ends, and giving them back then aborts the process
        # (17 of 1,500 processes that read and ended); on two cores two million rows take as long without them.
        table = file.read(columns=[*columns, *wanted], use_threads=False)
        return Measurements(
            trial_id=_whole_numbers(table["trial_id"]),
            step=_whole_numbers(table["step"]),
            metrics={name: _numbers(table[name]) for name in wanted},
            examples=_whole_numbers(table["examples"]) if is_counted else None,
        )


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    if not pa.types.is_floating(column.type) and not pa.types.is_integer(column.type):
        raise pa.ArrowInvalid(f"a column of {column.type}, not of numbers.")
    return to_numpy(column)


def _whole_numbers(column: pa.ChunkedArray) -> np.ndarray:
    if not pa.types.is_integer(column.type) or column.null_count:
        raise pa.ArrowInvalid(f"a column of {column.type}, not of whole numbers.")
    return to_numpy(column)


def _names(path: Path, content: bytes) -> list[str]:
    with _named_when_damaged(path):
        names: list[str] = pq.ParquetFile(pa.BufferReader(content)).schema_arrow.names
    if not {"trial_id", "step"} <= set(names) or len(set(names)) < len(names):
        raise damaged(path, "it is no table of measurements")
    return names


def _metadata(path: Path, content: bytes) -> dict[bytes, bytes]:
    with _named_when_damaged(path):
        return pq.ParquetFile(pa.BufferReader(content)).schema_arrow.metadata or {}


@contextmanager
def _named_when_damaged(path: Path) -> Iterator[None]:
    """Turn what a damaged file makes the reader raise into one line with the file's name."""
    try:
        yield
    except LabError:
        raise
    except OSError as error:
        if error.errno is not None:  # the system's, not the reader's
            raise unreadable(path, error) from None
        raise damaged(path, _told(error)) from None
    except (pa.ArrowException, ValueError, TypeError, MemoryError, OverflowError) as error:
        raise damaged(path, _told(error)) from None


def _told(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__).rstrip(".")
