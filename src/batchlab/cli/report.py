"""batchlab report: everything about a lab on one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    LabOption,
    SweepOption,
    WorkloadArgument,
    fail_on_problems,
    summarise_results,
    warn,
)

if TYPE_CHECKING:
    from batchlab.report.build import ReportSection
    from batchlab.store.lab import Lab, SweepResults


def report(
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    out: Annotated[Path | None, typer.Option("--out", help="The page; report.html in the lab if left out.")] = None,
    sweep: SweepOption = None,
) -> None:
    """Write the report, one HTML page. It has figures, tables, spec and environment, and opens offline."""
    from batchlab.report.build import write_report
    from batchlab.store.lab import Lab

    store = Lab.open(lab)
    wanted = [store.find(workload, sweep).name] if workload or sweep else store.sweep_names()
    sections, problems = [], []
    for name in wanted:
        results = store.results(store.sweep(name))
        problems += results.problems
        if not results.results:
            warn(f"sweep {name} has no finished study that can be read; it is left out")
        elif results.sweep.goal is None:
            warn(f"sweep {name} has no known goal; it is left out (`batchlab curve --goal` takes one)")
        else:
            sections.append(_section(store, results))
    if not sections:
        fail_on_problems(problems)
    path = out or lab / "report.html"
    write_report(path, sections)
    print(path)
    fail_on_problems(problems)


def _section(store: Lab, results: SweepResults) -> ReportSection:
    from batchlab.report.build import ReportSection

    summary = summarise_results(results)
    name = results.sweep.name
    records = [store.study_folder(name, result.batch_size).record() for result in results.results]
    trials = [trial for result in results.results for trial in result.trials]
    environment = next((trial.environment for trial in trials if trial.environment), {})
    spec = results.sweep.spec
    if spec is None:
        return ReportSection(summary=summary, environment=environment, protocol=results.sweep.source or {})
    protocol: dict[str, Any] = {
        "protocol": spec.search.protocol,
        "trained_steps": sum(record.trained_steps or 0 for record in records),
        "full_steps": sum(record.full_steps for record in records),
        "core_seconds": round(sum(record.wall_seconds or 0 for record in records), 1),
        "pack_sizes": {str(record.facts.batch_size): record.pack_size for record in records},
    }
    return ReportSection(summary=summary, spec=spec.plain(), environment=environment, protocol=protocol)
