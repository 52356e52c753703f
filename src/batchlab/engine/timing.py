"""The time of a training step, measured on a program."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from batchlab.engine.base import Program, can_train
from batchlab.engine.loop import advance

CHUNK = 8
"""Steps that are timed as one where they are short."""


@dataclass(frozen=True)
class Timed:
    """Some steps, and how long they took."""

    steps: int
    seconds: float


def time_steps(program: Program, seconds: float, warm_up: int = 1, patience: float = 1.0) -> Iterator[Timed]:
    """Train for about `seconds`, at least one step, and yield how long the steps took, a few at a time.

    The first `warm_up` steps are not told of, because they fetch memory and start threads, unless the program has no
    more to train: then they are all there is. Steps are timed one by one where the first ones took longer than
    `patience` times the seconds. Nothing is evaluated.
    """
    started = time.perf_counter()
    while can_train(program) and program.step < warm_up:
        advance(program, warm_up)
    first = Timed(program.step, time.perf_counter() - started)
    chunk = CHUNK if first.seconds < patience * seconds else 1
    started, is_first = time.perf_counter(), True
    while can_train(program) and (is_first or time.perf_counter() - started < seconds):
        before, start = program.step, time.perf_counter()
        advance(program, before + chunk)
        is_first = False
        yield Timed(program.step - before, time.perf_counter() - start)
    if is_first and first.steps and len(program.trial_ids):
        yield first


def harmless(metaparameters: Mapping[str, float]) -> dict[str, float]:
    """Return a point at which no trial of a measurement diverges: its learning rate is next to nothing."""
    return {name: 1e-9 if name == "learning_rate" else value for name, value in metaparameters.items()}
