"""What a sweep may cost, before it runs."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer
from batchlab.run import pack_size_cache
from batchlab.run.executor import CalibrateTask, Failed, Finished, LocalExecutor
from batchlab.run.pack_size_cache import Calibration
from batchlab.run.trainers import make_trainer
from batchlab.search.samplers import draw_points


@dataclass(frozen=True)
class StudyEstimate:
    """The cost of one study, were every trial to train to its budget."""

    batch_size: int
    trials: int
    attempts: int
    max_steps: int
    first_point: dict[str, float]
    seconds_per_trial_step: float

    @property
    def max_seconds(self) -> float:
        """Processor seconds on one core, evaluation and replaced trials not counted."""
        return self.trials * self.max_steps * self.seconds_per_trial_step


def estimate_sweep(sweep: Sweep, data_dir: Path | None) -> list[StudyEstimate]:
    """Return the cost of every study; what this machine has not measured before is measured now."""
    measured = {study.batch_size: pack_size_cache.recall(study) for study in sweep.studies()}
    unknown = [study for study in sweep.studies() if measured[study.batch_size] is None]
    if unknown:
        measured |= _measure(unknown, make_trainer(sweep, data_dir))
    return [_estimate(study, measured[study.batch_size]) for study in sweep.studies()]


def _measure(studies: list[Study], trainer: Trainer) -> dict[int, Calibration | None]:
    """Calibrate the studies in a worker process, as a run would, and remember the outcome."""
    measured: dict[int, Calibration | None] = {}
    with closing(LocalExecutor(trainer, [], num_workers=1)) as executor:
        for study in studies:
            executor.submit(study.batch_size, CalibrateTask(study, study.metaparameters(draw_points(study)[0])))
            (event,) = executor.events(timeout=None)
            if isinstance(event, Failed):
                raise event.error
            assert isinstance(event, Finished)
            measured[study.batch_size] = Calibration(*event.result)
            pack_size_cache.remember(study, Calibration(*event.result))
    return measured


def _estimate(study: Study, measured: Calibration | None) -> StudyEstimate:
    assert measured is not None
    points = draw_points(study)
    return StudyEstimate(
        batch_size=study.batch_size,
        trials=study.trials,
        attempts=len(points),
        max_steps=study.max_steps,
        first_point=points[0],
        seconds_per_trial_step=measured.seconds_per_trial_step,
    )
