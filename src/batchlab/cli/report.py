"""batchlab report: everything about a lab on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    LabOption,
    SweepOption,
    WorkloadArgument,
    fail_on_problems,
    warn,
)


def report(
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    out: Annotated[Path | None, typer.Option("--out", help="The page; report.html in the lab if left out.")] = None,
    sweep: SweepOption = None,
) -> None:
    """Write the report, one HTML page. It has figures, tables, spec and environment, and opens offline."""
    from batchlab.report.answers import gather_findings, shortfalls
    from batchlab.report.build import write_report
    from batchlab.store.lab import Lab

    store = Lab.open(lab)
    wanted = [store.find(workload, sweep).name] if workload or sweep else store.sweep_names()
    findings, problems = [], []
    for name in wanted:
        results = store.results(store.sweep(name))
        problems += results.problems
        if not results.results:
            warn(f"sweep {name} has no finished study that can be read; it is left out")
        elif results.sweep.goal is None:
            warn(f"sweep {name} has no known goal; it is left out (`batchlab curve --goal` takes one)")
        else:
            findings.append(gather_findings(store, results))
            for sentence in shortfalls(results, findings[-1].summary):
                warn(sentence)
    if not findings:
        fail_on_problems(problems)
    path = out or lab / "report.html"
    write_report(path, findings)
    print(path)
    fail_on_problems(problems)
