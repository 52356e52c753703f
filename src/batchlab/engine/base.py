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
from batchlab.errors import SpecError

LOSS_BOUND = 1e6
"""A training loss above this counts as diverged: the explosion bound."""

MAX_PACK_EXAMPLES = 4096
"""A pack computes at most this many examples at once: larger ones were never faster, and their activations fill the
memory."""


@dataclass(frozen=True)
class Point:
    """One trial to be trained: its number and all its metaparameters, fixed ones included."""

    trial_id: int
    metaparameters: Mapping[str, float]


class Program(Protocol):
    """Trials that train in lockstep. Divergent ones leave; the others go on as if nothing had happened.

    It may have two values more:

    - `examples`: how many each of its trials has seen so far, repeats counted. Without it they are those of the study's
      batch size.
    - `is_spent`: true once it can train no further, because it has seen as many as it may.
    """

    @property
    def step(self) -> int:
        """Updates done so far."""
        ...

    trial_ids: np.ndarray  # [num_live] int64
    """The trials still in training, in ascending order."""

    diverged: dict[int, int]
    """For each trial that has left: the first update whose loss was not finite or above LOSS_BOUND."""

    def evaluate(self) -> dict[str, np.ndarray]:
        """Return the metrics of the live trials now: name -> [num_live] float64.

        That of the goal is there each time and a finite number: a trial that diverges has left. Others may be left out.
        """
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


def can_train(program: Program) -> bool:
    """Return whether a program has trials that may train on."""
    return len(program.trial_ids) > 0 and not getattr(program, "is_spent", False)


@dataclass(frozen=True)
class UpTo:
    """A pack size that is to be measured: the fastest number of trials that train together, up to `most`."""

    most: int


class Trainer(Protocol):
    """Makes programs. One trainer serves all studies of a sweep, in every worker process.

    It may have two methods more, which the functions of this module ask for:

    - `check(study)` raises SpecError where the study cannot be trained; called before anything is.
    - `pack_size(study)` returns how many trials train together: a number, or `UpTo(most)` to have it measured. A plain
      value, `pack_size = 1`, is that of every study.

    and two where several workers can train one trial together (`engine.workers_per_trial`):

    - `check_shared(study, num_workers)` raises SpecError where so many cannot.
    - `join(exchange)` makes it one of several: see `engine.gang.exchange`.

    and two values:

    - `stays_here`: true where it cannot be sent to worker processes; it then trains in a thread of this one.
    - `label`: what a lab remembers of who trained a study; the name of the class where there is none.
    """

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return the names of the metrics that `evaluate` will give."""
        ...

    def program(self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None) -> Program:
        """Return the program for these points, at step 0 or as `state` left it."""
        ...


def check_study(trainer: Trainer, study: Study) -> None:
    """Let a trainer that checks studies check one."""
    check = getattr(trainer, "check", None)
    if check is not None:
        check(study)


def check_shared(trainer: Trainer, study: Study, num_workers: int) -> None:
    """Raise SpecError where a trainer cannot let so many workers train one trial of a study together."""
    check = getattr(trainer, "check_shared", None)
    if check is None:
        raise SpecError(
            f"engine.workers_per_trial = {num_workers}: {type(trainer).__qualname__} trains each trial on one worker; "
            "leave it out."
        )
    check(study, num_workers)


def wanted_pack_size(trainer: Trainer, study: Study, num_workers: int = 1) -> int | UpTo:
    """Return how many trials of a study shall train together: by the spec, else by the trainer, else measured.

    Those of a pack agree on the batch size of every update, so where that is scheduled each trains alone; and so does
    each that has several workers, where the spec does not say.
    """
    if study.workload.schedules_batch_size:
        return 1
    size = study.engine.get("pack_size", "auto")
    if size != "auto":
        return int(size)
    if num_workers > 1:
        return 1
    own = getattr(trainer, "pack_size", None)
    wanted: int | UpTo = measured_pack_size(study) if own is None else own(study) if callable(own) else own
    return UpTo(min(wanted.most, study.trials)) if isinstance(wanted, UpTo) else wanted


def measured_pack_size(study: Study) -> UpTo:
    """Return the most trials that may be worth a measurement."""
    return UpTo(max(1, MAX_PACK_EXAMPLES // study.batch_size))
