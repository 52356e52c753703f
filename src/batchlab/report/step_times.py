"""Step times that a lab holds: the newest of a workload, fitted. It only reads."""

from __future__ import annotations

from dataclasses import replace

from batchlab.analysis import StepTimes, Throughput
from batchlab.analysis.times.link import SeenLink, StepExchange, SumTimes, fit_link, forms_of
from batchlab.errors import InputError, LabError
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.throughput import MeasuredLink, MeasuredSums, ThroughputRecord, read_throughputs


def find_throughput(lab: Lab, sweep: StoredSweep) -> tuple[Throughput | None, list[LabError]]:
    """Return the newest step times of what a sweep trained, of whichever machine, and what of the lab cannot be read.

    None where there are none.
    """
    record, problems = newest_record(lab, sweep)
    return None if record is None else measured_throughput(record), problems


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


def newest_record(lab: Lab, sweep: StoredSweep) -> tuple[ThroughputRecord | None, list[LabError]]:
    """Return the newest record of what a sweep trained, and what of the lab cannot be read."""
    records, problems = read_throughputs(lab.folder)
    return next((record for record in records if record.is_of(sweep)), None), problems


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
