"""The training loop: evaluate, train to the next evaluated step, until the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from batchlab.core.study import Study
from batchlab.engine.base import Program


@dataclass(frozen=True)
class Evaluated:
    """The metrics of the live trials of a program at one step."""

    step: int
    trial_ids: np.ndarray  # [num_live]
    metrics: dict[str, np.ndarray]  # name -> [num_live]


def train(
    program: Program,
    study: Study,
    end_step: Callable[[], int],
    between_chunks: Callable[[], None] = lambda: None,
) -> Iterator[Evaluated]:
    """Train the program's trials to `end_step()` and yield their metrics at every evaluated step.

    The end is asked for anew after each evaluation, because a race may bring it nearer.
    `between_chunks` is called every second or so: there a caller saves the state, or raises to stop.
    A program that was restored in the middle of an interval first finishes it.
    """
    evaluated_steps = study.evaluation.steps(study.max_steps)
    target = next(step for step in evaluated_steps if step >= program.step)
    while True:
        while program.step < target and len(program.trial_ids):
            program.advance(target)
            between_chunks()
        if not len(program.trial_ids):
            return
        yield Evaluated(program.step, program.trial_ids, program.evaluate())
        if program.step >= end_step():
            return
        target = next(evaluated_steps)
