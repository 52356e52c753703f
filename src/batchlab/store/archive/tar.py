"""Tar headers, read strictly: names, sizes and kinds are claims of whoever made the file.

Python's own reader believes them: it reads header members of gigabytes into memory, goes back and forth by negative
sizes, and takes a file that was cut between two members for a whole one. Here only what an archive of studies can
have is known: files and folders, long names in the manner of GNU and of POSIX, and an end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from batchlab.errors import InputError, shown
from batchlab.store.archive.streams import Stream

BLOCK = 512
MOST_HEADER = 1 << 18
"""Bytes of a long name or of the attributes of one member."""

MOST_IN_A_ROW = 4
"""Header members that may stand before one member."""

MOST_PADDING = 1 << 24
"""Zeros after the end of the archive; tar fills up to 10,240 bytes."""

_ZEROS = bytes(BLOCK)
_OCTAL = re.compile(rb" *([0-7]*)[ \0]*")
_FILES, _FOLDER = (b"0", b"\0", b"7"), b"5"
_LONG_NAME, _LONG_LINK, _ATTRIBUTES, _ALL_ATTRIBUTES = b"L", b"K", b"x", b"g"


class TarError(InputError):
    """A tar file that is damaged or cut short, as far as its headers can tell."""


class TarMember(NamedTuple):
    """A file or a folder of a tar file."""

    name: str
    size: int
    is_folder: bool


class TarReader:
    """Reads the members of a tar file in their order."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._unread = self._padding = 0
        self.extra_bytes = 0
        """Bytes of header members beyond what names need."""

    def __iter__(self) -> Iterator[TarMember]:
        """Yield every member; its content may be read until the next one is asked for."""
        while (member := self._next()) is not None:
            self._unread = 0 if member.is_folder else member.size
            self._padding = -self._unread % BLOCK
            yield member
            self._pass(self._unread + self._padding)

    def content(self) -> bytes:
        """Return the content of the member that was yielded last."""
        content = self._take(self._unread)
        self._unread = 0
        return content

    def start(self) -> bytes:
        """Return the first bytes of the content of the member that was yielded last; `content` has them too."""
        return self._stream.peek(min(self._unread, BLOCK))

    def _next(self) -> TarMember | None:
        """Return the next file or folder; None at the end of the archive, once all after it has been seen."""
        name, size = None, None
        for _ in range(MOST_IN_A_ROW + 1):
            header = self._take(BLOCK)
            if header == _ZEROS:
                self._end()
                return None
            member, kind = _parsed(header)
            if kind in _FILES or kind == _FOLDER:
                return _with(member, kind, name, size)
            if kind not in (_LONG_NAME, _LONG_LINK, _ATTRIBUTES, _ALL_ATTRIBUTES):
                raise InputError(
                    f'The archive has a member "{shown(name or member.name)}" that is a link or a device, or of an '
                    "unknown kind. Nothing was imported."
                )
            content = self._header_content(member)
            if kind == _LONG_NAME:
                name = _text(content)
            elif kind == _ATTRIBUTES:
                name, size = _attributes(content, name, size)
            elif kind == _ALL_ATTRIBUTES:
                _check_common(content)
        raise TarError(f"more than {MOST_IN_A_ROW} header members in a row")

    def _header_content(self, member: TarMember) -> bytes:
        if member.size > MOST_HEADER:
            raise TarError(f"a header member of {member.size:,} bytes, more than {MOST_HEADER:,}")
        self.extra_bytes += max(0, member.size - 8 * BLOCK)
        content = self._take(member.size)
        self._pass(-member.size % BLOCK)
        return content

    def _end(self) -> None:
        """Check that a second block of zeros follows the first, and after them nothing but zeros."""
        if self._take(BLOCK) != _ZEROS:
            raise TarError("a lone block of zeros stands between its members")
        read = 0
        while rest := self._stream.read(1 << 16):
            read += len(rest)
            if rest.count(0) != len(rest):
                raise TarError("something follows the end of the archive")
            if read > MOST_PADDING:
                raise TarError(f"more than {MOST_PADDING:,} zeros follow the end of the archive")
        if read % BLOCK:
            raise TarError("it ends within a block")

    def _take(self, size: int) -> bytes:
        content = self._stream.read(size)
        if len(content) < size:
            raise TarError("it ends before the end of the archive")
        return content

    def _pass(self, size: int) -> None:
        if not self._stream.skip(size):
            raise TarError("it ends before the end of the archive")


def _parsed(header: bytes) -> tuple[TarMember, bytes]:
    """Return the member of a header, and its kind."""
    if _number(header[148:156]) != sum(header) - sum(header[148:156]) + 8 * ord(" "):
        raise TarError("a header has a wrong checksum")
    name, kind = _text(header[:100]), bytes(header[156:157])
    if header[257:263] == b"ustar\0" and header[345]:
        name = f"{_text(header[345:500])}/{name}"
    return TarMember(name, _number(header[124:136]), is_folder=False), kind


def _with(member: TarMember, kind: bytes, name: str | None, size: int | None) -> TarMember:
    """Return a member with the name and the size that the header members before it gave it."""
    name = member.name if name is None else name
    # Before there was a kind for folders, a stroke at the end of the name told them.
    is_folder = kind == _FOLDER or (kind == b"\0" and name.endswith("/"))
    return TarMember(name, member.size if size is None else size, is_folder)


def _number(field: bytes) -> int:
    """Return a number of a header: octal digits, or, of large ones, bytes after a mark."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    match = _OCTAL.fullmatch(field)
    if match is None:
        raise TarError("a header has a number that is negative or none at all")
    return int(match[1] or b"0", 8)


def _text(field: bytes) -> str:
    return bytes(field).split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _attributes(content: bytes, name: str | None, size: int | None) -> tuple[str | None, int | None]:
    """Return the name and the size that the attributes of a member give it, the given ones where they do not."""
    for key, value in _records(content):
        if key == b"path":
            name = value.decode("utf-8", "surrogateescape")
        elif key == b"size":
            if not value.isdigit() or len(value) > 20:
                raise TarError("a member has a size that is negative or none at all")
            size = int(value)
        elif key.startswith(b"GNU.sparse"):
            raise TarError("a member is sparse, which no file of a study is")
    return name, size


def _check_common(content: bytes) -> None:
    """Refuse attributes that would give all members one name or size."""
    for key, _ in _records(content):
        if key in (b"path", b"size", b"linkpath") or key.startswith(b"GNU.sparse"):
            raise TarError("it gives all its members one name or size")


def _records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the attributes of a POSIX header member: lines `LENGTH KEY=VALUE`, the length that of the whole line."""
    at = 0
    while at < len(content):
        space = content.find(b" ", at, at + 8)
        digits = bytes(content[at:space])
        end = at + int(digits) if space > at and digits.isdigit() else 0
        equals = content.find(b"=", space, end)
        if not space < equals < end <= len(content) or content[end - 1] != ord("\n"):
            raise TarError("the attributes of a member cannot be read")
        yield bytes(content[space + 1 : equals]), bytes(content[equals + 1 : end - 1])
        at = end
