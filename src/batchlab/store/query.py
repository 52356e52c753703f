"""Questions to a whole lab in SQL."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from batchlab.core.trial import Trial
from batchlab.errors import InputError, LabError, shown
from batchlab.store.belonging import finished_record
from batchlab.store.lab import Lab, not_imported
from batchlab.store.seal import damaged
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_folder import StudyFolder
from batchlab.store.trial_records import trials_json
from batchlab.store.undisturbed import undisturbed

CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",  # no file is read or written, nothing is attached or fetched
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "temp_directory": "",  # what does not fit into the memory goes nowhere
    "python_enable_replacements": "false",  # a name in a query is never a variable of the caller
}
_ASKING = (
    duckdb.StatementType.SELECT,  # also WITH, FROM, VALUES, DESCRIBE, SUMMARIZE and SHOW
    duckdb.StatementType.MULTI,  # PIVOT
    duckdb.StatementType.EXPLAIN,
    duckdb.StatementType.PRAGMA,
    duckdb.StatementType.CALL,
)
_MEASUREMENTS = {
    "sweep": pa.string(),
    "batch_size": pa.int64(),
    "trial_id": pa.int64(),
    "step": pa.int64(),
    "examples": pa.int64(),
}
_COUNTED = "select * replace (coalesce(examples, step * batch_size)::bigint as examples) from stored_measurements"
"""`Measurements.counted` in SQL: in tables without the column all updates had one batch size."""

_TRIALS = {"sweep": pa.string(), "batch_size": pa.int64(), "trial_id": pa.int64(), "status": pa.string()}


@dataclass(frozen=True)
class _Finished:
    """A finished study whose files are as they were written."""

    sweep: str
    batch_size: int
    table: str
    """The path of its measurements."""

    trials: list[Trial]


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection with the views `measurements` and `trials` over the finished studies of a lab.

    Both carry the columns `sweep` and `batch_size`, measurements `step` and `examples`; metrics are columns named
    `split/metric`, in double quotes.
    Every file is checked against its seal first; DamagedError names one that is not as it was written. Nothing can be
    written through the connection, in the lab or elsewhere, and nothing else can be read.
    """
    lab = Lab.open(folder)
    sizes = [(sweep, size) for sweep in lab.sweeps() for size in sweep.batch_sizes]
    studies = [study for sweep, size in sizes if (study := _finished(lab, sweep, size)) is not None]
    connection = duckdb.connect(config=dict(CLOSED))
    connection.register("stored_measurements", _measurements(studies))
    connection.execute(f"create view measurements as {_COUNTED}")
    connection.register("trials", _trials(studies))
    connection.execute("set lock_configuration = true")
    return connection


def ask(folder: Path, sql: str, most_rows: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the names and at most so many rows of an answer; no names where nothing is asked, InputError if in vain.

    DuckDB reads tables while it computes, so a question is put again where a writer has changed a study meanwhile.
    """
    return undisturbed(lambda: _answer(folder, sql, most_rows), lambda: _standing(folder))


def _answer(folder: Path, sql: str, most_rows: int) -> tuple[list[str], list[tuple[Any, ...]]]:
    with connect(folder) as connection:
        try:
            _check_asks(connection.extract_statements(sql))
            found = connection.execute(sql)
            rows = [] if found is None else found.fetchmany(most_rows)  # None where there is no statement
        except (duckdb.Error, ValueError, RuntimeError) as error:
            told = " ".join(str(error).replace("^", "").split())  # on one line the carets point to nothing
            raise InputError(f"query: {shown(told, 500)}") from None
        return [] if found is None else [str(column[0]) for column in found.description or ()], rows


def _check_asks(statements: list[duckdb.Statement]) -> None:
    """Raise InputError where a statement would write: some change what is in memory alone, and say that they did."""
    for statement in statements:
        if statement.type not in _ASKING:
            raise InputError(f"nothing can be written, and {statement.type.name} would; write a `select ...`.")


def _standing(folder: Path) -> list[Any]:
    """Return where each study of a lab lies, and its version."""
    lab = Lab.open(folder)
    return [lab.study_folder(sweep.name, size).standing for sweep in lab.sweeps() for size in sweep.batch_sizes]


def _finished(lab: Lab, sweep: StoredSweep, batch_size: int) -> _Finished | None:
    """Return a study whose files are as they were written; None where it has not finished."""

    def look(folder: StudyFolder) -> _Finished | None:
        record = finished_record(folder, sweep, batch_size)
        if record is None and sweep.spec is None:
            raise not_imported(lab, sweep.name, batch_size)
        if record is None:
            return None
        folder.check_bytes("measurements.parquet", record)
        table = os.path.abspath(folder.folder / "measurements.parquet")
        return _Finished(sweep.name, batch_size, table, folder.trials(record))

    return lab.study_folder(sweep.name, batch_size).undisturbed(look)


def _measurements(studies: list[_Finished]) -> ds.Dataset:
    """Return the tables of all studies as one that is read when it is asked for."""
    schemas = [pq.read_schema(study.table).remove_metadata() for study in studies]
    places = [(ds.field("sweep") == each.sweep) & (ds.field("batch_size") == each.batch_size) for each in studies]
    return ds.FileSystemDataset.from_paths(
        [study.table for study in studies],
        schema=pa.unify_schemas([pa.schema(_MEASUREMENTS), *schemas], promote_options="permissive"),
        format=ds.ParquetFileFormat(),
        filesystem=fs.LocalFileSystem(),
        partitions=places,
    )


def _trials(studies: list[_Finished]) -> pa.Table:
    """Return the trials of all studies as one table; DamagedError names a file whose values fit into none."""
    try:
        return _trial_table(studies)
    except (pa.ArrowException, OverflowError) as error:
        if len(studies) == 1:
            raise damaged(Path(studies[0].table).with_name("trials.json"), str(error)) from None
        for study in studies:
            _trials([study])
        raise LabError(f"The trials of these studies fit into no table together: {shown(str(error))}.") from None


def _trial_table(studies: list[_Finished]) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {"sweep": study.sweep, "batch_size": study.batch_size, **trial}
        for study in studies
        for trial in json.loads(trials_json(study.trials))
    ]
    names = dict.fromkeys([*_TRIALS, *(name for row in rows for name in row)])
    return pa.table({name: pa.array([row.get(name) for row in rows], _TRIALS.get(name)) for name in names})
