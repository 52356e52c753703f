"""A plan from what a lab holds and what a user gives in its place."""

from __future__ import annotations

from dataclasses import replace

from batchlab.analysis import StepsCurve, Throughput, TrainingPlan, make_plan
from batchlab.errors import InputError
from batchlab.report.planned import find_throughput, measured_throughput
from batchlab.report.words.plan import plan_notes
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.throughput import read_throughputs


def needed_throughput(lab: Lab, sweep: StoredSweep) -> Throughput:
    """Return the stored step times of what a sweep trained; an error that says how to get them where there are none."""
    throughput, problems = find_throughput(lab, sweep)
    if throughput is not None:
        return throughput
    if problems:
        raise problems[0]
    way_out = "Give them to `batchlab plan`: --throughput t0=SECONDS,tau=EXAMPLES_PER_SECOND."
    if sweep.spec is not None:
        way_out = f"Measure them with `batchlab scaling {sweep.name} --lab {lab.folder}`, or g{way_out[1:]}"
    raise InputError(f"Lab {lab.folder} holds no step times of {sweep.workload}. {way_out}")


def throughput_of(lab: Lab, workload: str | None, sweep: str | None) -> Throughput:
    """Return the stored step times of a sweep of a lab, or of a workload that was timed there and not trained."""
    names = {name for each in lab.readable_sweeps()[0] for name in (each.name, each.workload)}
    is_trained = workload in names if workload else bool(names)
    if sweep is None and not is_trained:
        found, problems = read_throughputs(lab.folder)
        records = [record for record in found if workload in (None, record.workload)]
        if len({record.workload for record in records}) > 1:
            timed = ", ".join(sorted({record.workload for record in records}))
            raise InputError(f"Lab {lab.folder} holds step times of several workloads: {timed}. Name one of them.")
        if records:
            return measured_throughput(records[0])
        if problems:
            raise problems[0]
    return needed_throughput(lab, lab.find(workload, sweep))


def given_plan(curve: StepsCurve, throughput: Throughput, max_workers: int, price: float | None) -> TrainingPlan:
    """Return the plan of steps that were given, without a workload to speak of."""
    plan = make_plan(curve, throughput, max_workers, price)
    return replace(plan, workload=throughput.workload or None, notes=plan_notes(plan, None))
