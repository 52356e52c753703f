"""Questions to a whole lab in SQL."""

from __future__ import annotations

from pathlib import Path

import duckdb

_MEASUREMENTS = """
create view measurements as
select parse_path(filename)[-3] as sweep, parse_path(filename)[-2]::bigint as batch_size, * exclude (filename)
from read_parquet('{folder}/sweeps/*/*/measurements.parquet', union_by_name = true, filename = true)
"""
_TRIALS = """
create view trials as
select parse_path(filename)[-3] as sweep, parse_path(filename)[-2]::bigint as batch_size, * exclude (filename)
from read_json('{folder}/sweeps/*/*/trials.json', union_by_name = true, filename = true)
"""


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB connection with the views `measurements` and `trials` over the finished studies of a lab.

    Both carry the columns `sweep` and `batch_size`; metrics are columns named `split/metric`, in double quotes.
    Nothing in the lab can be changed through it.
    """
    connection = duckdb.connect()
    place = str(folder).replace("'", "''")
    for view in (_MEASUREMENTS, _TRIALS):
        connection.execute(view.format(folder=place))
    return connection
