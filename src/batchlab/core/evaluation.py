"""When a trial is evaluated, and on what."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from batchlab.core.limits import MOST_GROWTH, MOST_STEPS
from batchlab.core.value import Items, Value

Split = Literal["train", "val", "test"]


class Evaluation(Value):
    """The steps at which a trial is evaluated: regular (`every`), geometric (`growth`), or first one, then the other.

    Step 0, before any update, is always measured, and so is a trial's last step. With `growth = g` the step after t is
    ceil(g * t). With both it is the last multiple of `every` that is not past g * t, but at least the next one: never
    more than `every` steps or a factor of g apart, whichever is longer. Steps to a goal are late by no more than that
    where the metric improves all the time; one that goes up and down may be beyond the goal between two evaluations
    and back again.

    >>> list(Evaluation(growth=1.5).steps(10))
    [0, 1, 2, 3, 5, 8, 10]
    >>> list(Evaluation(every=10, growth=1.5).steps(200))
    [0, 10, 20, 30, 40, 60, 90, 130, 190, 200]
    """

    written: ClassVar[str] = "a table, such as {every = 10, growth = 1.03}"

    growth: Annotated[float, Field(gt=1, le=MOST_GROWTH)] | None = None
    every: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    splits: Items[Split] = ("val",)
    """`train` is measured on a fixed part of the training set, as large as the validation set."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.growth is None and self.every is None:
            raise ValueError("give `growth` (geometric steps), `every` (regular steps) or both")
        if not self.splits:
            raise ValueError('`splits` names nothing to evaluate on; use ["val"]')
        return self

    def next_step(self, step: int) -> int:
        """Return the evaluated step that follows the evaluated step `step`."""
        if self.every is None:
            return max(step + 1, math.ceil((self.growth or 1) * step))
        multiples = max(step // self.every + 1, math.floor((self.growth or 1) * step / self.every))
        return multiples * self.every

    def first_step_from(self, bound: float) -> int:
        """Return the first evaluated step that is not before `bound`."""
        if self.every is not None and self.growth is None:
            return math.ceil(bound / self.every) * self.every
        step = 0
        while step < bound:
            step = self.next_step(step)
        return step

    def includes(self, steps: np.ndarray) -> np.ndarray:
        """Return for each of some steps whether it is evaluated.

        >>> Evaluation(every=10, growth=1.5).includes(np.array([0, 50, 60])).tolist()
        [True, False, True]
        """
        if self.every is not None and self.growth is None:
            return np.asarray(steps % self.every == 0)
        grid = np.fromiter(self.steps(int(steps.max(initial=0)) + 1), dtype=np.int64)[:-1]
        return np.isin(steps, grid)

    def count(self, last_step: int) -> float:
        """Return about how many steps are evaluated up to `last_step`, without going through them.

        >>> Evaluation(every=10).count(1000), round(Evaluation(growth=1.03).count(20_000))
        (100.0, 250)
        """
        strides = last_step / (self.every or 1)
        if self.growth is None:
            return strides
        one_by_one = min(strides, 1 / (self.growth - 1))  # until the growth is more than a stride
        return one_by_one + math.log(strides / one_by_one) / math.log(self.growth)

    def steps(self, last_step: int) -> Iterator[int]:
        """Yield every evaluated step from 0 to `last_step`, both included."""
        step = 0
        while step < last_step:
            yield step
            step = self.next_step(step)
        yield last_step
