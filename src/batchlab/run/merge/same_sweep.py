"""Whether two labs have one sweep: the same spec but for batch sizes, trained by the same code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from batchlab.core.sweep import COSTS_ONLY, Sweep, differences
from batchlab.errors import LabError, shown
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import StoredSweep


def check_same_sweep(stored: StoredSweep, other_stored: StoredSweep, place: Path, other_place: Path) -> None:
    """Raise LabError where two specs differ in more than their batch sizes, or one was imported."""
    one, other = stored.spec, other_stored.spec
    if one is None or other is None:
        raise LabError(
            f'Sweep "{stored.name}" is in lab {place} and in {other_place}, and was imported. '
            "Only sweeps that were run can be joined; import it into a lab of its own."
        )
    changes = differences(_deciding(union(one, other)), _deciding(union(other, one)))
    for batch_size in sorted({*one.search.batch_sizes} & {*other.search.batch_sizes}):
        lines = differences(one.study(batch_size).plain(), other.study(batch_size).plain())
        changes = changes or [f"at batch size {batch_size}: {line}" for line in lines]
    if changes:
        raise LabError(
            f'Sweep "{one.name}" is not the same in lab {place} and in {other_place}: {"; ".join(changes)}. '
            "Only labs of one sweep can be merged."
        )


def check_same_code(one: Lab, sweep: StoredSweep, other: Lab, other_sweep: StoredSweep) -> None:
    """Raise LabError where studies of one sweep, at whatever batch size, were trained by different files."""
    trainers = [_trainers(one, sweep), _trainers(other, other_sweep)]
    if all(trainers) and trainers[0] != trainers[1]:
        names = [" and ".join(sorted(map(shown, map(str, each)))) for each in trainers]
        raise LabError(
            f'Sweep "{sweep.name}" was trained by {names[0]} in lab {one.folder}, and by {names[1]} in {other.folder}: '
            "trials of other code are other trials. Train one of them again."
        )


def union(one: Sweep, other: Sweep) -> Sweep:
    """Return a spec with the batch sizes of two."""
    sizes = tuple(sorted({*one.search.batch_sizes, *other.search.batch_sizes}))
    at = {**(one.at or {}), **(other.at or {})} or None
    return one.model_copy(update={"search": one.search.model_copy(update={"batch_sizes": sizes}), "at": at})


def _deciding(sweep: Sweep) -> dict[str, Any]:
    """Return a spec as plain data, without what decides nothing but costs: machines may differ in that."""
    plain = sweep.plain()
    return {**plain, "engine": {name: value for name, value in plain["engine"].items() if name not in COSTS_ONLY}}


def _trainers(lab: Lab, sweep: StoredSweep) -> set[str | None]:
    """Return by what the studies of a sweep were trained, as far as there are any; None is batchlab itself."""
    folders = [lab.study_folder(sweep.name, batch_size) for batch_size in sweep.batch_sizes]
    return {folder.record().trainer for folder in folders if folder.has_record}
