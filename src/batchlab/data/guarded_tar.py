"""Tars from outside, member by member: no header makes Python's reader hang, stop early or fill the memory."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import IO, Literal

from batchlab.errors import DataError

MOST_HEADER_BYTES = 1 << 20
"""Of a name or of attributes that stand in a member of their own."""

MOST_MEMBERS = 5_000_000
_HEADERS = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)


class _Member(tarfile.TarInfo):
    """A member whose header is looked at before anything is read that it tells of."""

    def _block(self, count: int) -> int:
        """Refuse sizes below zero: the reader would go back and read the same again for ever (CVE-2025-8194)."""
        if count < 0:
            raise tarfile.ReadError("a member has a negative size")
        blocks, rest = divmod(count, tarfile.BLOCKSIZE)
        return (blocks + bool(rest)) * tarfile.BLOCKSIZE

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> _Member:
        """Read the next header; one that is damaged ends the reading with an error, and not as if all were read."""
        try:
            return super().fromtarfile(tarfile_)
        except (tarfile.EOFHeaderError, tarfile.EmptyHeaderError, DataError):  # type: ignore[attr-defined]
            raise
        except (tarfile.HeaderError, ValueError, OverflowError, RecursionError, LookupError) as error:
            raise tarfile.ReadError(f"a header is damaged ({error})") from error

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Member:
        """Refuse headers that announce gigabytes of names, and files with holes, which no dataset has."""
        member = super().frombuf(buf, encoding, errors)
        if member.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a member is a file with holes")
        if member.type in _HEADERS and member.size > MOST_HEADER_BYTES:
            raise tarfile.ReadError(f"a header announces {member.size:,} bytes of names")
        return member


def open_tar(file: IO[bytes], mode: Literal["r:", "r|"]) -> tarfile.TarFile:
    """Open a tar that is not compressed; go through it with `members`."""
    return tarfile.open(fileobj=file, mode=mode, tarinfo=_Member)


def members(tar: tarfile.TarFile, most_bytes: int) -> Iterator[tarfile.TarInfo]:
    """Yield the members in their order; none is remembered, and none has more than `most_bytes`.

    To pass over one of exabytes would take years: the reader goes on block by block after the file has ended.
    """
    for _ in range(MOST_MEMBERS):
        member = tar.next()
        if member is None:
            return
        if member.size > most_bytes:
            raise tarfile.ReadError(f"a member has {member.size:,} bytes, more than {most_bytes:,}")
        tar.members.clear()  # type: ignore[attr-defined]
        yield member
    raise tarfile.ReadError(f"it has more than {MOST_MEMBERS:,} members")
