"""The idx format of MNIST: a magic number, the size of each dimension, then unsigned bytes; often gzipped."""

from __future__ import annotations

import gzip
import io
import math
import zlib

import numpy as np

from batchlab.errors import DataError

_GZIP_MAGIC = b"\x1f\x8b"
_UNSIGNED_BYTE = 0x08
MOST_BYTES = 1 << 27
"""Unpacked; the largest published file has 47 million."""

_WAY_OUT = "Replace the file with the published one."


def read_images(content: bytes, source: str) -> np.ndarray:
    """Return the images of an idx3 file, [num_images, height, width] uint8; `source` names it in errors."""
    return _read(content, source, num_dims=3)


def read_labels(content: bytes, source: str, num_classes: int) -> np.ndarray:
    """Return the labels of an idx1 file, [num_labels] int64, each below `num_classes`.

    >>> read_labels(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]), "labels", num_classes=10)
    array([7, 2, 1])
    """
    labels = _read(content, source, num_dims=1).astype(np.int64)
    wrong = np.flatnonzero(labels >= num_classes)
    if len(wrong):
        raise DataError(
            f"{source}: label {labels[wrong[0]]} of example {wrong[0]} is not in 0 to {num_classes - 1}. {_WAY_OUT}"
        )
    return labels


def _read(content: bytes, source: str, num_dims: int) -> np.ndarray:
    raw = _unpack(content, source)
    header_bytes = 4 + 4 * num_dims
    magic = bytes([0, 0, _UNSIGNED_BYTE, num_dims])
    if raw[:4] != magic:
        raise DataError(f"{source}: it starts with 0x{raw[:4].hex()}, an idx file with 0x{magic.hex()}. {_WAY_OUT}")
    if len(raw) < header_bytes:
        raise DataError(f"{source}: its header ends after {len(raw)} of {header_bytes} bytes. {_WAY_OUT}")
    shape = tuple(np.frombuffer(raw, dtype=">u4", count=num_dims, offset=4).tolist())
    payload_bytes = len(raw) - header_bytes
    if payload_bytes != math.prod(shape):
        raise DataError(
            f"{source}: {payload_bytes:,} bytes follow the header, its sizes {list(shape)} need {math.prod(shape):,}."
            f" {_WAY_OUT}"
        )
    return np.frombuffer(raw, dtype=np.uint8, offset=header_bytes).reshape(shape)


def _unpack(content: bytes, source: str) -> bytes:
    if not content.startswith(_GZIP_MAGIC):
        return content
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            raw = file.read(MOST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{source}: the gzip file is truncated or damaged ({error}). {_WAY_OUT}") from error
    if len(raw) > MOST_BYTES:
        raise DataError(f"{source}: it unpacks to more than {MOST_BYTES:,} bytes. {_WAY_OUT}")
    return raw
