"""Studies of an unpacked archive, treated as hostile: bounded, and without a step through a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from batchlab.core.limits import MOST_TRIALS
from batchlab.errors import InputError, shown
from batchlab.files import MOST_PATH
from batchlab.store.archive import limits
from batchlab.store.archive.convert import OVERHEAD, StudyFiles
from batchlab.store.archive.layout import TOP, Member, RejectedError, StudyPath, parse_path, parse_trial
from batchlab.store.archive.manifest import MOST_BYTES, NAME, Manifest, read_manifest

MOST_DEPTH = 16
_MOST_ENTRIES = MOST_TRIALS + limits.MOST_OTHERS
_OF_TRIALS = ("metadata.json", "measurements.csv")


@dataclass
class Tree:
    """The folders of all studies of an archive."""

    root: Path
    studies: dict[StudyPath, Path] = field(default_factory=dict)
    manifest: Manifest | None = None
    num_folders: int = 0

    def take(self, parts: tuple[str, ...], folder: Path) -> None:
        """Take in one study; a second folder of the same study is refused."""
        member = self._member(parts)
        known = self.studies.setdefault(member.study, folder)
        if known != folder:
            raise InputError(
                f"{_shown(known)} and {_shown(folder)} are the same study. Nothing was imported; remove one of them."
            )
        limits.check_most(len(self.studies), limits.MOST_STUDIES, "studies")

    def is_trial(self, parts: tuple[str, ...]) -> bool:
        """Return whether a folder is where the files of a trial lie."""
        try:
            return parse_path([*self._below(parts), "metadata.json"]) is not None
        except RejectedError:
            return False

    def _member(self, parts: tuple[str, ...]) -> Member:
        way_out = f"Is {_shown(self.root)} the folder above the datasets?"
        folder = _shown(self.root.joinpath(*parts))
        try:
            member = parse_path([*self._below(parts), "study.json"])
        except RejectedError as error:
            raise InputError(f"{folder}: {error}. {way_out}") from None
        if member is None:
            raise InputError(f"{folder} holds a study but names no workload. {way_out}")
        return member

    def _below(self, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return a path as it is below the folder of the manifest."""
        is_below = self.manifest is not None and parts[:1] == (self.manifest.place,)
        return parts[1:] if is_below else parts


def read_tree(root: Path) -> Tree:
    """Return the folders of all studies below an unpacked archive; links and the like are refused."""
    tree = Tree(root)
    tree.manifest = _read_manifest(root)
    _walk(tree, root, ())
    if not tree.studies:
        raise InputError(f"{_shown(root)} holds no study.json. Give the unpacked {TOP} folder, or the archive itself.")
    tree.studies = dict(sorted(tree.studies.items()))
    return tree


def _read_manifest(root: Path) -> Manifest | None:
    """Return the manifest in the root or in a folder of it; InputError where there are two."""
    folders = [
        root,
        *(Path(entry.path) for entry in _entries(root, _MOST_ENTRIES) if entry.is_dir(follow_symlinks=False)),
    ]
    found = [folder for folder in folders if os.path.lexists(folder / NAME)]
    if len(found) > 1:
        raise InputError(f"{_shown(root)} holds two exports: {', '.join(map(_shown, found))}. Import one at a time.")
    if not found:
        return None
    place = "" if found[0] == root else found[0].name
    content = _read(str(found[0] / NAME), MOST_BYTES)
    return None if content is None else read_manifest(content, place)


def _walk(tree: Tree, folder: Path, parts: tuple[str, ...]) -> None:
    """Take in the studies below a folder; within a study, nothing is looked at here."""
    tree.num_folders += 1
    limits.check_most(tree.num_folders, limits.MOST_OTHERS, "folders without a study.json")
    if len(parts) > MOST_DEPTH:
        raise InputError(f"{_shown(folder)} lies deeper than any study. Is {_shown(tree.root)} an archive?")
    entries = _entries(folder, _MOST_ENTRIES)
    for entry in entries:
        _refuse_links(entry)
    names = {entry.name for entry in entries}
    if "study.json" in names:
        tree.num_folders -= 1
        tree.take(parts, folder)
    elif names & set(_OF_TRIALS) and tree.is_trial(parts):
        tree.take(parts[:-1], folder.parent)  # a study that has lost its study.json is told, not passed over
    else:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _walk(tree, Path(entry.path), (*parts, entry.name))


def _entries(folder: Path | str, most: int) -> list[os.DirEntry[str]]:
    """Return what is in a folder, by name."""
    try:
        with os.scandir(folder) as entries:
            found = list(islice(entries, most + 1))
    except OSError as error:
        raise InputError(f"Could not read {_shown(folder)}: {error.strerror}.") from error
    if len(found) > most:
        raise InputError(f"{_shown(folder)} holds more than {most:,} things; no folder of an archive does.")
    return sorted(found, key=lambda entry: entry.name)


def read_tree_study(path: StudyPath, folder: Path) -> Iterator[tuple[StudyFiles, bool]]:
    """Yield the files of one study of a tree, of a large one in several pieces, and whether it is the last."""
    files, size, twice = StudyFiles(path), 0, set[int]()
    files.study = _read(f"{folder}/study.json", limits.MOST_BYTES["study"])
    for trial in _entries(folder, MOST_TRIALS + 1):
        _refuse_links(trial)
        if trial.name == "study.json" or not trial.is_dir(follow_symlinks=False):
            continue
        try:
            trial_id = parse_trial(trial.name)
        except RejectedError as error:
            files.rejected.append((shown(trial.name), str(error)))
            continue
        if trial_id in twice:
            files.rejected.append((str(trial_id), "the trial is there twice"))
            continue
        twice.add(trial_id)
        size += _read_trial(files, trial_id, trial.path)
        if size > limits.HELD_BYTES:
            yield files, False
            files, size = StudyFiles(path), 0
    yield files, True


def _read_trial(files: StudyFiles, trial_id: int, folder: str) -> int:
    """Take in the files of one trial and return how much they take."""
    size, metadata, measurements = 0, *(f"{folder}/{name}" for name in _OF_TRIALS)
    if (content := _read(metadata, limits.MOST_BYTES["metadata"])) is not None:
        files.metadata[trial_id] = content
        size += len(content) + OVERHEAD
    if (content := _read(measurements, limits.MOST_BYTES["measurements"])) is not None:
        files.measurements[trial_id] = content
        size += len(content) + OVERHEAD
    return size


def _refuse_links(entry: os.DirEntry[str]) -> None:
    if not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
        raise _link_error(entry.path)


def _link_error(path: str) -> InputError:
    return InputError(f"{_shown(path)} is a link or a device; an archive holds only files and folders. Remove it.")


def _read(path: str, most_bytes: int) -> bytes | None:
    """Return the bytes of a file of an archive; None where there is none."""
    try:
        # Not through a link, and without waiting for the other end of a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _link_error(path) from None
        raise InputError(f"Could not read {_shown(path)}: {error.strerror}.") from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise _link_error(path)
        limits.check_size(path, facts.st_size, most_bytes)
        content = os.read(descriptor, facts.st_size)
    finally:
        os.close(descriptor)
    if len(content) != facts.st_size:
        raise InputError(f"{_shown(path)} changed while it was read. Run the same command again.")
    return content


def _shown(path: Path | str) -> str:
    return shown(str(path), MOST_PATH)
