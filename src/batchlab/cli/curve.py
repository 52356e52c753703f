"""batchlab curve: steps to result against batch size."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from batchlab.cli.options import (
    DEFAULT_LAB,
    GoalOption,
    JsonOption,
    LabOption,
    SweepOption,
    TrialsOption,
    WorkloadArgument,
    fail_on_problems,
    print_json,
    print_table,
    print_text,
    summarise_sweep,
)

if TYPE_CHECKING:
    from batchlab.analysis.summary import WorkloadSummary


def curve(
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    goal: GoalOption = None,
    trials: TrialsOption = None,
    sweep: SweepOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print steps to a goal by batch size. With intervals, regimes and the critical batch size."""
    print_curve(lab, workload, sweep, goal, trials, as_json)


def print_curve(
    lab: Path,
    workload: str | None,
    sweep: str | None = None,
    goal: str | None = None,
    trials: int | None = None,
    as_json: bool = False,
) -> None:
    """Print the curve as a table or as JSON."""
    from batchlab.analysis.summary import curve_json
    from batchlab.store.lab import Lab

    results, summary = summarise_sweep(Lab.open(lab), workload, sweep, goal, trials)
    if as_json:
        print_json(curve_json(summary))
    else:
        _print_summary(summary)
    fail_on_problems(results.problems)


def _print_summary(summary: WorkloadSummary) -> None:
    from batchlab.report import words
    from batchlab.report.tables import STEPS_HEADER, steps_table

    print_text(f"{summary.workload}: steps to {summary.goal}")
    print_table(STEPS_HEADER, steps_table(summary))
    print_text(words.answer(summary))
    for warning in summary.warnings:
        print_text(f"Note: {warning}")
