"""batchlab query: a question to a lab, in SQL."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from batchlab.cli.options import DEFAULT_LAB, JsonOption, LabOption, print_json, print_table
from batchlab.errors import InputError, shown

MOST_ROWS = 1_000_000
"""Of an answer: more are for `COPY`-like tools, which can read the lab's Parquet files themselves."""


def query(
    sql: Annotated[str, typer.Argument(help="A question to the tables `measurements` and `trials`.")],
    lab: LabOption = DEFAULT_LAB,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values, the names first.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Ask a lab in SQL (DuckDB). Nothing can be written, and nothing outside of the lab be read.

    Tables: `measurements` (sweep, batch_size, trial_id, step, examples, and each metric as "split/metric", in double
    quotes) and `trials` (sweep, batch_size, trial_id, status, metaparameters, ...), of all finished studies.
    """
    if as_csv and as_json:
        raise InputError("--csv and --json: give one of the two.")
    names, rows = _answer(sql, lab)
    if as_json:
        _check_names(names)
        print_json([dict(zip(names, map(_plain, row), strict=True)) for row in rows])
    elif as_csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([names, *rows])
    else:
        print_table(names, [[_shown(value) for value in row] for row in rows], left=_texts(rows))


def _answer(sql: str, lab: Path) -> tuple[list[str], list[tuple[Any, ...]]]:
    from batchlab.store.query import ask

    names, rows = ask(lab, sql, MOST_ROWS + 1)
    if not names:
        raise InputError("query: this asks nothing; write a `select ...`.")
    if len(rows) > MOST_ROWS:
        raise InputError(f"query: the answer has more than {MOST_ROWS:,} rows; add a `limit`, or `group by`.")
    return names, rows


def _check_names(names: list[str]) -> None:
    """Raise InputError where an object of JSON would lose a column."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"query: {names.count(name)} columns are called {shown(name)}: name them apart with `as`.")


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: null for what is no number, text for what it does not know."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else shown(str(value), 200)


def _texts(rows: list[tuple[Any, ...]]) -> list[int]:
    """Return the columns of an answer that hold text, which is aligned to the left."""
    return [index for index, value in enumerate(rows[0] if rows else ()) if not isinstance(value, int | float)]
