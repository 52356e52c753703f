"""When a trial is evaluated, and on what."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from batchlab.core.value import Value

Split = Literal["train", "val", "test"]


class Evaluation(Value):
    """The steps at which a trial is evaluated: geometric (`growth`) or regular (`every`).

    Step 0, before any update, is always measured, and so is a trial's last step. With `growth = g` the
    step after t is ceil(g * t), so steps to a goal are late by a factor of g at the most.

    >>> list(Evaluation(growth=1.5).steps(10))
    [0, 1, 2, 3, 5, 8, 10]
    """

    growth: Annotated[float, Field(gt=1)] | None = None
    every: Annotated[int, Field(ge=1)] | None = None
    splits: tuple[Split, ...] = ("val",)
    """`train` is measured on a fixed part of the training set, as large as the validation set."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.growth is None) == (self.every is None):
            raise ValueError("give one of `growth` (geometric steps) and `every` (regular steps)")
        if not self.splits:
            raise ValueError('`splits` names nothing to evaluate on; use ["val"]')
        return self

    def next_step(self, step: int) -> int:
        """Return the first evaluated step after `step`."""
        if self.every is not None:
            return step - step % self.every + self.every
        assert self.growth is not None
        return max(step + 1, math.ceil(self.growth * step))

    def first_step_from(self, bound: float) -> int:
        """Return the first evaluated step that is not before `bound`."""
        if self.every is not None:
            return math.ceil(bound / self.every) * self.every
        step = 0
        while step < bound:
            step = self.next_step(step)
        return step

    def steps(self, last_step: int) -> Iterator[int]:
        """Yield every evaluated step from 0 to `last_step`, both included."""
        step = 0
        while step < last_step:
            yield step
            step = self.next_step(step)
        yield last_step
