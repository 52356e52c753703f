"""How many trials to train together: measured, not assumed.

Small models at small batches train many times faster in a pack, models with millions of weights do not.
The answer is kept by machine, workload and batch size in the user's cache folder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from batchlab.core.study import Study
from batchlab.engine.base import Point, Program, Trainer, UpTo, wanted_pack_size
from batchlab.engine.timing import harmless, time_steps

CANDIDATES = (1, 4, 8, 16, 32, 64, 128)
TIMED_SECONDS = 0.2
MIN_GAIN = 0.97
"""A larger pack must cost at most this share of the best so far per trial-step; two failures in a row end it."""


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

    `make_program(K)` returns a fresh program of K trials.
    """
    best_size, best_seconds, failures = 1, float("inf"), 0
    for size in _candidates(most):
        seconds = _seconds_per_step(make_program(size)) / size
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


def _seconds_per_step(program: Program) -> float:
    """Return the time of one step of the whole pack: the fastest of a few chunks after a warm-up."""
    return min((timed.seconds / timed.steps for timed in time_steps(program, TIMED_SECONDS)), default=math.inf)
