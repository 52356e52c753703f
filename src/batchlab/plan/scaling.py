"""Examples per second against batch size and workers.

Repeats are taken in turns: a slow minute of the machine hits them all.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer, check_shared, check_study
from batchlab.errors import InputError, SpecError
from batchlab.link.hub import joined
from batchlab.link.hub_process import Joined
from batchlab.link.link import Link
from batchlab.link.probe import Seen, probe
from batchlab.plan.measure import SECONDS, measure, measure_sum
from batchlab.plan.teams import Teams, start_teams
from batchlab.plan.train_examples import num_train_examples
from batchlab.run.environment import environment
from batchlab.run.executors.choose import check_gang
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.throughput import MeasuredLink, MeasuredSteps, MeasuredSums, ThroughputRecord

REPEATS = 8
"""Six are the least for an interval of a median."""

SUM_BYTES = (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20)
"""Of sums with nothing beside them: few bytes tell the latency, many the bandwidth."""

Tell = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """One study on some workers."""

    study: Study
    workers: int

    @property
    def local_batch_size(self) -> int:
        """The largest share of a worker."""
        return math.ceil(self.study.batch_size / self.workers)


@dataclass
class _Found:
    """What the turns have found so far."""

    steps: defaultdict[tuple[int, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    """By batch size and workers."""

    sums: defaultdict[tuple[int, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    """By bytes and workers."""

    without: list[float] = field(default_factory=list)
    """Of the shortest sum over the fewest workers, without the link."""

    payloads: tuple[int, ...] = ()
    device: str = "cpu"


def measure_throughput(
    sweep: Sweep,
    trainer: Trainer,
    *,
    workers: Sequence[int] = (1,),
    is_weak: bool = False,
    link: Link | None = None,
    repeats: int = REPEATS,
    seconds: float = SECONDS,
    tell: Tell = lambda sentence: None,
) -> ThroughputRecord:
    """Return the step times of a sweep's workload at its batch sizes on some workers, ready to be stored.

    Batch sizes are those of all workers together, or of each where `is_weak`; what so many workers cannot share is left
    out. `tell` is told of that, and after every turn. InputError for a workload whose steps are no training.
    """
    check_timed(sweep)
    settings = find_settings(sweep, trainer, workers, is_weak, tell)
    found = _Found()
    with ExitStack() as stack:
        made = stack.enter_context(joined(link, max(workers))) if link else None
        seen = None if made is None else _see(made, tell)
        teams = stack.enter_context(start_teams(sweep, trainer, workers, made))
        for turn in range(repeats):
            _take_turn(turn, settings, teams, seconds, found)
            tell(f"repeat {turn + 1} of {repeats}: {len(settings)} step times")
    return ThroughputRecord(
        workload=sweep.workload.name,
        spec=sweep.workload.plain(),
        engine=_engine(sweep),
        device=found.device,
        link=None if link is None else str(link),
        seen=None if made is None or seen is None else _measured_link(made, seen, found),
        machine=environment(),
        train_examples=num_train_examples(StoredSweep.run(sweep)),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        times=tuple(MeasuredSteps(batch_size=b, workers=k, seconds=tuple(s)) for (b, k), s in found.steps.items()),
        sums=tuple(MeasuredSums(num_bytes=n, workers=k, seconds=tuple(s)) for (n, k), s in found.sums.items()),
        payloads=found.payloads,
    )


def _measured_link(made: Joined, seen: Seen, found: _Found) -> MeasuredLink:
    fewest = min(workers for _, workers in found.sums)
    without = MeasuredSums(num_bytes=SUM_BYTES[0], workers=fewest, seconds=tuple(found.without))
    return MeasuredLink(means=made.means, round_trip=seen.round_trip, throughput=seen.throughput, without=without)


def find_settings(
    sweep: Sweep, trainer: Trainer, workers: Sequence[int], is_weak: bool, tell: Tell = lambda sentence: None
) -> list[Setting]:
    """Return every batch size on every number of workers that can share it; InputError where none can."""
    found, reason = list[Setting](), ""
    for count in workers:
        if count > 1:
            check_gang(trainer, count)
        for size in sweep.search.batch_sizes:
            setting = Setting(sweep.study(size * count if is_weak else size), count)
            try:
                _check(setting, trainer)
            except SpecError as error:
                if count == 1:
                    raise
                reason = str(error)
                tell(f"left out: batch size {setting.study.batch_size} on {count} workers. {reason}")
            else:
                found.append(setting)
    for count in workers:
        if not any(setting.workers == count for setting in found):
            raise InputError(f"No batch size is left for {count} workers. {reason}")
    if len({setting.local_batch_size for setting in found}) < 2:
        raise InputError(
            "One batch size of each worker cannot tell the time of a step from that of an example: give more "
            "batch sizes, or fewer workers."
        )
    return found


def _check(setting: Setting, trainer: Trainer) -> None:
    check_study(trainer, setting.study)
    if setting.workers > 1:
        check_shared(trainer, setting.study, setting.workers)


def _see(made: Joined, tell: Tell) -> Seen:
    seen = probe(made)
    tell(f"link: {made.means}; round trip {1e3 * seen.round_trip:.3g} ms, TCP {8e-6 * seen.throughput:.4g} mbit/s")
    return seen


def _take_turn(turn: int, settings: Sequence[Setting], teams: Teams, seconds: float, found: _Found) -> None:
    """Measure everything once."""
    for setting in _in_turn(settings, turn):
        timed = measure(setting.study, teams.by_size[setting.workers], seconds)
        found.steps[setting.study.batch_size, setting.workers].append(timed.seconds)
        found.payloads, found.device = timed.payloads or found.payloads, timed.device
    study, short = settings[0].study, seconds / len(SUM_BYTES)
    for team in _in_turn(teams.gangs, turn):
        for num_bytes in _in_turn(SUM_BYTES, turn):
            found.sums[num_bytes, team.size].append(measure_sum(study, num_bytes, team, short))
    if teams.unlinked is not None:
        found.without.append(measure_sum(study, SUM_BYTES[0], teams.unlinked, short))


def _in_turn(items: Sequence[T], turn: int) -> Sequence[T]:
    """Return some things up and down in turns: what grows warm or slow does so at both ends."""
    return items if turn % 2 == 0 else items[::-1]


def _engine(sweep: Sweep) -> dict[str, Any]:
    """Return the settings that a step may be faster or slower for."""
    others = ("pack_size", "keep_states", "checkpoint_seconds", "workers_per_trial", "worker_timeout_seconds")
    return {name: value for name, value in sweep.engine.plain().items() if name not in others}


def check_timed(sweep: Sweep) -> None:
    """Raise InputError for a workload whose steps have no time of their own, and for too few batch sizes."""
    if len(sweep.search.batch_sizes) < 2:
        raise InputError("One batch size cannot tell the time of a step from that of an example: give two or more.")
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
