"""What was imported, beside the inventory of the paper's archive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batchlab.published.inventory import InventoryStudy, inventory
from batchlab.store.archive.study_import import StudyOutcome


@dataclass(frozen=True)
class ComparedWorkload:
    """One workload: what the lab holds of it, and what the inventory says to that."""

    workload: str
    numbers: tuple[int, ...]
    """Studies, complete, infeasible and incomplete trials, measurements."""

    verdict: str


def compare(studies: Sequence[StudyOutcome]) -> list[ComparedWorkload]:
    """Return every workload that was imported, by name."""
    workloads = sorted({study.path.workload for study in studies if study.is_imported})
    return [_compare(name, [study for study in studies if study.path.workload == name]) for name in workloads]


def _compare(workload: str, studies: list[StudyOutcome]) -> ComparedWorkload:
    found = [study for study in studies if study.is_imported]
    counts = {status: sum(study.counts.get(status, 0) for study in found) for status in _STATUSES}
    numbers = (len(found), *counts.values(), sum(study.num_measurements for study in found))
    known = [study for study in inventory() if study.workload == workload]
    return ComparedWorkload(workload, numbers, _verdict(found, known))


_STATUSES = ("COMPLETE", "INFEASIBLE", "INCOMPLETE")


def _verdict(found: list[StudyOutcome], known: list[InventoryStudy]) -> str:
    if not known:
        return "not in it"
    expected = {study.batch_size: (study.complete, study.infeasible, study.incomplete) for study in known}
    present = {study.path.batch_size: tuple(study.counts.get(status, 0) for status in _STATUSES) for study in found}
    if present == expected:
        return "equal"
    trials = sum(map(sum, present.values())) - sum(map(sum, expected.values()))
    return f"{len(present) - len(expected):+d} studies, {trials:+,d} trials"
