"""The manifest of an export: the digest of every file, so that an import can tell that all are as they were written.

`xxhsum --check batchlab.xxh128` reads it, too. The digest of the manifest itself is the archive's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from batchlab.errors import InputError, shown
from batchlab.store.archive.layout import Member, RejectedError, StudyPath, parse_path
from batchlab.store.seal import digest

NAME = "batchlab.xxh128"
MOST_BYTES = 1 << 26
"""The manifest of an archive of 200,000 trials has 45 MB."""

_LINE = re.compile(r"([0-9a-f]{32})  (.+)")


@dataclass(frozen=True)
class Manifest:
    """What an archive says of its own files."""

    place: str
    """The folder within the archive that it lies in: no part of a workload's name."""

    digest: str
    files: Mapping[StudyPath, Mapping[str, str]]
    """The digest of every file, by its study and its path within that."""

    def check_study(self, study: StudyPath, found: Mapping[str, str]) -> None:
        """Raise InputError for the first file of a study that is not as the manifest says."""
        listed = self.files.get(study, {})
        for name in sorted({*listed, *found}):
            if name not in found:
                raise _misfit(f"{study}/{name} is missing")
            if name not in listed:
                raise _misfit(f"{study}/{name} is not listed")
            if listed[name] != found[name]:
                raise _misfit(f"{study}/{name} was changed")

    def check_studies(self, found: Collection[StudyPath]) -> None:
        """Raise InputError for the first study that the archive lacks."""
        for study in sorted(self.files.keys() - set(found)):
            raise _misfit(f"{study} is missing")

    def of(self, study: StudyPath) -> Manifest:
        """Return what the manifest says of one study, to be sent to where that is read."""
        return Manifest(self.place, self.digest, {study: self.files.get(study, {})})


def write_manifest(digests: Mapping[str, str]) -> bytes:
    """Return the manifest of files whose digests are known by their paths."""
    return "".join(f"{found}  {path}\n" for path, found in sorted(digests.items())).encode()


def read_manifest(content: bytes, place: str) -> Manifest:
    """Return the manifest in a file; InputError where it is none, or that of an export that was not ended."""
    if not content:
        raise InputError(f"The archive has an empty {NAME}: its export was not ended. Export it again.")
    files: dict[StudyPath, dict[str, str]] = {}
    for line in content.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        match = _LINE.fullmatch(line)
        member = _member(match[2]) if match else None
        if match is None or member is None:
            raise _misfit(f'a line of it is no digest and path: "{shown(line)}"')
        files.setdefault(member.study, {})[member.name] = match[1]
    return Manifest(place, digest(content), files)


def _member(path: str) -> Member | None:
    """Return the file of a study that a line names, in the one way in which we write it."""
    try:
        member = parse_path(path.split("/"))
    except RejectedError:
        return None
    return member if member is not None and path == f"{member.study}/{member.name}" else None


def _misfit(what: str) -> InputError:
    return InputError(
        f"The archive does not fit its manifest {NAME}: {what}. Fetch it again, or remove the manifest if the change "
        "is meant. Nothing was imported."
    )
