"""rejected.json: what imports left out of a lab, ever: it is added to, and each broken thing stands in it once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from batchlab.core.value import Value
from batchlab.errors import SpecError
from batchlab.files import read_json, write_json
from batchlab.store.seal import damaged

FILE = "rejected.json"


class Rejected(Value):
    """A study or trial of an archive that could not be imported."""

    path: str
    """Where it is in its archive."""

    reason: str
    sweep: str | None = None
    """The sweep that it would be of; None where an older batchlab has noted it."""

    archive: str | None = None
    """The archive in which it was met first."""


def read_rejected(lab: Path) -> list[Rejected]:
    """Return what imports have left out of a lab; DamagedError where the file cannot be used."""
    path = lab / FILE
    if not path.exists():
        return []
    data = read_json(path)
    if not isinstance(data, list):
        raise damaged(path, "it is no list")
    try:
        return [Rejected.parse(entry, str(path)) for entry in data]
    except SpecError as error:
        raise damaged(path, str(error).removesuffix(".")) from None


def add_rejected(lab: Path, found: Iterable[Rejected]) -> None:
    """Note what an import has left out; a thing that stands there already, for whatever reason, is not noted again."""
    known = read_rejected(lab)
    things = {(entry.path, entry.sweep) for entry in known}
    every = list(known)
    for entry in found:
        if not things & {(entry.path, entry.sweep), (entry.path, None)}:
            things.add((entry.path, entry.sweep))
            every.append(entry)
    if len(every) > len(known) or not (lab / FILE).exists():
        write_json(lab / FILE, [entry.plain() for entry in every])


def count_rejected(lab: Path, workloads: dict[str, str]) -> Counter[str]:
    """Return how many things were left out of each sweep; `workloads` are those of the lab's sweeps, by their names.

    What an older batchlab noted without a sweep counts for the one that has its workload, or for the workload itself.
    """
    names = {workload: name for name, workload in workloads.items()}
    return Counter(entry.sweep or _sweep_of(entry.path, names) for entry in read_rejected(lab))


def _sweep_of(path: str, names: dict[str, str]) -> str:
    parts = path.split("/")
    prefixes = ("/".join(parts[:length]) for length in range(len(parts), 2, -1))
    return next((names[prefix] for prefix in prefixes if prefix in names), path)
