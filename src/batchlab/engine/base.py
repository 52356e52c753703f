"""The trainer seam: what can be studied is whatever yields measurements for given metaparameters.

A `Trainer` makes a `Program` from a study and some of its points; the program trains those trials in
lockstep. `engine.torch_trainer` trains networks, `engine.quadratic` computes the noisy quadratic model
exactly, and a user's own class with these methods is as good as either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from batchlab.core.study import Study

LOSS_BOUND = 1e6
"""A training loss above this counts as diverged: the explosion bound."""


@dataclass(frozen=True)
class Point:
    """One trial to be trained: its number and all its metaparameters, fixed ones included."""

    trial_id: int
    metaparameters: Mapping[str, float]


class Program(Protocol):
    """Trials that train in lockstep. Divergent ones leave; the others go on as if nothing had happened."""

    step: int
    """Updates done so far."""

    trial_ids: np.ndarray  # [num_live] int64
    """The trials still in training, in ascending order."""

    diverged: dict[int, int]
    """For each trial that has left: the first update whose loss was not finite or above LOSS_BOUND."""

    def evaluate(self) -> dict[str, np.ndarray]:
        """Return the metrics of the live trials now: name -> [num_live] float64."""
        ...

    def advance(self, target: int) -> None:
        """Train towards step `target`, at least one update and not past it.

        It may return early, at a step that depends only on where it started: between two calls the
        caller looks for a stop signal and saves the state.
        """
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Return everything needed to go on from here, bit for bit, as arrays."""
        ...


class Trainer(Protocol):
    """Makes programs. One trainer serves all studies of a sweep, in every worker process."""

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return the names of the metrics that `evaluate` will give."""
        ...

    def program(self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None) -> Program:
        """Return the program for these points, at step 0 or as `state` left it."""
        ...
