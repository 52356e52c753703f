"""From a stored lab to a training plan: the newest step times of a workload meet its steps to a goal. It only reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from batchlab.analysis import (
    StepsCurve,
    Throughput,
    TrainingPlan,
    WorkloadSummary,
    best_by_deadline,
    expected_steps,
    make_plan,
)
from batchlab.analysis.times.training_plan import worker_counts
from batchlab.core.result import StudyResult
from batchlab.errors import InputError, LabError
from batchlab.report.step_times import measured_throughput, newest_record
from batchlab.report.words.plan import plan_notes
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import StoredSweep


def plan_of(lab: Lab, sweep: StoredSweep, summary: WorkloadSummary) -> tuple[TrainingPlan | None, list[LabError]]:
    """Return the plan of a sweep on as many workers as were measured, and what of the lab cannot be read.

    None where no step times of it are stored, or such that follow no line, where no batch size met the goal, and where
    batch sizes change.
    """
    record, problems = newest_record(lab, sweep)
    if record is None:
        return None, problems
    try:
        throughput = measured_throughput(record)
        check_one_batch_size(sweep, summary)
        return plan_summary(summary, throughput, throughput.planned_workers[-1]), problems
    except InputError:
        return None, problems


def check_one_batch_size(sweep: StoredSweep, summary: WorkloadSummary) -> None:
    """Raise InputError for a sweep whose batch size changes while it trains: its steps have no one time."""
    is_scheduled = sweep.spec is not None and sweep.spec.workload.schedules_batch_size
    if is_scheduled or not summary.has_one_batch_size:
        raise InputError(
            f"Sweep {sweep.name} changes its batch size while it trains: its steps do not take the same time, and no "
            "plan is made of it. Plan with a sweep of constant batch sizes, or give the numbers yourself."
        )


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


def given_plan(curve: StepsCurve, throughput: Throughput, max_workers: int, price: float | None) -> TrainingPlan:
    """Return the plan of steps that were given, without a workload to speak of."""
    plan = make_plan(curve, throughput, max_workers, price)
    return replace(plan, workload=throughput.workload or None, notes=plan_notes(plan, None))
