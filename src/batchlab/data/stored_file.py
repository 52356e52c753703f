"""Files in a folder or in a tar, listed without unpacking and read one by one."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from batchlab.data.cache_key import Origin
from batchlab.data.guarded_tar import members, open_tar
from batchlab.errors import DataError, shown
from batchlab.files import read_bounded

MOST_BYTES = 1 << 28
"""Of one file that is read whole: an image, a list of names."""

_BLOCK_BYTES = 512  # a tar ends with two blocks of zeros


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file, or a member of a tar. Datasets have millions: what they share is held once."""

    name: str
    """Its path below the folder or inside the tar, parts joined by `/`."""

    num_bytes: int
    root: Path
    """The folder, or the tar."""

    changed: int = 0
    """When it, or the tar, was last changed, in nanoseconds."""

    offset: int | None = None
    """Where it begins in the tar."""

    @property
    def origin(self) -> Origin:
        """What tells it from other files."""
        return self.name, self.num_bytes, self.changed

    @property
    def path(self) -> Path:
        """The file itself, or the tar that holds it."""
        return self.root / self.name if self.offset is None else self.root

    def __str__(self) -> str:
        return str(self.path) if self.offset is None else f"{self.path}: {self.name}"

    def read(self) -> bytes:
        """Return the whole content; DataError where it cannot be had."""
        if self.num_bytes > MOST_BYTES:
            raise DataError(f"{self} has {self.num_bytes:,} bytes, more than {MOST_BYTES:,}. Replace it.")
        if self.offset is None:
            content = read_bounded(self.path, MOST_BYTES, DataError)
        else:
            content = self._read_member(self.offset)
        if len(content) < self.num_bytes:
            raise DataError(f"{self} is truncated: {len(content):,} of {self.num_bytes:,} bytes. Copy it again.")
        return content

    def _read_member(self, offset: int) -> bytes:
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                return file.read(self.num_bytes)
        except OSError as error:
            raise DataError(f"{self} cannot be read: {error.strerror}.") from error

    def lines(self) -> list[str]:
        """Return the lines of a text file; DataError where it is not UTF-8."""
        try:
            return self.read().decode("utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise DataError(f"{self} is not a text file ({error}). Replace it with the published one.") from error


def stored_file(path: Path) -> StoredFile:
    """Return one file that is there."""
    facts = path.stat()
    return StoredFile(path.name, facts.st_size, path.parent, facts.st_mtime_ns)


def list_files(path: Path) -> list[StoredFile]:
    """Return every file below a folder, or in an uncompressed tar, sorted by name."""
    found = _in_folder(path) if path.is_dir() else tar_members(path)
    return sorted(found, key=lambda file: file.name)


def tar_members(tar: Path | StoredFile) -> Iterator[StoredFile]:
    """Yield the files in an uncompressed tar, which may itself be a member of another one.

    Only headers are read. A tar without its end is refused: it would silently lack files.
    """
    path, start, num_bytes = (tar, 0, None) if isinstance(tar, Path) else (tar.path, tar.offset or 0, tar.num_bytes)
    try:
        with path.open("rb") as file:
            facts = os.fstat(file.fileno())
            end = start + num_bytes if num_bytes is not None else facts.st_size
            file.seek(max(start, end - 2 * _BLOCK_BYTES))
            if end - start < 2 * _BLOCK_BYTES or any(file.read(2 * _BLOCK_BYTES)):
                raise tarfile.ReadError("its end is missing")
            file.seek(start)
            with open_tar(file, "r:") as opened:
                yield from (
                    StoredFile(member.name.removeprefix("./"), member.size, path, facts.st_mtime_ns, member.offset_data)
                    for member in members(opened, end - start)
                    if member.isfile()
                )
    except (tarfile.TarError, OSError) as error:
        raise DataError(f"{tar}: the tar is truncated or damaged ({shown(str(error))}). Copy it again.") from error


def _in_folder(root: Path, inside: str = "", above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[StoredFile]:
    """Yield the files below a folder; a link that leads back to a folder above it is not followed."""
    facts = os.stat(root / inside)
    if (facts.st_dev, facts.st_ino) in above:
        return
    above |= {(facts.st_dev, facts.st_ino)}
    with os.scandir(root / inside) as entries:
        for entry in entries:
            name = inside + entry.name
            if entry.is_dir():
                yield from _in_folder(root, f"{name}/", above)
            else:
                yield StoredFile(name, entry.stat().st_size, root, entry.stat().st_mtime_ns)
