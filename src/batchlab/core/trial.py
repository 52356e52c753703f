"""Trial: one training run of one metaparameter point, and how it ended."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, Strict

from batchlab.core.value import Value

Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""A whole number that a table holds."""


class Status(StrEnum):
    """How a trial ended. The names are those of the published data; never remove one."""

    COMPLETE = "COMPLETE"
    """Trained to the end of its study without diverging."""

    INFEASIBLE = "INFEASIBLE"
    """Diverged: its loss or parameters left the finite numbers, or passed the explosion bound."""

    INCOMPLETE = "INCOMPLETE"
    """Stopped for another reason; it counts for nothing."""


TIMES = frozenset({"wall_seconds", "environment"})
"""What of a trial depends on when and where it was trained."""


class Trial(Value):
    """The record of one finished trial; its curve is kept beside it, in the measurements."""

    trial_id: Count
    """Its number among the points of the study, from 0."""

    status: Annotated[Status, Strict(False)]
    metaparameters: dict[str, float]
    last_step: Count
    """The last step that is stored; for an infeasible trial the last one before it diverged."""

    diverged_step: Count | None = None
    """The first update whose loss was not finite or too large."""

    round: Count = 1
    """The round of the race that tried it: 1, then one more for each replacement of diverged trials."""

    wall_seconds: float | None = None
    """Its share of the time of its pack."""

    environment: dict[str, Any] = Field(default_factory=dict)
    """Host, device and package versions."""

    def without_times(self) -> Trial:
        """Return what is the same wherever and whenever the trial is trained."""
        return self.model_copy(update={"wall_seconds": None, "environment": {}})
