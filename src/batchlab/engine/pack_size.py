"""How many trials to train together: measured, not assumed.

Small models at small batches train many times faster in a pack, models with millions of weights do not.
`run.pack_size_cache` keeps the answer, by machine, workload and batch size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from batchlab.core.study import Study
from batchlab.engine.base import Point, Program, Trainer, UpTo, wanted_pack_size
from batchlab.engine.memory import machine_bytes
from batchlab.engine.timing import harmless, time_steps

CANDIDATES = (1, 4, 8, 16, 32, 64, 128)
TIMED_SECONDS = 0.2
MIN_GAIN = 0.97
"""A larger pack must cost at most this share of the best so far per trial-step; two failures in a row end it."""

MEMORY_SHARE = 0.25
"""The share of the machine's memory that a pack may take: other workers measure, and train, at the same time."""


def calibrate(trainer: Trainer, study: Study, metaparameters: Mapping[str, float]) -> tuple[int, float]:
    """Return the best pack size for a study and its seconds per trial-step, measured here and now."""
    point, wanted = harmless(metaparameters), wanted_pack_size(trainer, study)

    def make_program(size: int) -> Program:
        return trainer.program(study, [Point(trial_id, point) for trial_id in range(size)])

    if isinstance(wanted, UpTo):
        return fastest_pack_size(make_program, wanted.most)
    size = min(wanted, study.trials)
    return wanted, _seconds_per_step(make_program(size)) / size


def fastest_pack_size(make_program: Callable[[int], Program], most: int) -> tuple[int, float]:
    """Return the best number of trials in a pack, up to `most`, and its seconds per trial-step.

    `make_program(K)` returns a fresh program of K trials. Packs that might not fit into the memory are not tried.
    """
    best_size, best_seconds, failures = 1, float("inf"), 0
    for size in _candidates(most):
        if size > most:
            break
        program = make_program(size)
        seconds = _seconds_per_step(program) / size
        if size == 1:
            most = min(most, _trials_in_memory(program))
        if seconds < MIN_GAIN * best_seconds:
            best_size, best_seconds, failures = size, seconds, 0
        else:
            failures += 1
        if failures == 2 or seconds > 2 * best_seconds:
            break
    return best_size, best_seconds


def _candidates(most: int) -> Iterator[int]:
    yield from (size for size in CANDIDATES if size < most)
    if most <= max(CANDIDATES):
        yield most


def _trials_in_memory(alone: Program) -> int:
    """Return how many such trials fit into the memory together: each takes twice its state, with gradients and all."""
    needed = 2 * sum(array.nbytes for array in alone.state().values())
    return max(1, int(MEMORY_SHARE * machine_bytes() / max(1, needed)))


def _seconds_per_step(program: Program) -> float:
    """Return the time of one step of the whole pack: the fastest of a few chunks after a warm-up."""
    return min((timed.seconds / timed.steps for timed in time_steps(program, TIMED_SECONDS)), default=math.inf)
