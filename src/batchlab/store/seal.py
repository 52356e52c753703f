"""Seals: how a reader tells that a file is as it was written.

A sealed JSON file ends with the digest of all bytes before it. The other files of a finished study are listed in its
study.json by size and digest, and Parquet tables and checkpoints carry a digest of their content besides, so that
one is sound or not by itself. A seal finds damage and edits; it is no signature: whoever wants to can make a new one.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, Any

import pydantic_core
import xxhash

from batchlab.core.value import Value
from batchlab.errors import VERIFY, DamagedError, shown
from batchlab.files import MOST_JSON_BYTES, is_there, parse_json, read_bounded, write_file

KEY = "digest"
MOST_WHY = 1_000
"""Characters of what is told of a damaged file."""

_TAIL = b',\n "' + KEY.encode() + b'": "'
_END = b'"\n}\n'


class FileSeal(Value):
    """What a file was when it was written."""

    size: int
    """Bytes."""

    digest: str


def digest(*pieces: Any) -> str:
    """Return the digest of some bytes, one piece after the other: 32 digits of XXH3.

    >>> digest(b"one", b"piece") == digest(b"onepiece") != digest(b"another")
    True
    """
    state = xxhash.xxh3_128()
    for piece in pieces:
        state.update(piece)
    return state.hexdigest()


def seal_of(content: Any) -> FileSeal:
    """Return the seal of a file with this content."""
    return FileSeal(size=memoryview(content).nbytes, digest=digest(content))


class SealingFile(io.RawIOBase):
    """Passes on what is written to a file, in order, and knows its seal in the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._size, self._state = file, 0, xxhash.xxh3_128()

    def writable(self) -> bool:
        """Say that it can be written to."""
        return True

    def tell(self) -> int:
        """Return how much was written."""
        return self._size

    def write(self, content: Any) -> int:
        """Take in some more."""
        self._state.update(content)
        num_bytes = self._file.write(content)
        self._size += num_bytes
        return num_bytes

    def seal(self) -> FileSeal:
        """Return the seal of what was written so far."""
        return FileSeal(size=self._size, digest=self._state.hexdigest())


def sealed_json(data: dict[str, Any]) -> bytes:
    """Return a table as readable JSON that ends with its own digest.

    >>> print(sealed_json({"format": 3}).decode(), end="")
    {
     "format": 3,
     "digest": "d8e7ebee16c7f052e406e354b9ea2554"
    }
    """
    content = pydantic_core.to_json(data, indent=1, inf_nan_mode="constants").removesuffix(b"\n}")
    return content + _TAIL + digest(content).encode() + _END


def write_sealed(path: Path, data: dict[str, Any], sync: bool = True) -> None:
    """Write a table as sealed JSON."""
    write_file(path, sealed_json(data), sync)


def read_sealed(path: Path, *, is_sealed: bool = True) -> dict[str, Any]:
    """Return the table in a sealed JSON file; DamagedError names one that is not as it was written.

    With `is_sealed` false, of a lab from before there were seals, a file may lack its digest.
    """
    content = read_bounded(path, MOST_JSON_BYTES)
    data = parse_json(content, path)
    if not isinstance(data, dict):
        raise damaged(path, "it is no table")
    if is_sealed or KEY in data:
        content, _, tail = content.rpartition(_TAIL)
        if tail != digest(content).encode() + _END:
            raise changed(path)
    data.pop(KEY, None)
    return data


def is_sealed(path: Path) -> bool:
    """Return whether a JSON file carries a digest, right or wrong."""
    data = parse_json(read_bounded(path, MOST_JSON_BYTES), path)
    return isinstance(data, dict) and KEY in data


def read_file(path: Path, seal: FileSeal) -> bytes:
    """Return the bytes of a file that is as its seal says; what else it is, `MismatchError` holds for a closer look."""
    if not is_there(path):
        raise DamagedError(f"{path} is missing. {VERIFY}")
    content = read_bounded(path, max(seal.size + (1 << 20), 2 * seal.size))
    if len(content) != seal.size or digest(content) != seal.digest:
        raise MismatchError(path, content)
    return content


class MismatchError(Exception):
    """A file that is not as its seal says."""

    def __init__(self, path: Path, content: bytes) -> None:
        super().__init__(path)
        self.path, self.content = path, content


def damaged(path: Path, why: str, kind: type[DamagedError] = DamagedError) -> DamagedError:
    """Return the error for a file that cannot be read as what it should be, in the words of whoever tried."""
    return kind(f"{path} is damaged: {shown(why, MOST_WHY)}. {VERIFY}")


def changed(path: Path) -> DamagedError:
    """Return the error for a file that can be read, but is not what was written."""
    return DamagedError(
        f"{path} was changed after it was written. If that was you, accept it with `batchlab verify --accept {path}`; "
        "else see what is sound with `batchlab verify`."
    )
