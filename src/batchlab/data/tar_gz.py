"""Gzipped tars, read once from start to end: only the end of a gzip file proves what came before."""

from __future__ import annotations

import tarfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from batchlab.data.guarded_tar import members, open_tar
from batchlab.data.text_lines import Told, ignore, open_text
from batchlab.errors import DataError, shown

_WAY_OUT = "Replace it with the published one."
_BLOCK_BYTES = 1 << 20

MOST_FILES = 50
"""Files of the most bytes in a tar of which a few are read; such a tar may in any case have MOST_SMALL bytes."""

MOST_SMALL = 1 << 26


@contextmanager
def open_tar_gz(path: Path, most_bytes: int, told: Told = ignore) -> Iterator[tarfile.TarFile]:
    """Open a tar whose members are read in their order; they can be trusted once the block has ended without an error.

    DataError names the file where it is damaged anywhere, be it only a bit in the middle of a member, or where it
    unpacks to more than `most_bytes`.
    """
    try:
        with open_text(path, told, most_bytes) as unpacked, open_tar(unpacked, "r|") as tar:
            yield tar
            while unpacked.read(_BLOCK_BYTES):  # a tar ends before its file does; the checksum is at the very end
                pass
    except tarfile.TarError as error:
        raise DataError(f"{path}: the tar is truncated or damaged ({shown(str(error))}). {_WAY_OUT}") from error


def read_members(path: Path, names: Collection[str], most_bytes: int) -> dict[str, bytes]:
    """Return the content of the members of these names, in whatever folder of the tar; those not there are left out.

    DataError names one that is no regular file or that has more than `most_bytes`.
    """
    read = {}
    most = max(MOST_FILES * most_bytes, MOST_SMALL)
    with open_tar_gz(path, most) as tar:
        for member in members(tar, most):
            name = member.name.rpartition("/")[2]
            if name not in names:
                continue
            file = tar.extractfile(member) if member.isfile() and member.size <= most_bytes else None
            if file is None:
                inside = shown(member.name)
                raise DataError(f"{path}: {inside} is no file of at most {most_bytes:,} bytes. {_WAY_OUT}")
            read[name] = file.read()
    return read
