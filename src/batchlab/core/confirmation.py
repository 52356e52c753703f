"""Confirmation: the best points of a study, trained again with fresh seeds."""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from batchlab.core.goal import Goal
from batchlab.core.limits import MOST_TRIALS
from batchlab.core.value import Items, Value
from batchlab.errors import shown

REPLICATE_STRIDE = 1 << 20
"""More trials than any study has."""


class Confirm(Value):
    """The table `sweep.confirm`: how the best points of each batch size are trained again, with fresh seeds."""

    written: ClassVar[str] = "a table, such as {seeds = 6, points = 3}"

    seeds: Annotated[int, Field(ge=1)] = 6
    """Replicates of each point; fewer than 6, or beyond three points a few more, give no 95 % interval."""

    points: Annotated[int, Field(ge=1)] = 3
    """Points confirmed at the most: those that met the goal first."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.seeds * self.points > MOST_TRIALS:
            asked = f"seeds = {shown(self.seeds)} of points = {shown(self.points)}"
            raise ValueError(f"{asked} are more than {MOST_TRIALS:,} replicates; give fewer")
        return self


class Replicate(Value):
    """One more run of a trial's point, with initial weights, order and noise of its own."""

    trial_id: int
    """The trial whose point was trained again."""

    replicate: int
    """From 1; 0 would be the trial itself."""

    goal_step: int | None = None
    """The first evaluated step that met the goal; None where it was not met within `Confirmation.end_step`."""

    last_step: int
    diverged_step: int | None = None
    wall_seconds: float | None = None


class Confirmation(Value):
    """What became of the replicates of a study's best points."""

    goal: Goal
    seeds: int
    """Replicates of each point."""

    trial_ids: Items[int]
    """The points that were confirmed, fewest steps first."""

    end_step: int
    """Where a replicate ends that has not met the goal."""

    replicates: Items[Replicate]
    """In the order of `trial_ids`, then of replicates."""

    def without_times(self) -> Confirmation:
        """Return what is the same wherever and whenever the replicates are trained."""
        replicates = tuple(each.model_copy(update={"wall_seconds": None}) for each in self.replicates)
        return self.model_copy(update={"replicates": replicates})


def replicate_id(trial_id: int, replicate: int) -> int:
    """Return the number that a replicate trains under: every random stream of a trainer is keyed by it.

    >>> replicate_id(3, 0), replicate_id(3, 1)
    (3, 1048579)
    """
    return replicate * REPLICATE_STRIDE + trial_id
