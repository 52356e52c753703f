"""Text files read line by line in little memory, gzipped or not; what is wrong with one is told with its name."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from batchlab.errors import DataError, StorageError

Told = Callable[[int], None]
"""Is called with the number of bytes just read from the disk."""

_BUFFER_BYTES = 1 << 20
_WAY_OUT = "Replace the file with the published one."


def ignore(num_bytes: int) -> None:
    """Nobody wants to know how far the reading is."""


@contextmanager
def open_text(path: Path, told: Told = ignore) -> Iterator[IO[bytes]]:
    """Open a file, unpacked where its name ends in `.gz`; DataError names it if it cannot be read to its end."""
    try:
        with io.BufferedReader(_WatchedFile(path, told), _BUFFER_BYTES) as raw:
            if path.suffix != ".gz":
                yield raw
            else:
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield unpacked  # type: ignore[misc]  # typeshed's gzip file is no IO, though it reads like one
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the gzip file is truncated or damaged ({error}). {_WAY_OUT}") from error
    except StorageError:
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Correct that, or use another --data DIR.") from error


def read_lines(path: Path, told: Told = ignore) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without their ends; an empty file is a DataError."""
    with open_text(path, told) as file:
        yield from decode_lines(file, str(path))


def decode_lines(lines: Iterable[bytes], source: str) -> Iterator[str]:
    r"""Yield each line as text without its end; only `\n` ends a line. `source` names the file in errors.

    >>> list(decode_lines([b"one\n", b"two"], "numbers"))
    ['one', 'two']
    """
    number = 0
    for number, line in enumerate(lines, start=1):
        yield decode(line.removesuffix(b"\n").removesuffix(b"\r"), f"{source}, line {number}")
    if number == 0:
        raise DataError(f"{source} is empty. {_WAY_OUT}")


def decode(content: bytes, source: str) -> str:
    """Return UTF-8 bytes as text; DataError tells where in `source` they are none."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: byte {error.start} is not valid UTF-8 ({error.reason}). {_WAY_OUT}") from error


class _WatchedFile(io.FileIO):
    """A file that tells how much of it has been read."""

    def __init__(self, path: Path, told: Told) -> None:
        super().__init__(path)
        self._told = told

    def readinto(self, buffer: Any) -> int | None:
        """Read, and tell how much."""
        num_bytes = super().readinto(buffer)
        self._told(num_bytes or 0)
        return num_bytes
