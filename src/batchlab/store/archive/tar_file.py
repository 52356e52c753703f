"""Studies of a tar file, treated as hostile: it streams by once, and is never unpacked to the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from batchlab.errors import InputError, shown
from batchlab.files import MOST_PATH
from batchlab.store.archive import limits
from batchlab.store.archive.convert import OVERHEAD, StudyFiles
from batchlab.store.archive.layout import Member, RejectedError, StudyPath, parse_path
from batchlab.store.archive.manifest import MOST_BYTES, NAME, Manifest, read_manifest
from batchlab.store.archive.streams import BROKEN, Stream
from batchlab.store.archive.tar import TarError, TarMember, TarReader

OFFICIAL_NAME = "batch_science_data.tar.bz2"
OFFICIAL_SHA256 = "6460ab86a6ab0f22a02e1c9b982e1ca31220bf41f669304ce86f14d19053f435"
_STARTS = (b"step", b'"step"')


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
            next(iter(TarReader(Stream(raw))), None)
        except (TarError, *BROKEN) as error:
            raise InputError(
                f"{_shown(path)} is no archive, or it is damaged or cut short: {error}."
                " Give an unpacked archive, or a .tar, .tar.bz2, .tar.gz, .tar.xz or .tar.zst file."
            ) from error


@dataclass(slots=True)
class _Seen:
    """What has come by of one study."""

    folder: str
    has_study: bool = False
    num_files: int = 0
    held_bytes: int = 0


class TarFile:
    """The studies of a tar file, while it streams by."""

    def __init__(self, path: Path, progress: Callable[[float], None]) -> None:
        """`progress` gets the share of the file that has been read."""
        self._path, self._progress = path, progress
        self.manifest: Manifest | None = None
        """Known once all studies have been yielded."""

        self._seen: dict[StudyPath, _Seen] = {}
        self._held: dict[StudyPath, StudyFiles] = {}
        self._total = self._files = self._folders = self._others = self._tiny = self._waste = 0

    def studies(self) -> Iterator[StudyFiles]:
        """Yield the studies; large or scattered ones come in several pieces. InputError where it is not whole."""
        total = max(1, self._path.stat().st_size)
        with self._path.open("rb") as raw:
            try:
                reader = TarReader(Stream(raw))
                for number, member in enumerate(reader):
                    if number % 64 == 0:
                        self._progress(raw.tell() / total)
                    yield from self._take(member, reader)
            except (TarError, *BROKEN) as error:
                raise InputError(f"{_shown(self._path)} is damaged or cut short: {error}. Fetch it again.") from error
        yield from self._held.values()

    def _take(self, info: TarMember, reader: TarReader) -> Iterator[StudyFiles]:
        """Take in one member; yield what has to make room for it, oldest first."""
        parts = _safe_parts(info.name)
        if info.is_folder:
            self._folders += 1
            limits.check_most(self._folders, limits.MOST_FOLDERS + 4 * self._files, "folders")
            return
        if parts[-1:] == [NAME] and len(parts) <= 2:
            self._take_manifest(info, parts, reader)
            return
        try:
            member = parse_path(parts)
        except RejectedError as error:
            raise InputError(f"{shown(info.name)}: {error}.") from None
        if member is None:
            self._pass_over(info, reader)
            return
        limits.check_size(info.name, info.size, limits.MOST_BYTES[member.kind])
        seen = self._look_at(info, member, "/".join(parts[:-1] if member.trial_id is None else parts[:-2]))
        seen.held_bytes += (size := self._put(member, self._content(info, member, reader)))
        self._total += size
        while self._total > limits.HELD_BYTES:
            yield self._release(next(iter(self._held)))

    def _take_manifest(self, info: TarMember, parts: list[str], reader: TarReader) -> None:
        if self.manifest is not None:
            raise InputError(f"{_shown(self._path)} holds two exports. Import one at a time.")
        limits.check_size(info.name, info.size, MOST_BYTES)
        self.manifest = read_manifest(bytes(reader.content()), parts[0] if len(parts) == 2 else "")

    def _pass_over(self, info: TarMember, reader: TarReader) -> None:
        """Count what has no part in the layout, so that it has an end."""
        limits.check_size(info.name, info.size, limits.MOST_BYTES["measurements"])
        self._others += 1
        self._waste += info.size
        limits.check_most(self._others, limits.MOST_OTHERS, "files that have no part in the layout")
        limits.check_most(self._waste + reader.extra_bytes, limits.MOST_WASTE, "bytes that nothing is made of")

    def _look_at(self, info: TarMember, member: Member, folder: str) -> _Seen:
        """Return what was seen of a study; two folders of it, a second study.json and too many files are refused."""
        seen = self._seen.get(member.study)
        if seen is None:
            seen = self._seen[member.study] = _Seen(folder)
            limits.check_most(len(self._seen), limits.MOST_STUDIES, "studies")
        if seen.folder != folder:
            raise InputError(
                f'The archive has two folders of the same study, "{shown(seen.folder)}" and "{shown(folder)}". '
                "Nothing was imported."
            )
        if member.trial_id is None and seen.has_study:
            raise InputError(f'The archive has a second "{shown(info.name)}". Nothing was imported.')
        seen.has_study |= member.trial_id is None
        seen.num_files += 1
        self._files += 1
        limits.check_most(seen.num_files, limits.MOST_FILES, "files of one study")
        return seen

    def _content(self, info: TarMember, member: Member, reader: TarReader) -> bytes:
        """Return the content of a file; of one that cannot be what its name says only the first bytes."""
        is_tiny = info.size < limits.LEAST_BYTES[member.kind]
        is_other = member.kind == "measurements" and not reader.start().startswith(_STARTS)
        if is_tiny or is_other:
            self._tiny += is_tiny
            self._waste += info.size
            limits.check_most(self._tiny, limits.MOST_TINY, "files that are too small to be what their names say")
            limits.check_most(self._waste + reader.extra_bytes, limits.MOST_WASTE, "bytes that nothing is made of")
        return reader.start() if is_other else reader.content()

    def _put(self, member: Member, content: bytes) -> int:
        """Hold a file, and return how much it takes."""
        files = self._held.get(member.study)
        if files is None:
            files = self._held[member.study] = StudyFiles(member.study)
        if member.trial_id is None:
            files.study = content
            return len(content) + OVERHEAD
        kept = files.metadata if member.kind == "metadata" else files.measurements
        if member.trial_id in kept:
            files.rejected.append((str(member.trial_id), f"{member.name.rpartition('/')[2]} is there twice"))
            return OVERHEAD
        kept[member.trial_id] = content
        return len(content) + OVERHEAD

    def _release(self, study: StudyPath) -> StudyFiles:
        self._total -= self._seen[study].held_bytes
        self._seen[study].held_bytes = 0
        return self._held.pop(study)


def _safe_parts(name: str) -> list[str]:
    parts = name.split("/")
    if name.startswith("/") or "\\" in name or "\0" in name or ".." in parts:
        raise InputError(
            f'The archive has a member "{shown(name)}" that leaves its tree. Nothing was imported from it.'
        )
    return [part for part in parts if part not in ("", ".")] if "" in parts or "." in parts else parts


def _shown(path: Path) -> str:
    return shown(str(path), MOST_PATH)
