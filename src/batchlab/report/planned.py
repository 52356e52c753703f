"""From a stored lab to a training plan: the newest step times of a workload meet its steps to a goal. It only reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batchlab.analysis import (
    StepTimes,
    Throughput,
    TrainingPlan,
    WorkloadSummary,
    best_by_deadline,
    expected_steps,
    make_plan,
)
from batchlab.analysis.times.link import SeenLink, StepExchange, SumTimes, fit_link, forms_of
from batchlab.analysis.times.training_plan import worker_counts
from batchlab.core.result import StudyResult
from batchlab.errors import InputError, LabError
from batchlab.report.words.plan import plan_notes
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.throughput import MeasuredLink, MeasuredSums, ThroughputRecord, read_throughputs


def find_throughput(lab: Lab, sweep: StoredSweep) -> tuple[Throughput | None, list[LabError]]:
    """Return the newest step times of what a sweep trained, of whichever machine, and what of the lab cannot be read.

    None where there are none.
    """
    record, problems = _newest(lab, sweep)
    return None if record is None else measured_throughput(record), problems


def _newest(lab: Lab, sweep: StoredSweep) -> tuple[ThroughputRecord | None, list[LabError]]:
    records, problems = read_throughputs(lab.folder)
    return next((record for record in records if record.is_of(sweep)), None), problems


def check_one_batch_size(sweep: StoredSweep, summary: WorkloadSummary) -> None:
    """Raise InputError for a sweep whose batch size changes while it trains: its steps have no one time."""
    is_scheduled = sweep.spec is not None and sweep.spec.workload.schedules_batch_size
    if is_scheduled or not summary.has_one_batch_size:
        raise InputError(
            f"Sweep {sweep.name} changes its batch size while it trains: its steps do not take the same time, and no "
            "plan is made of it. Plan with a sweep of constant batch sizes, or give the numbers yourself."
        )


def measured_throughput(record: ThroughputRecord) -> Throughput:
    """Return what a record tells, fitted."""
    times = [
        StepTimes(
            batch_size=one.batch_size, workers=one.workers, seconds=one.seconds, is_shared=record.is_shared(one.workers)
        )
        for one in record.times
    ]
    sums = [replace(_sum_times(one), is_shared=record.is_shared(one.workers)) for one in record.sums]
    link = fit_link(sums, forms_of(record.device)) if sums else None
    return Throughput.measured(
        times,
        workload=record.workload,
        machine=record.machine_name,
        train_examples=record.train_examples,
        exchange=None if link is None else StepExchange(link=link, payloads=record.payloads),
        sums=sums,
        link=None if record.seen is None else _seen_link(record.link or "", record.seen),
    )


def _seen_link(asked: str, seen: MeasuredLink) -> SeenLink:
    return SeenLink(
        asked=asked,
        means=seen.means,
        round_trip=seen.round_trip,
        throughput=seen.throughput,
        without=_sum_times(seen.without),
    )


def _sum_times(sums: MeasuredSums) -> SumTimes:
    return SumTimes(num_bytes=sums.num_bytes, workers=sums.workers, seconds=sums.seconds)


def plan_summary(
    summary: WorkloadSummary, throughput: Throughput, max_workers: int = 1, price: float | None = None
) -> TrainingPlan:
    """Return the plan of a workload; InputError where no batch size met the goal by training."""
    plan = make_plan(expected_steps(summary), throughput, max_workers, price)
    plan = replace(plan, workload=summary.workload, goal=summary.goal, tuned=summary.tuned)
    return replace(plan, notes=plan_notes(plan, summary))


def with_deadline(plan: TrainingPlan, studies: Sequence[StudyResult], seconds: float, max_workers: int) -> TrainingPlan:
    """Return the plan of a workload with the best value that its stored curves reach in some seconds."""
    assert plan.goal is not None
    counts = worker_counts(max_workers, plan.throughput)
    best = best_by_deadline(studies, plan.goal, seconds, plan.throughput.step_seconds, counts)
    return replace(plan, deadline=seconds, best_by_deadline=best)


def plan_of(lab: Lab, sweep: StoredSweep, summary: WorkloadSummary) -> tuple[TrainingPlan | None, list[LabError]]:
    """Return the plan of a sweep on as many workers as were measured, and what of the lab cannot be read.

    None where no step times of it are stored, or such that follow no line, where no batch size met the goal, and where
    batch sizes change.
    """
    record, problems = _newest(lab, sweep)
    if record is None:
        return None, problems
    try:
        throughput = measured_throughput(record)
        check_one_batch_size(sweep, summary)
        return plan_summary(summary, throughput, throughput.planned_workers[-1]), problems
    except InputError:
        return None, problems
