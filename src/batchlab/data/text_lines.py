"""Text files read line by line in little memory, gzipped or not; what is wrong with one is told with its name."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from batchlab.errors import DataError

Told = Callable[[int], None]
"""Is called with the number of bytes just read from the disk."""

MOST_LINE_BYTES = 1 << 26
"""A longer line is taken for a file that is no text."""

_BUFFER_BYTES = 1 << 20
_WAY_OUT = "Replace the file with the published one."


def ignore(num_bytes: int) -> None:
    """Nobody wants to know how far the reading is."""


@contextmanager
def open_text(path: Path, told: Told = ignore, most_bytes: int | None = None) -> Iterator[IO[bytes]]:
    """Open a file, unpacked where its name ends in `.gz`; a read that fails is a DataError that names it.

    So is one that goes on after `most_bytes`, and a pipe or a device in the place of a file.
    """
    with _naming(path):
        watched = _WatchedFile(path, told)
    with io.BufferedReader(watched, _BUFFER_BYTES) as packed:
        file = gzip.GzipFile(fileobj=packed) if path.suffix == ".gz" else packed
        with file, io.BufferedReader(_NamedReads(file, path, most_bytes), _BUFFER_BYTES) as unpacked:
            yield unpacked


def read_lines(path: Path, told: Told = ignore) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without their ends; an empty file is a DataError."""
    with open_text(path, told) as file:
        yield from decode_lines(iter(lambda: file.readline(MOST_LINE_BYTES + 1), b""), str(path))


def decode_lines(lines: Iterable[bytes], source: str) -> Iterator[str]:
    r"""Yield each line as text without its end; only `\n` ends a line. `source` names the file in errors.

    >>> list(decode_lines([b"one\n", b"two"], "numbers"))
    ['one', 'two']
    """
    number = 0
    for number, line in enumerate(lines, start=1):
        if len(line) > MOST_LINE_BYTES:
            raise DataError(f"{source}, line {number} has more than {MOST_LINE_BYTES:,} bytes. {_WAY_OUT}")
        yield decode(line.removesuffix(b"\n").removesuffix(b"\r"), f"{source}, line {number}")
    if number == 0:
        raise DataError(f"{source} is empty. {_WAY_OUT}")


def decode(content: bytes, source: str) -> str:
    """Return UTF-8 bytes as text; DataError tells where in `source` they are none."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: byte {error.start} is not valid UTF-8 ({error.reason}). {_WAY_OUT}") from error


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn what goes wrong with reading a file into a DataError that names it."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: the gzip file is truncated or damaged ({error}). {_WAY_OUT}") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}. Correct that, or use another --data DIR.") from error


class _NamedReads(io.RawIOBase):
    """An open file whose reads say its name when they fail: they may be called where files are written as well."""

    def __init__(self, file: io.BufferedIOBase, path: Path, most_bytes: int | None) -> None:
        self._file, self._path = file, path
        self._most_bytes, self._num_read = most_bytes, 0

    def readable(self) -> bool:
        """Return that it is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read as the file itself does."""
        with _naming(self._path):
            num_bytes = self._file.readinto(buffer)
        self._num_read += num_bytes
        if self._most_bytes is not None and self._num_read > self._most_bytes:
            raise DataError(f"{self._path}: it unpacks to more than {self._most_bytes:,} bytes. {_WAY_OUT}")
        return num_bytes


def _open_regular(path: str, flags: int) -> int:
    """Open a regular file; a pipe that nobody writes to is not waited for."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is no regular file")
    return descriptor


class _WatchedFile(io.FileIO):
    """A file that tells how much of it has been read."""

    def __init__(self, path: Path, told: Told) -> None:
        super().__init__(path, opener=_open_regular)
        self._told = told

    def readinto(self, buffer: Any) -> int | None:
        """Read, and tell how much."""
        num_bytes = super().readinto(buffer)
        self._told(num_bytes or 0)
        return num_bytes
