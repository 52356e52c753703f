"""Step times of a study on some workers, measured by training it: the one door to a measurement."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any, ClassVar

from batchlab.core.study import Study
from batchlab.engine.base import Point, Trainer
from batchlab.engine.device import device_label
from batchlab.engine.gang.exchange_timing import SUM_BYTES
from batchlab.engine.timing import harmless, time_steps
from batchlab.errors import TrialError
from batchlab.plan.teams import Team
from batchlab.run.do_errand import do_errand
from batchlab.search.samplers import draw_points

WARM_UP = 4
"""First steps that are not counted: they fetch memory, start threads, choose kernels, open the window of TCP."""

SECONDS = 0.3
"""Of one repeat, about; one step at least, however long it takes."""

PATIENCE = 8.0
"""Several workers take several steps at a time, as in training, even if that takes so many times as long: whenever they
stop, each waits to hear from the others."""

FEWEST_SUMS, MOST_SUMS = 4, 64

QUIET_SECONDS = 2.0
"""After so long without news it is looked whether the link is still there."""


@dataclass(frozen=True)
class StepTime:
    """One repeat of a measurement."""

    seconds: float
    """Of a step: of all steps of the repeat together, over their number."""

    device: str
    payloads: tuple[int, ...] = ()
    """Bytes of each sum over the workers that a step takes."""


@dataclass(frozen=True)
class TimeTask:
    """Train one trial of a study for a while, in a worker as any trial is, and evaluate nothing."""

    study: Study
    seconds: float
    patience: float = 1.0

    doing: ClassVar[str] = "timing steps"

    def perform(self, trainer: Trainer) -> StepTime:
        """Return the time of a step."""
        point = Point(0, harmless(self.study.metaparameters(draw_points(self.study)[0])))
        program = trainer.program(self.study, [point])
        timed = list(time_steps(program, self.seconds, WARM_UP, self.patience))
        if not timed:
            raise TrialError(
                f"The trial at batch size {self.study.batch_size} diverged at a learning rate of 1e-9: "
                "nothing was timed."
            )
        seconds = sum(each.seconds for each in timed) / sum(each.steps for each in timed)
        device = device_label(str(getattr(trainer, "device_name", "cpu")))
        return StepTime(seconds, device, tuple(getattr(program, "payloads", ())))


@dataclass(frozen=True)
class SumTask:
    """Let the workers of a trial sum some bytes for a while, and nothing else."""

    study: Study
    num_bytes: int
    seconds: float

    doing: ClassVar[str] = "timing sums over the workers"

    def perform(self, trainer: Trainer) -> float:
        """Return the median time of a sum, of those that no worker came late to."""
        program: Any = trainer.program(self.study, [Point(0, {SUM_BYTES: float(self.num_bytes)})])
        program.advance(WARM_UP)
        number = min(max(FEWEST_SUMS, math.ceil(self.seconds / min(program.seconds))), MOST_SUMS)
        program.advance(WARM_UP + 1 + number)
        # What all do together is told to the others just before: they come late to the first.
        return float(statistics.median(program.seconds[WARM_UP + 1 :]))


def measure(study: Study, team: Team, seconds: float = SECONDS) -> StepTime:
    """Return the time of a step of a study on the workers of a team, from one repeat; first steps do not count."""
    task = TimeTask(study, seconds, PATIENCE if team.size > 1 else 1.0)
    timed: StepTime = do_errand(team.executor, task, QUIET_SECONDS, team.check)
    return timed


def measure_sum(study: Study, num_bytes: int, team: Team, seconds: float = SECONDS) -> float:
    """Return how long the workers of a team take to sum some bytes, with nothing beside it."""
    found: float = do_errand(team.executor, SumTask(study, num_bytes, seconds), QUIET_SECONDS, team.check)
    return found
