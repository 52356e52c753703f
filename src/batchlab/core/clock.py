"""The clock of a training run: updates and examples, both counted, because a batch size may change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Steps = TypeVar("Steps", int, np.ndarray)


def constant_examples(steps: Steps, batch_size: int | np.ndarray) -> Steps:
    """Return the examples of so many updates of one batch size.

    This is for plans, and for rows from before examples were counted; what was trained since tells them itself.

    >>> constant_examples(100, 64)
    6400
    """
    return steps * batch_size  # type: ignore[return-value]


def constant_steps(examples: float, batch_size: int) -> int:
    """Return how many whole updates of one batch size so many examples are enough for.

    >>> constant_steps(6463, 64)
    100
    """
    return int(examples // batch_size)


@dataclass(frozen=True)
class Clock:
    """What a trial has done so far."""

    step: int = 0
    examples: int = 0

    def after(self, batch_size: int) -> Clock:
        """Return the clock after one more update.

        >>> Clock(3, 96).after(64)
        Clock(step=4, examples=160)
        """
        return Clock(self.step + 1, self.examples + batch_size)


@dataclass(frozen=True)
class Clocks:
    """The clock before each of some updates, one after the other."""

    step: np.ndarray  # [num_updates]
    examples: np.ndarray  # [num_updates]

    @classmethod
    def of(cls, clock: Clock, batch_sizes: Sequence[int]) -> Clocks:
        """Return the clock before each of the next updates, which have these batch sizes.

        >>> Clocks.of(Clock(3, 96), [32, 64, 64])
        Clocks(step=array([3, 4, 5]), examples=array([ 96, 128, 192]))
        """
        sizes = np.asarray(batch_sizes, dtype=np.int64)
        return cls(clock.step + np.arange(len(sizes)), clock.examples + np.cumsum(sizes) - sizes)


@dataclass(frozen=True)
class Horizon:
    """What a trial is to do: what fractions and epochs are counted by."""

    max_steps: int
    batch_size: int
    """That of the study: where the batch size is scheduled, the one it starts with."""

    epoch_examples: int | None = None
    """Examples in the training set; None where there is none."""
