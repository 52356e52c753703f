"""What a compressed file holds, read to its very end, so that every checksum in it is seen.

Python's own readers stop at the first thing that is no stream and call what follows it nothing. Here it is an error.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, cast

CHUNK = 1 << 18
MOST_XZ_MEMORY = 1 << 28
"""Bytes that a dictionary may take; `xz -9` makes ones of 65 MB."""

BROKEN = (EOFError, lzma.LZMAError, zlib.error, OSError)
"""What a stream raises that is damaged or cut short."""


class Stream:
    """The bytes inside a file, by the piece."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._chunks, self._held, self._at = _chunks(raw), b"", 0

    def read(self, size: int) -> bytes:
        """Return the next bytes: as many as asked for, fewer only at the end of the stream."""
        at, end = self._at, self._at + size
        if end <= len(self._held):
            self._at = end
            return self._held[at:end]
        content = bytearray(self._held[at:])
        self._held, self._at = b"", 0
        while len(content) < size and (chunk := next(self._chunks, b"")):
            content += chunk
        self._held = bytes(content[size:])
        del content[size:]
        # A large one is not held twice: what reads it does not mind that it could be changed.
        return bytes(content) if len(content) <= CHUNK else cast("bytes", content)

    def peek(self, size: int) -> bytes:
        """Return the next bytes, and let the next reading have them again."""
        while len(self._held) - self._at < size and (chunk := next(self._chunks, b"")):
            self._held, self._at = self._held[self._at :] + chunk, 0
        return self._held[self._at : self._at + size]

    def skip(self, size: int) -> bool:
        """Pass over some bytes; return whether there were as many."""
        while size > len(self._held) - self._at:
            size -= len(self._held) - self._at
            self._held, self._at = next(self._chunks, b""), 0
            if not self._held:
                return False
        self._at += size
        return True


def _chunks(raw: IO[bytes]) -> Iterator[bytes]:
    """Return what is inside a file, told by its first bytes, in pieces of bounded size."""
    start = raw.read(6)
    raw.seek(0)
    if start.startswith(b"BZh"):
        return _unpacked(raw, bz2.BZ2Decompressor, padding=b"")
    if start.startswith(b"\x1f\x8b"):
        return _unpacked(raw, _Gzip, padding=b"\0")
    if start.startswith(b"\xfd7zXZ"):
        return _unpacked(raw, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, MOST_XZ_MEMORY), padding=b"\0")
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        packed = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
        return iter(lambda: packed.read(CHUNK), b"")
    return iter(lambda: raw.read(CHUNK), b"")


def _unpacked(raw: IO[bytes], new: Callable[[], Any], padding: bytes) -> Iterator[bytes]:
    """Yield what one compressed stream after the other holds; whatever else is in the file is an error."""
    data = raw.read(CHUNK)
    while data:
        unpacker = new()
        while not unpacker.eof:
            if not data and unpacker.needs_input:
                data = raw.read(CHUNK)
            piece = unpacker.decompress(data, CHUNK)
            if not (piece or data or unpacker.eof):
                raise EOFError("the compressed stream has no end")
            data = b""
            if piece:
                yield piece
        data = unpacker.unused_data.lstrip(padding) if padding else unpacker.unused_data
        while not data and (more := raw.read(CHUNK)):
            data = more.lstrip(padding) if padding else more


class _Gzip:
    """zlib's reader of gzip with the face that those of bz2 and xz have."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        """Whether the stream has ended, its checksum right."""
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        """Whether all that was given has been used."""
        return not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        """What follows the stream."""
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return the next bytes."""
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
