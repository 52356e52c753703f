"""batchlab report: everything about a lab on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    GoalOption,
    LabOption,
    SweepOption,
    WorkloadArgument,
    fail_on_problems,
    read_goal,
    warn,
)


def report(
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    out: Annotated[Path | None, typer.Option("--out", help="The page; report.html in the lab if left out.")] = None,
    goal: GoalOption = None,
    sweep: SweepOption = None,
) -> None:
    """Write the report, one HTML page. It has figures, tables, spec and environment, and opens offline."""
    from batchlab.report.build import write_report
    from batchlab.report.gather import gather
    from batchlab.store.lab import Lab

    gathered = gather(Lab.open(lab), workload, sweep, read_goal(goal))
    for note in gathered.notes:
        warn(note)
    if not gathered.findings:
        fail_on_problems(gathered.problems)
    print(write_report(out or lab / "report.html", gathered.findings, rejected=gathered.rejected))
    fail_on_problems(gathered.problems)
