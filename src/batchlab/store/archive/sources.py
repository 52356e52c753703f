"""Where archives are read from: unpacked trees and tar files, both treated as hostile."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import hashlib
import lzma
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from batchlab.errors import InputError
from batchlab.store.archive.convert import StudyFiles
from batchlab.store.archive.layout import TOP, Member, RejectedError, StudyPath, parse_path, parse_trial

OFFICIAL_NAME = "batch_science_data.tar.bz2"
OFFICIAL_SHA256 = "6460ab86a6ab0f22a02e1c9b982e1ca31220bf41f669304ce86f14d19053f435"
MAX_BYTES = {"study": 1 << 20, "metadata": 1 << 20, "measurements": 1 << 28}
"""Larger files are refused: the published ones have kilobytes."""

_BROKEN = (tarfile.TarError, EOFError, lzma.LZMAError, zlib.error, OSError)
HELD_BYTES = 1 << 28
"""Raw bytes of unfinished studies that are held in memory while a tar file is read."""


def tree_studies(root: Path) -> dict[StudyPath, Path]:
    """Return the folders of all studies below an unpacked archive; links and the like are refused."""
    studies: dict[StudyPath, Path] = {}
    for folder in _study_folders(root):
        parts = folder.relative_to(root).parts
        try:
            member = parse_path([*parts, "study.json"])
        except RejectedError as error:
            raise InputError(f"{folder}: {error}. Is {root} the folder above the datasets?") from None
        if member is None:
            raise InputError(f"{folder} holds a study but names no workload. Is {root} the folder above the datasets?")
        studies[member.study] = folder
    if not studies:
        raise InputError(f"{root} holds no study.json. Give the unpacked {TOP} folder, or the archive itself.")
    return dict(sorted(studies.items()))


def _study_folders(folder: Path) -> Iterator[Path]:
    """Yield the folders with a study.json; below those, nothing is looked at here."""
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        _refuse_links(entry)
    if any(entry.name == "study.json" for entry in found):
        yield folder
        return
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            yield from _study_folders(Path(entry.path))


def read_tree_study(path: StudyPath, folder: Path) -> StudyFiles:
    """Return the files of one study of a tree."""
    files = StudyFiles(path, _read_small(f"{folder}/study.json", "study"))
    with os.scandir(folder) as entries:
        trials = [entry for entry in entries if entry.name != "study.json"]
    for trial in trials:
        _refuse_links(trial)
        if not trial.is_dir(follow_symlinks=False):
            continue
        try:
            trial_id = parse_trial(trial.name)
        except RejectedError as error:
            files.rejected.append((f"{path.workload}/{path.batch_size}/{trial.name}", str(error)))
            continue
        _read_trial(files, trial_id, trial)
    return files


def _read_trial(files: StudyFiles, trial_id: int, folder: os.DirEntry[str]) -> None:
    if trial_id in files.metadata or trial_id in files.measurements:
        files.rejected.append((folder.name, f"trial {trial_id} is there twice"))
        return
    with contextlib.suppress(FileNotFoundError):
        files.metadata[trial_id] = _read_small(f"{folder.path}/metadata.json", "metadata")
    with contextlib.suppress(FileNotFoundError):
        files.measurements[trial_id] = _read_small(f"{folder.path}/measurements.csv", "measurements")


def _refuse_links(entry: os.DirEntry[str]) -> None:
    if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
        raise _link_error(entry.path)


def _link_error(path: str) -> InputError:
    return InputError(f"{path} is a link or a device; an archive holds only files and folders. Remove it.")


def _read_small(path: str, kind: str) -> bytes:
    try:
        # Not through a link, and without waiting for the other end of a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _link_error(path) if error.errno == errno.ELOOP else InputError(f"{path}: {error.strerror}.") from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise _link_error(path)
        if facts.st_size > MAX_BYTES[kind]:
            raise InputError(f"{path} is larger than {MAX_BYTES[kind]:,} bytes; no such file belongs in an archive.")
        content = os.read(descriptor, facts.st_size)
    finally:
        os.close(descriptor)
    if len(content) != facts.st_size:
        raise InputError(f"{path} changed while it was read. Run the same command again.")
    return content


def check_official(path: Path) -> str | None:
    """Return the SHA-256 of a file with the official name; InputError if it is not the official one."""
    if path.name != OFFICIAL_NAME:
        return None
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != OFFICIAL_SHA256:
        raise InputError(
            f"{path} has SHA-256 {found}, the published archive {OFFICIAL_SHA256}. Fetch it again, "
            "or rename the file if it is meant to be another."
        )
    return found


def check_tar(path: Path) -> None:
    """Raise InputError unless the file begins as a tar file does, compressed or not."""
    with path.open("rb") as raw:
        try:
            with _decompressed(raw, path) as stream, tarfile.open(fileobj=stream, mode="r|"):
                pass
        except _BROKEN as error:
            raise InputError(
                f"{path} is no archive, or it is damaged or cut short: {error}."
                " Give an unpacked archive, or a .tar, .tar.bz2, .tar.gz, .tar.xz or .tar.zst file."
            ) from error


def tar_studies(path: Path, progress: Callable[[float], None]) -> Iterator[StudyFiles]:
    """Yield the studies of a tar file while it streams by; large or scattered ones come in several pieces.

    `progress` is told the share of the file that has been read.
    """
    held: dict[StudyPath, StudyFiles] = {}
    total = max(1, path.stat().st_size)
    with path.open("rb") as raw:
        try:
            with _decompressed(raw, path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
                for info in archive:
                    progress(raw.tell() / total)
                    yield from _hold(held, info, archive)
        except _BROKEN as error:
            raise InputError(f"{path} is damaged or cut short: {error}. Fetch it again.") from error
    yield from held.values()


def _hold(held: dict[StudyPath, StudyFiles], info: tarfile.TarInfo, archive: tarfile.TarFile) -> Iterator[StudyFiles]:
    """Take in one member; yield what has to make room for it, oldest first."""
    parts = _safe_parts(info)
    if info.isdir():
        return
    try:
        member = parse_path(parts)
    except RejectedError as error:
        raise InputError(f"{info.name}: {error}.") from None
    if member is None:
        return
    files = held.setdefault(member.study, StudyFiles(member.study))
    _put(files, member, _content(info, member, archive))
    while sum(each.size for each in held.values()) > HELD_BYTES:
        yield held.pop(next(iter(held)))


def _put(files: StudyFiles, member: Member, content: bytes) -> None:
    if member.kind == "study":
        files.study = content
        return
    assert member.trial_id is not None
    kept = files.metadata if member.kind == "metadata" else files.measurements
    if member.trial_id in kept:
        place = f"{member.study.workload}/{member.study.batch_size}/{member.trial_id}"
        files.rejected.append((place, f"{member.kind} is there twice; the first one was taken"))
    else:
        kept[member.trial_id] = content


def _safe_parts(info: tarfile.TarInfo) -> tuple[str, ...]:
    path = PurePosixPath(info.name)
    if path.is_absolute() or ".." in path.parts or "\\" in info.name or "\0" in info.name:
        raise InputError(f'The archive has a member "{info.name}" that leaves its tree. Nothing was imported from it.')
    if not (info.isreg() or info.isdir()):
        raise InputError(f'The archive has a member "{info.name}" that is a link or a device. Nothing was imported.')
    return path.parts


def _content(info: tarfile.TarInfo, member: Member, archive: tarfile.TarFile) -> bytes:
    if info.size > MAX_BYTES[member.kind]:
        raise InputError(
            f'The archive has a member "{info.name}" of {info.size:,} bytes, more than {MAX_BYTES[member.kind]:,}. '
            "Nothing was imported."
        )
    file = archive.extractfile(info)
    assert file is not None
    return file.read()


def _decompressed(raw: IO[bytes], path: Path) -> Any:
    """Return the stream inside a compressed file, told by its first bytes."""
    start = raw.read(6)
    raw.seek(0)
    if start.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    if start.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=raw)
    if start.startswith(b"\xfd7zXZ"):
        return lzma.LZMAFile(raw)
    if start.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    return _Plain(raw)


class _Plain:
    """An uncompressed stream, closed by its owner."""

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw

    def read(self, size: int) -> bytes:
        """Return the next bytes."""
        return self._raw.read(size)

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *details: object) -> None:
        pass
