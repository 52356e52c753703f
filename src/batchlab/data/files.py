"""Dataset files: where they are looked for, how their checksum is proven, how a missing one is fetched.

A file is looked for in the folder given as `--data`, then in the one that `BATCHLAB_DATA` names (each as
DIR/<dataset folder>/<file> and DIR/<file>), then in the cache folder. A missing file is fetched from its
official addresses into the cache folder. Nothing is ever written anywhere else. What has no known checksum, often a
whole folder, is found by its name in the same places.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from batchlab.errors import DataError
from batchlab.files import read_bounded, write_file

DATA_VARIABLE = "BATCHLAB_DATA"
TIMEOUT_SECONDS = 30.0
_LEAST_BOUND = 1 << 27
"""A file of another size than the published one is read up to here, to tell its checksum."""

DataState = Literal["present", "fetchable", "missing"]

Download = Callable[[str, int], bytes]
"""From a URL and the most bytes to accept to the content; raises OSError where that fails."""


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One published file, known by its checksum."""

    name: str
    folders: tuple[str, ...]
    """Names that the dataset's folder may have; the first is used in the cache."""

    num_bytes: int
    sha256: str
    urls: tuple[str, ...] = ()
    """Official addresses, tried in this order."""

    def __str__(self) -> str:
        return f"{self.folders[0]}/{self.name}"


Reader = Callable[[DataFile], bytes]
"""From a file to its proven content: `read`, told where to look."""


def cache_dir() -> Path:
    """Return the folder that keeps fetched files: `$XDG_CACHE_HOME/batchlab/data`, by default below `~/.cache`.

    DataError where the system knows no home of the user.
    """
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if root.startswith("~"):
        raise DataError("There is no home folder for files that are kept: set HOME, or XDG_CACHE_HOME to a folder.")
    return Path(root) / "batchlab" / "data"


def places(file: DataFile, data_dir: Path | None) -> list[Path]:
    """Return every path at which `file` is looked for, in this order."""
    paths = [folder / path for folder in _data_folders(data_dir).values() for path in _inside(file)]
    return [*paths, *(folder / file.folders[0] / file.name for folder in _cache_folders())]


def find(file: DataFile, data_dir: Path | None) -> Path | None:
    """Return the first place where something of that name is, or None; whether it is the file is not looked at."""
    return next((path for path in places(file, data_dir) if os.path.exists(path)), None)


def find_any(names: Sequence[str], folders: Sequence[str], data_dir: Path | None) -> Path | None:
    """Return the first file or folder that has one of `names`, or None; `folders` as in `DataFile`.

    A name may be a pattern, `tiny-imagenet-*.tar`. An earlier place wins over an earlier name.
    """
    roots = [*_data_folders(data_dir).values(), *_cache_folders()]
    inside = [root / folder for root in roots for folder in (*folders, "")]
    return next((path for place in inside for name in names for path in sorted(place.glob(name))), None)


def state_of_any(names: Sequence[str], folders: Sequence[str], data_dir: Path | None) -> DataState:
    """Return whether something of one of these names is there; only names are looked at."""
    return "missing" if find_any(names, folders, data_dir) is None else "present"


def missing(dataset: str, place: str) -> DataError:
    """Return the error for a dataset that was not found: `place` says what to put where."""
    return DataError(
        f"The files of {dataset} are missing: put {place} into a folder and give it as --data DIR,"
        f" or set {DATA_VARIABLE} to it."
    )


def state(file: DataFile, data_dir: Path | None) -> DataState:
    """Return whether `file` is there, could be fetched, or neither; a file of the wrong size is `missing`."""
    path = find(file, data_dir)
    if path is None:
        return "fetchable" if file.urls else "missing"
    return "present" if path.stat().st_size == file.num_bytes else "missing"


def download(url: str, max_bytes: int) -> bytes:
    """Return what `url` serves, at most `max_bytes`; OSError where it cannot be had."""
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            content: bytes = response.read(max_bytes + 1)
    except HTTPException as error:
        raise OSError(f"broken answer ({type(error).__name__})") from error
    if len(content) > max_bytes:
        raise OSError(f"more than {max_bytes:,} bytes")
    return content


def read(file: DataFile, data_dir: Path | None, download: Download = download) -> bytes:
    """Return the content of `file`, its checksum proven; it is fetched into the cache where it is nowhere found.

    A file that is found but is not the published one is refused, not skipped: somebody meant it to be used.
    """
    check_data_folders(data_dir)
    path = find(file, data_dir)
    return _fetch(file, data_dir, download) if path is None else _read_proven(file, path)


def _read_proven(file: DataFile, path: Path) -> bytes:
    try:
        content = read_bounded(path, max(file.num_bytes, _LEAST_BOUND), DataError)
    except DataError as error:
        raise DataError(f"{error} Replace it, or use another --data DIR.") from None
    if _sha256(content) != file.sha256:
        raise DataError(
            f"{path} is not the published {file}: SHA-256 {_sha256(content)} of {len(content):,} bytes,"
            f" expected {file.sha256} of {file.num_bytes:,} bytes."
            " Replace it with the original, or delete it to have that fetched."
        )
    return content


def _fetch(file: DataFile, data_dir: Path | None, download: Download) -> bytes:
    failures = []
    for url in file.urls:
        try:
            content = download(url, file.num_bytes)
        except OSError as error:
            failures.append(f"{url}: {error}")
            continue
        if _sha256(content) == file.sha256:
            write_file(_cached(file), content)
            return content
        failures.append(f"{url}: {len(content):,} bytes with SHA-256 {_sha256(content)}, expected {file.sha256}")
    fetching = f"fetching failed ({'; '.join(failures)})" if failures else "it cannot be fetched"
    raise DataError(
        f"{file} is missing: looked at {', '.join(map(str, places(file, data_dir))) or 'no folder'}; {fetching}."
        f" Put the file into a folder and give it as --data DIR, or set {DATA_VARIABLE} to it."
    )


def check_data_folders(data_dir: Path | None) -> None:
    """Raise DataError where a folder that the user gave is none."""
    for given_as, folder in _data_folders(data_dir).items():
        if not folder.is_dir():
            raise DataError(f"{given_as} names {folder}, which is no folder. Correct it or leave it out.")


def _data_folders(data_dir: Path | None) -> dict[str, Path]:
    """Return the folders that the user gave, by how they were given."""
    given = {"--data": data_dir, DATA_VARIABLE: os.environ.get(DATA_VARIABLE)}
    return {given_as: Path(os.path.expanduser(folder)) for given_as, folder in given.items() if folder}


def _cache_folders() -> list[Path]:
    """Return the cache folder, or nothing where there is no home: then nothing is kept that could be found."""
    try:
        return [cache_dir()]
    except DataError:
        return []


def _inside(file: DataFile) -> list[Path]:
    return [*(Path(folder, file.name) for folder in file.folders), Path(file.name)]


def _cached(file: DataFile) -> Path:
    return cache_dir() / file.folders[0] / file.name


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Source:
    """Where a dataset's files come from: what every loader is given."""

    data_dir: Path | None = None
    download: Download = download

    def read(self, file: DataFile) -> bytes:
        """Return the proven content of `file`, fetched where it is missing."""
        return read(file, self.data_dir, self.download)

    def find_any(self, names: Sequence[str], folders: Sequence[str]) -> Path | None:
        """Return the first file or folder that has one of `names`, or None: the function of this name."""
        check_data_folders(self.data_dir)
        return find_any(names, folders, self.data_dir)
