"""A trainer of the user's own, tried before it is run: in a worker process, as it will be."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import ClassVar

from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.engine.base import Point, Trainer
from batchlab.engine.checks.contract import check_program, check_promises
from batchlab.processes import end_if_imported_by_worker
from batchlab.run.do_errand import do_errand
from batchlab.run.executors.choose import make_executor
from batchlab.search.samplers import draw_points

NUM_POINTS = 2


@dataclass(frozen=True)
class CheckTask:
    """Train a few updates of a study's first points and look at all that the program says."""

    study: Study
    points: Sequence[Point]

    doing: ClassVar[str] = "checking your trainer"

    def perform(self, trainer: Trainer) -> None:
        """Raise TrainerError at the first thing that is against the contract."""
        check_program(trainer, self.study, self.points)


def check_trainer(trainer: Trainer, study: Study) -> None:
    """Raise an error with one sentence where a trainer of your own does not do what a run will ask of it.

    A few updates of the study's first two points are trained in a worker process: that it can be made there, that
    steps, trials and metrics are told as promised, that the same point comes to the same twice, after its state was
    kept and beside another. `run_sweep` does this before it runs a trainer that it was given.
    """
    end_if_imported_by_worker()
    check_promises(trainer, study)
    if study.workload.is_own_loop:  # it may take hours to its first report
        return
    drawn = draw_points(study)[:NUM_POINTS]
    points = [Point(trial_id, study.metaparameters(point)) for trial_id, point in enumerate(drawn)]
    with closing(make_executor(trainer, [], num_workers=1)) as executor:
        do_errand(executor, CheckTask(study, points))


def check_own_trainer(trainer: Trainer, sweep: Sweep) -> None:
    """Let a trainer of the user's own check every study, and try it on the one with the smallest batches."""
    end_if_imported_by_worker()
    for study in sweep.studies()[1:]:
        check_promises(trainer, study)
    check_trainer(trainer, sweep.studies()[0])
