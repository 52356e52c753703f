"""The training loop: evaluate, train to the next evaluated step, until the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from batchlab.core.study import Study
from batchlab.engine.base import Program, can_train
from batchlab.engine.checks.measured import check_measured, is_ours
from batchlab.errors import TrainerError


@dataclass(frozen=True)
class Evaluated:
    """The metrics of the live trials of a program at one step."""

    step: int
    trial_ids: np.ndarray  # [num_live]
    metrics: dict[str, np.ndarray]  # name -> [num_live]
    seconds: float = 0.0
    """How long the evaluation took."""

    examples: int | None = None
    """Seen so far by each trial, repeats counted; None where the program does not count them."""

    def column(self, name: str) -> np.ndarray:
        """Return a metric of all trials [num_live]: NaN where it was not measured at this step."""
        return self.metrics.get(name, np.full(len(self.trial_ids), np.nan))


def evaluate(program: Program, study: Study) -> Evaluated:
    """Return the metrics of the live trials now, and how long that took.

    TrainerError where a program that is not ours measures what the contract does not allow.
    """
    started = time.perf_counter()
    metrics = program.evaluate()
    seconds = time.perf_counter() - started
    if not is_ours(program):
        check_measured(program, metrics, study)
    return Evaluated(program.step, program.trial_ids, metrics, seconds, getattr(program, "examples", None))


def advance(program: Program, target: int) -> None:
    """Let a program train towards a step; TrainerError if it stands still, which would never end, or runs past it."""
    before = program.step
    program.advance(target)
    if program.step > target:
        raise TrainerError(
            f"advance({target}) went on to step {program.step}: train at most {target - before} updates from "
            f"step {before} and count each in `step`."
        )
    if program.step <= before and len(program.trial_ids):
        raise TrainerError(
            f"advance({target}) left `step` at {program.step}: make at least one update and count it in `step`."
        )


def train(
    program: Program,
    study: Study,
    end_step: Callable[[], int],
    between_chunks: Callable[[], None] = lambda: None,
) -> Iterator[Evaluated]:
    """Train the program's trials to `end_step()` and yield their metrics at every evaluated step.

    The end is asked for anew after each evaluation, because a race may bring it nearer.
    `between_chunks` is called every second or so: there a caller saves the state, or raises to stop.
    A program that was restored in the middle of an interval first finishes it, and one that has no examples left
    to train on ends where it is.
    """
    evaluated_steps = study.evaluation.steps(study.max_steps)
    target = next(step for step in evaluated_steps if step >= program.step)
    while True:
        while program.step < target and can_train(program):
            advance(program, target)
            between_chunks()
        if not len(program.trial_ids):
            return
        yield evaluate(program, study)
        if program.step >= end_step() or not can_train(program):
            return
        target = next(evaluated_steps)
