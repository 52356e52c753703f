"""batchlab status: what a lab holds and how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlab.cli.options import DEFAULT_LAB, JsonOption, LabOption, fail_on_problems, print_json, print_table

if TYPE_CHECKING:
    from batchlab.store.status import SweepStatus


def status(lab: LabOption = DEFAULT_LAB, as_json: JsonOption = False) -> None:
    """List the sweeps of a lab. Studies finished, trials by outcome, measurements, what imports left out.

    Throughputs are the machines on which `batchlab scaling` has measured step times.
    """
    from batchlab.store.lab import Lab
    from batchlab.store.status import sweep_statuses

    statuses = sweep_statuses(Lab.open(lab))
    if as_json:
        print_json([status.__dict__ for status in statuses])
    else:
        _print_statuses(statuses)
    fail_on_problems([problem for status in statuses for problem in status.problems])


def _print_statuses(statuses: list[SweepStatus]) -> None:
    extra = [name for name in ("rejected", "throughputs") if any(getattr(status, name) for status in statuses)]
    header = ["studies", "complete", "infeasible", "incomplete", "measurements", *extra, "sweep", "workload"]
    rows = [
        [
            f"{status.finished}/{status.studies}{', growing' if status.growing else ''}",
            f"{status.complete:,}",
            f"{status.infeasible:,}",
            f"{status.incomplete:,}",
            f"{status.measurements:,}",
            *(f"{getattr(status, name):,}" for name in extra),
            status.sweep,
            status.workload,
        ]
        for status in statuses
    ]
    name = header.index("sweep")
    print_table(header, rows, left=[name, name + 1], key=name)
