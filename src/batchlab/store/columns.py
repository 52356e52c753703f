"""Columns of numbers between NumPy and Arrow, without a copy.

Arrow's own conversions import pandas wherever that is installed, which takes longer than most questions to a lab.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def to_arrow(values: np.ndarray) -> pa.Array:
    """Return a column of numbers; its memory is shared."""
    values = np.ascontiguousarray(values)
    kind = pa.type_for_alias(values.dtype.name)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def to_numpy(column: pa.ChunkedArray) -> np.ndarray:
    """Return the numbers of a column; what is missing is NaN."""
    if column.null_count:
        return np.asarray(column.to_numpy())
    chunks = [_chunk(chunk) for chunk in column.chunks if len(chunk)]
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate([np.empty(0, column.type.to_pandas_dtype()), *chunks])


def _chunk(chunk: pa.Array) -> np.ndarray:
    values = np.frombuffer(chunk.buffers()[1], chunk.type.to_pandas_dtype())
    return values[chunk.offset : chunk.offset + len(chunk)]
