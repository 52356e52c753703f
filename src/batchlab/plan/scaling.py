"""Examples per second against batch size. Repeats are taken in turns: a slow minute of the machine hits them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

from batchlab.core.study import Study
from batchlab.core.sweep import COSTS_ONLY, Sweep
from batchlab.engine.base import Trainer, check_study
from batchlab.errors import InputError
from batchlab.plan.measure import SECONDS, check_workers, measure
from batchlab.plan.train_examples import num_train_examples
from batchlab.run.environment import environment
from batchlab.run.executors import make_executor
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.throughput import MeasuredSteps, ThroughputRecord

REPEATS = 8
"""Six are the least for an interval of a median."""

Tell = Callable[[str], None]


def measure_throughput(
    sweep: Sweep,
    trainer: Trainer,
    *,
    workers: Sequence[int] = (1,),
    repeats: int = REPEATS,
    seconds: float = SECONDS,
    tell: Tell = lambda sentence: None,
) -> ThroughputRecord:
    """Return the step times of a sweep's workload at its batch sizes, ready to be stored.

    `tell` is told after every turn. InputError for a workload whose steps are no training.
    """
    check_workers(list(workers))
    check_timed(sweep)
    studies = sweep.studies()
    for study in studies:
        check_study(trainer, study)
    found: dict[int, list[float]] = {study.batch_size: [] for study in studies}
    device = "cpu"
    with closing(make_executor(trainer, [], num_workers=1)) as executor:
        for turn in range(repeats):
            for study in _in_turn(studies, turn):
                timed = measure(study, 1, executor, seconds)
                found[study.batch_size].append(timed.seconds)
                device = timed.device
            tell(f"repeat {turn + 1} of {repeats}: {len(studies)} batch sizes timed")
    return ThroughputRecord(
        workload=sweep.workload.name,
        spec=sweep.workload.plain(),
        engine=_engine(sweep),
        device=device,
        machine=environment(),
        train_examples=num_train_examples(StoredSweep.run(sweep)),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        times=tuple(MeasuredSteps(batch_size=size, seconds=tuple(times)) for size, times in found.items()),
    )


def _in_turn(studies: Sequence[Study], turn: int) -> Sequence[Study]:
    """Return the studies up and down in turns: what grows warm or slow does so at both ends."""
    return studies if turn % 2 == 0 else studies[::-1]


def _engine(sweep: Sweep) -> dict[str, Any]:
    """Return the settings that a step may be faster or slower for."""
    others = {"pack_size", *COSTS_ONLY}
    return {name: value for name, value in sweep.engine.plain().items() if name not in others}


def check_timed(sweep: Sweep) -> None:
    """Raise InputError for a workload whose steps have no time of their own, and for too few batch sizes."""
    if len(sweep.search.batch_sizes) < 2:
        raise InputError(
            "One batch size cannot tell the time of a step from that of an example: give two --batch-sizes or more."
        )
    if sweep.workload.schedules_batch_size:
        raise InputError(
            f"{sweep.name} changes its batch size while it trains: a step has no one time. Time it without that."
        )
    if sweep.workload.is_closed_form:
        raise InputError(
            f"{sweep.workload.name} is computed by a formula, not trained: a step has no time. "
            "Give one to `batchlab plan --throughput t0=,tau=`."
        )
    if sweep.workload.is_own_loop:
        raise InputError(
            f"{sweep.workload.name} is a loop of your own: only it knows how long a step takes. "
            "Give that to `batchlab plan --throughput t0=,tau=`."
        )
