"""The batch size of every update: one for all of them, or as a schedule sets it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from batchlab.core.clock import Clock, Clocks, Horizon, constant_examples, constant_steps
from batchlab.core.study import Study
from batchlab.errors import SpecError
from batchlab.optim.schedules import Schedule, Values


class BatchSizes:
    """The batch sizes of some trials in lockstep, which agree on them: one that is scheduled trains alone."""

    def __init__(
        self, study: Study, trials: Sequence[Mapping[str, float]], schedule: Schedule, horizon: Horizon
    ) -> None:
        """`trials` are the metaparameters of each."""
        self._study, self._schedule, self._horizon = study, schedule, horizon
        self._is_scheduled = study.workload.schedules_batch_size
        if self._is_scheduled and len(trials) > 1:
            raise SpecError(
                f"engine.pack_size: {len(trials)} trials whose batch size is scheduled cannot train together; "
                'use 1 or "auto".'
            )
        # In double precision, whatever the parameters have: a batch size is a whole number.
        self._values = {"batch_size": np.array([float(study.batch_size)])}
        self._values |= {name: np.array([float(value)]) for name, value in trials[0].items()}

    def ahead(self, clock: Clock, most_updates: int, most_examples: int) -> list[int]:
        """Return those of the next updates: as many as these examples are enough for, but one at the least.

        None are left where the study has a limit of examples that the next update would pass.
        """
        if not self._is_scheduled:
            size = self._horizon.batch_size
            return [size] * max(1, min(most_updates, constant_steps(most_examples, size)))
        sizes: list[int] = []
        end = clock.examples + most_examples
        while len(sizes) < most_updates and not self.is_spent(clock):
            size = self.at(clock)
            fitting = constant_steps(min(end, self._max_examples) - clock.examples, size)
            if fitting < 1 and sizes:
                break
            run = self._run(clock, size, min(max(1, fitting), most_updates - len(sizes)))
            sizes += [size] * run
            clock = Clock(clock.step + run, clock.examples + constant_examples(run, size))
        return sizes

    def at(self, clock: Clock) -> int:
        """Return that of the next update; SpecError where the schedule leads out of what is possible."""
        if not self._is_scheduled:
            return self._horizon.batch_size
        size = float(self._sizes(Clocks.of(clock, [1]))[0])
        largest = self._horizon.epoch_examples or math.inf
        if not 1 <= size <= largest:  # false for NaN
            bound = "less than 1" if not size >= 1 else f"more than the training set has ({largest:,} examples)"
            raise SpecError(
                f"schedule {self._study.workload.schedule.name}: the batch size of update {clock.step + 1:,} would be "
                f"{size:g}, {bound}: change the metaparameters of the schedule."
            )
        return int(size)

    def is_spent(self, clock: Clock) -> bool:
        """Return whether the next update would pass the study's limit of examples."""
        return self._study.max_examples is not None and clock.after(self.at(clock)).examples > self._max_examples

    def others(self, scheduled: Values) -> dict[str, np.ndarray]:
        """Return what a schedule sets beside the batch size; SpecError where it sets that and does not say so."""
        if "batch_size" in scheduled and not self._is_scheduled:
            raise SpecError(
                f"schedule {self._study.workload.schedule.name} sets the batch size: "
                'give it an option `of`, and of = "batch_size" in the spec.'
            )
        return {name: values for name, values in scheduled.items() if name != "batch_size"}

    @property
    def _max_examples(self) -> float:
        return math.inf if self._study.max_examples is None else self._study.max_examples

    def _run(self, clock: Clock, size: int, most: int) -> int:
        """Return how many of the next updates have this batch size: if all had, the clocks would be these."""
        differs = self._sizes(Clocks.of(clock, [size] * most)) != size
        return int(differs.argmax()) if differs.any() else most

    def _sizes(self, clocks: Clocks) -> np.ndarray:
        scheduled = self._schedule(self._values, clocks, self._horizon)
        if "batch_size" not in scheduled:
            raise SpecError(f"schedule {self._study.workload.schedule.name} does not set the batch size.")
        return np.rint(scheduled["batch_size"][:, 0])
