"""A sweep as a lab holds it: run here from a spec, or imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from batchlab.core.goal import Goal
from batchlab.core.sweep import Sweep
from batchlab.core.value import Items, Value

FORMER_FILES = ("best_so_far.arrow",)
"""What earlier versions kept beside the studies of an imported sweep. Nothing reads it, and nothing removes it."""


class ImportRecord(Value):
    """The contents of import.json: what is known of a sweep that was not run here."""

    name: str
    workload: str
    batch_sizes: Items[int]
    goal: Goal | None = None
    """The goal that is used where none is asked for; the paper's, for its workloads."""

    source: dict[str, Any]
    """The archive: its name, its checksum where it was one file, and when it was imported."""


@dataclass(frozen=True)
class StoredSweep:
    """What every sweep of a lab has, wherever it comes from."""

    name: str
    workload: str
    batch_sizes: tuple[int, ...]
    goal: Goal | None
    """The hardest goal of its spec; None for an imported sweep without a known one."""

    spec: Sweep | None = None
    """What was run; None for an imported sweep."""

    source: dict[str, Any] | None = None
    """Where it was imported from; None for one that was run."""

    @classmethod
    def run(cls, spec: Sweep) -> StoredSweep:
        """Return the sweep of a spec."""
        return cls(spec.name, spec.workload.name, spec.search.batch_sizes, spec.search.hardest_goal, spec=spec)

    @classmethod
    def imported(cls, record: ImportRecord) -> StoredSweep:
        """Return an imported sweep."""
        return cls(record.name, record.workload, record.batch_sizes, record.goal, source=record.source)
