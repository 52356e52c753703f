"""What a sweep may cost, before it runs: a bound, and what a pilot lets expect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from batchlab.core.duration import spell_seconds
from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.engine.base import Point, Trainer
from batchlab.run import pack_size_cache
from batchlab.run.do_errand import do_errand
from batchlab.run.errand import CalibrateTask, Errand
from batchlab.run.executors.choose import check_gangs, make_executor
from batchlab.run.executors.executor import Executor
from batchlab.run.pack_size_cache import Calibration
from batchlab.run.pilot import TRIALS, Pilot, PilotTask
from batchlab.run.progress import count_evaluations, steps_by_neighbour
from batchlab.run.trainers import make_trainer
from batchlab.search.samplers import draw_points

PILOT_SECONDS = 5.0
"""A pilot of one batch size trains no longer, those of a sweep no longer than MOST_SECONDS, and no longer than
SHARE of what the study may take; see `run.pilot` for its start."""

MOST_SECONDS = 60.0
SHARE = 0.05
LEAST_SECONDS = 0.5
QUIET_SECONDS = 10.0
"""After so long without news, one says that the measurement goes on."""

Tell = Callable[[str], None]
Source = Literal["pilot", "lab", "published"]
"""Where the steps to expect come from: the pilot of a batch size, its finished study, or the published curve."""


@dataclass(frozen=True)
class Clue:
    """Steps to the goal at one batch size, which let guess those at others."""

    steps: int
    source: Source


@dataclass(frozen=True)
class StudyEstimate:
    """The cost of one study, in processor seconds on one core; trials that replace diverged ones are not counted."""

    batch_size: int
    trials: int
    replicates: int
    """Further runs that confirm the best points, at the most."""

    attempts: int
    max_steps: int
    first_point: dict[str, float]
    seconds_per_trial_step: float
    max_seconds: float
    """Were every trial to train to its budget."""

    expected_steps: int | None
    """To which every trial will train; None where nothing is known of that."""

    expected_seconds: float | None
    expected_from: int | None
    """The batch size whose steps were taken, where the pilot of this one did not meet the goal."""

    expected_by: Source | None
    """Where those steps come from; None under the full protocol, too."""

    pilot: Pilot


def estimate_sweep(
    sweep: Sweep,
    data_dir: Path | None,
    tell: Tell = lambda sentence: None,
    trainer: Trainer | None = None,
    finished: Mapping[int, int | None] | None = None,
    published: Mapping[int, float] | None = None,
) -> list[StudyEstimate]:
    """Return the cost of every study, from its pilot; `tell` gets a line for each, and for long waits.

    `trainer` is one of the user's own; `finished` are batch sizes that are left out, with their steps to the goal;
    `published` steps stand in where the goal was not met.

    The best pack size, where this machine has not measured it before, is measured first and remembered.
    """
    trainer, finished = trainer or make_trainer(sweep, data_dir), finished or {}
    studies = [study for study in sweep.studies() if study.batch_size not in finished]
    together = sweep.engine.workers_per_trial
    if together > 1:
        check_gangs(sweep, trainer)
    seen: dict[int, tuple[Calibration, Pilot]] = {}
    with closing(make_executor(trainer, [], num_workers=1, engine=sweep.engine)) as executor:
        for study in studies:
            calibration = _calibrate(executor, study, tell) if together == 1 else _time(executor, study, tell)
            pilot = _fly(executor, study, calibration, len(studies), tell)
            if together > 1:
                calibration, pilot = _of_all(together, calibration, pilot)
            seen[study.batch_size] = calibration, pilot
            tell(f"batch size {study.batch_size:>6}: {_describe(calibration, pilot, study)}")
    met = {size: pilot.goal_steps for size, (_, pilot) in seen.items()}
    measured = {**_clues("lab", finished), **_clues("pilot", met)}
    read = _clues("published", {size: math.ceil(steps) for size, steps in (published or {}).items()})
    # Published steps at this very batch size say more than one's own at another.
    clues = [read if study.batch_size in read or not measured else measured for study in studies]
    return [_estimate(study, *seen[study.batch_size], clue) for study, clue in zip(studies, clues, strict=True)]


def _clues(source: Source, steps: Mapping[int, int | None]) -> dict[int, Clue]:
    return {size: Clue(found, source) for size, found in steps.items() if found is not None}


def _calibrate(executor: Executor, study: Study, tell: Tell) -> Calibration:
    calibration = pack_size_cache.recall(study)
    if calibration is None:
        calibration = _time(executor, study, tell)
        pack_size_cache.remember(study, calibration)
    return calibration


def _time(executor: Executor, study: Study, tell: Tell) -> Calibration:
    """Return the pack size and the time of a step as they are measured now."""
    point = study.metaparameters(draw_points(study)[0])
    return Calibration(*_answer(executor, CalibrateTask(study, point), tell))


def _of_all(together: int, calibration: Calibration, pilot: Pilot) -> tuple[Calibration, Pilot]:
    """Return what was measured with several workers for a trial as the time of all of them, whoever waits."""
    return (
        replace(calibration, seconds_per_trial_step=together * calibration.seconds_per_trial_step),
        replace(pilot, seconds_per_evaluation=together * pilot.seconds_per_evaluation),
    )


def _fly(executor: Executor, study: Study, calibration: Calibration, num_studies: int, tell: Tell) -> Pilot:
    bound = study.trials * study.max_steps * calibration.seconds_per_trial_step
    seconds = min(PILOT_SECONDS, MOST_SECONDS / num_studies, max(LEAST_SECONDS, SHARE * bound))
    drawn = draw_points(study)[: min(TRIALS, study.trials)]
    points = [Point(trial_id, study.metaparameters(point)) for trial_id, point in enumerate(drawn)]
    pilot = _answer(executor, PilotTask(study, points, calibration.pack_size, seconds), tell)
    assert isinstance(pilot, Pilot)
    return pilot


def _answer(executor: Executor, errand: Errand, tell: Tell) -> Any:
    """Return what an errand brings; say now and then that one is still at it."""
    waited = 0.0

    def still() -> None:
        nonlocal waited
        waited += QUIET_SECONDS
        tell(f"batch size {errand.study.batch_size:>6}: still {errand.doing}, {spell_seconds(waited)} so far")

    return do_errand(executor, errand, QUIET_SECONDS, still)


def _describe(calibration: Calibration, pilot: Pilot, study: Study) -> str:
    speed = f"{1e6 * calibration.seconds_per_trial_step:,.0f} us/trial-step"
    if pilot.goal_steps is not None:
        return f"{speed}; of {pilot.trials} trials the first met the goal at step {pilot.goal_steps:,}"
    if pilot.steps == 0:
        return f"{speed}; no evaluation after step 0 in the pilot's time"
    value = "" if pilot.best_value is None else f" ({study.goal.metric} {pilot.best_value:.4g})"
    return f"{speed}; no goal met by {pilot.trials} trials in {pilot.steps:,} steps{value}"


def _estimate(study: Study, calibration: Calibration, pilot: Pilot, clues: Mapping[int, Clue]) -> StudyEstimate:
    points, expected = draw_points(study), _expect(study, pilot, clues)
    steps, goal_steps = expected.end_step, expected.goal_steps

    def seconds(steps: int, replicate_steps: int) -> float:
        """Return what the trials and then the replicates take."""
        runs = study.trials * each(steps)
        return runs + study.num_replicates * each(replicate_steps)

    def replicate_steps(steps: int) -> int:
        return steps if goal_steps is None else study.replicate_steps(goal_steps)

    def each(steps: int) -> float:
        evaluations = 1 + count_evaluations(study.evaluation, 0, steps)
        return steps * calibration.seconds_per_trial_step + evaluations * pilot.seconds_per_evaluation

    return StudyEstimate(
        batch_size=study.batch_size,
        trials=study.trials,
        replicates=study.num_replicates,
        attempts=len(points),
        max_steps=study.max_steps,
        first_point=points[0],
        seconds_per_trial_step=calibration.seconds_per_trial_step,
        max_seconds=seconds(study.max_steps, study.max_steps),
        expected_steps=steps,
        expected_seconds=None if steps is None else seconds(steps, replicate_steps(steps)),
        expected_from=expected.batch_size,
        expected_by=expected.source,
        pilot=pilot,
    )


@dataclass(frozen=True)
class _Expected:
    """Where a study may end, by which steps to the goal; those of another batch size are named by it."""

    end_step: int | None = None
    batch_size: int | None = None
    source: Source | None = None
    goal_steps: int | None = None


def _expect(study: Study, pilot: Pilot, clues: Mapping[int, Clue]) -> _Expected:
    """Return where the study may end: by the pilot, or by the nearest batch size of which there is a clue."""
    goal_steps, nearest, source = _goal_steps(study, pilot, clues)
    if study.race_factor is None:
        return _Expected(study.max_steps, goal_steps=goal_steps)
    if goal_steps is None:
        return _Expected()
    return _Expected(study.end_step(goal_steps), nearest, source, goal_steps)


def _goal_steps(study: Study, pilot: Pilot, clues: Mapping[int, Clue]) -> tuple[int | None, int | None, Source | None]:
    """Return the steps to the goal, the batch size that they were guessed from, and where they come from."""
    if pilot.goal_steps is not None:
        return pilot.goal_steps, None, "pilot"
    if not clues:
        return None, None, None
    steps, nearest = steps_by_neighbour(study.batch_size, {size: clue.steps for size, clue in clues.items()})
    return min(study.max_steps, max(steps, pilot.steps)), nearest, clues[nearest].source
