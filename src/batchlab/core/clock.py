"""The clock of a training run: updates and examples, both counted, because a batch size may change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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
    def of(cls, clock: Clock, num_updates: int, batch_size: int) -> Clocks:
        """Return the clock before each of the next updates, all of one batch size."""
        done = np.arange(num_updates)
        return cls(clock.step + done, clock.examples + batch_size * done)


@dataclass(frozen=True)
class Horizon:
    """What a trial is to do: what fractions and epochs are counted by."""

    max_steps: int
    batch_size: int
    """That of the study: where the batch size is scheduled, the one it starts with."""

    epoch_examples: int | None = None
    """Examples in the training set; None where there is none."""
