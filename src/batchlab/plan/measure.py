"""Step times of a study on some workers, measured by training it: the one door to a measurement."""

from __future__ import annotations

from dataclasses import dataclass

from batchlab.core.study import Study
from batchlab.engine.base import Point, Trainer
from batchlab.engine.device import device_label
from batchlab.engine.timing import harmless, time_steps
from batchlab.errors import InputError, TrialError
from batchlab.run.answer import answer
from batchlab.run.executor import Executor
from batchlab.search.samplers import draw_points

WARM_UP = 4
"""First steps that are not counted: they fetch memory, start threads, choose kernels."""

SECONDS = 0.3
"""Of one repeat, about; one step at least, however long it takes."""


@dataclass(frozen=True)
class StepTime:
    """One repeat of a measurement."""

    seconds: float
    """Of a step: of all steps of the repeat together, over their number."""

    device: str


@dataclass(frozen=True)
class TimeTask:
    """Train one trial of a study for a while, in a worker as any trial is, and evaluate nothing."""

    study: Study
    seconds: float

    def perform(self, trainer: Trainer) -> StepTime:
        """Return the time of a step."""
        point = Point(0, harmless(self.study.metaparameters(draw_points(self.study)[0])))
        timed = list(time_steps(trainer.program(self.study, [point]), self.seconds, WARM_UP))
        if not timed:
            raise TrialError(
                f"The trial at batch size {self.study.batch_size} diverged at a learning rate of 1e-9: "
                "nothing was timed."
            )
        seconds = sum(each.seconds for each in timed) / sum(each.steps for each in timed)
        return StepTime(seconds, device_label(str(getattr(trainer, "device_name", "cpu"))))


def measure(study: Study, workers: int, executor: Executor, seconds: float = SECONDS) -> StepTime:
    """Return the time of a step of a study on some workers, from one repeat; first steps are not counted.

    InputError for more than one worker: several are not there yet.
    """
    check_workers([workers])
    timed: StepTime = answer(executor, TimeTask(study, seconds))
    return timed


def check_workers(counts: list[int]) -> None:
    """Raise InputError where a trial would be trained by several workers at once."""
    for count in counts:
        if count != 1:
            raise InputError(
                f"--workers {count}: one trial on several workers cannot be measured yet. Use --workers 1, and tell "
                "`batchlab plan --throughput` what is known of the link (latency=, bandwidth=, gradient=)."
            )
