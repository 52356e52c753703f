"""What a report tells of one workload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from batchlab.analysis import TrainingPlan, WorkloadSummary
from batchlab.published.comparison import PublishedComparison


@dataclass(frozen=True, kw_only=True)
class Findings:
    """One workload of a report. What is left empty is left out of the page."""

    summary: WorkloadSummary
    spec: Mapping[str, Any] = field(default_factory=dict)
    """The resolved spec of its sweep."""

    environment: Mapping[str, Any] = field(default_factory=dict)
    """Host, processor, package versions, times: any names, nested as you like."""

    protocol: Mapping[str, Any] = field(default_factory=dict)
    """How it was run. `trained_steps` and `full_steps` tell what the race saved; other names are listed."""

    published: PublishedComparison | None = None
    """The paper's steps to this very goal, to stand beside the measured ones."""

    plan: TrainingPlan | None = None
    """Time and cost, where step times of the workload are stored."""

    rejected: int = 0
    """Broken studies and trials of its archive that were left out of the lab."""
