"""What is known of the time of a step on a machine: as it was measured, and by the fitted line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from batchlab.analysis.times.expected import Expected
from batchlab.analysis.times.link import SeenLink, StepExchange, SumTimes
from batchlab.analysis.times.throughput_fit import StepTimes, ThroughputFit, fit_throughput, with_own_cores


@dataclass(frozen=True)
class Throughput:
    """What is known of step times: measurements where there are some, and a line between and beyond them."""

    fit: ThroughputFit
    times: tuple[StepTimes, ...] = ()
    """None of them where the line was given."""

    workload: str = ""
    machine: str = ""
    """What was measured and where, in a few words."""

    train_examples: int | None = None
    """Of the training set, which no batch is larger than; None where that is not known."""

    sums: tuple[SumTimes, ...] = ()
    """What workers took to add up some bytes, with nothing beside it."""

    link: SeenLink | None = None
    """What joined the workers; None where that was the machine itself."""

    @classmethod
    def measured(
        cls,
        times: Sequence[StepTimes],
        workload: str = "",
        machine: str = "",
        train_examples: int | None = None,
        *,
        exchange: StepExchange | None = None,
        sums: Sequence[SumTimes] = (),
        link: SeenLink | None = None,
    ) -> Throughput:
        """Return the throughput of some measurements, of which `exchange` says what workers tell each other."""
        ordered = sorted(times, key=lambda each: (each.workers, each.batch_size))
        fit = fit_throughput(ordered, exchange)
        return cls(fit, tuple(ordered), workload, machine, train_examples, tuple(sums), link)

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Those that were measured, ascending."""
        return tuple(sorted({each.batch_size for each in self.times}))

    @property
    def workers(self) -> tuple[int, ...]:
        """The numbers of workers that were measured, ascending; one where nothing was."""
        return tuple(sorted({each.workers for each in self.times})) or (1,)

    @property
    def planned_workers(self) -> tuple[int, ...]:
        """Those of them that had a core each: what plans count on."""
        return tuple(sorted({each.workers for each in self._fitted})) or (1,)

    def step_seconds(self, batch_size: int, workers: int = 1) -> Expected:
        """Return the time of a step: as it was measured with six repeats or more, else by the line.

        >>> made = [StepTimes(batch_size=b, seconds=(0.02 + b / 1000,) * 6) for b in (8, 64, 512)]
        >>> throughput = Throughput.measured(made)
        >>> throughput.step_seconds(64).interval, throughput.step_seconds(1024).is_extrapolated
        (Interval(low=0.084, high=0.084), True)
        """
        if found := self._measured.get((batch_size, workers)):
            return found
        local = math.ceil(batch_size / workers)
        fitted = self.fit.step_seconds(local, workers)
        return Expected(fitted.value, fitted.interval, self.is_beyond(local, workers))

    def is_beyond(self, local_batch_size: float, workers: int = 1) -> bool:
        """Return whether no measurements lie on both sides; given numbers know nothing of an exchange not given."""
        if not self.times:
            return workers > 1 and self.fit.all_reduce is None
        sizes = [each.local_batch_size for each in self._fitted]
        counts = self.planned_workers
        is_inside = min(sizes) <= local_batch_size <= max(sizes) and counts[0] <= workers <= counts[-1]
        return not is_inside

    @cached_property
    def _fitted(self) -> list[StepTimes]:
        return with_own_cores(self.times)

    @cached_property
    def _measured(self) -> dict[tuple[int, int], Expected]:
        found = {(each.batch_size, each.workers): each.step_seconds for each in self._fitted}
        return {key: each for key, each in found.items() if each.interval and not each.interval.is_open}
