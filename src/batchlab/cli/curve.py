"""batchlab curve: steps to result against batch size."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
    print_text,
    summarise_or_exit,
    terminal_width,
    warn,
)

if TYPE_CHECKING:
    from batchlab.core.goal import Goal
    from batchlab.published.comparison import PublishedComparison
    from batchlab.report.shown import ShownSummary
    from batchlab.store.stored_sweep import StoredSweep


def curve(
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    goal: GoalOption = None,
    trials: TrialsOption = None,
    sweep: SweepOption = None,
    published: Annotated[
        bool, typer.Option("--published", help="Show the published steps beside, where the paper has that goal.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print steps to a goal by batch size. With intervals, regimes and the critical batch size.

    The table keeps to the terminal's width, or to $COLUMNS: what does not fit beside goes below. Into a file or a
    pipe it is printed whole, a line for each batch size.
    """
    print_curve(lab, workload, sweep, goal, trials, as_json, published)


def print_curve(
    lab: Path,
    workload: str | None,
    sweep: str | None = None,
    goal: str | None = None,
    trials: int | None = None,
    as_json: bool = False,
    published: bool = False,
) -> None:
    """Print the curve as a table or as JSON."""
    from batchlab.analysis.summary import curve_json
    from batchlab.store.lab import Lab

    results, summary = summarise_or_exit(Lab.open(lab), workload, sweep, goal, trials)
    beside = _published(summary) if published else None
    if as_json:
        print_json(curve_json(summary) | ({"published": beside and asdict(beside)} if published else {}))
    else:
        print_summary(summary, beside)
        _print_other_goals(results.sweep, summary.goal)
    fail_on_problems(results.problems)


def print_summary(summary: ShownSummary, published: PublishedComparison | None = None) -> None:
    """Print the table, the answer in words, the protocol and what to know before trusting them."""
    from batchlab.report.tables import steps_table, text_of
    from batchlab.report.words.answer import answer_text
    from batchlab.report.words.plan import plan_line
    from batchlab.report.words.protocol import protocol_text

    print_text(f"{summary.workload}: steps to {summary.goal}")
    print(text_of(steps_table(summary, published), terminal_width()))
    print_text(answer_text(summary))
    if summary.plan:
        print_text(plan_line(summary.plan))
    if published:
        print_text(published.sentence)
    print_text(protocol_text(summary))
    for warning in summary.warnings:
        print_text(f"Note: {warning}")


def _print_other_goals(sweep: StoredSweep, answered: Goal) -> None:
    """Print which easier goals a sweep has beside the one that was answered, where that is its own."""
    goals = sweep.spec.search.goal if sweep.spec else ()
    others = [str(goal) for goal in goals if goal != answered]
    if others and answered in goals:
        print_text(f"The sweep asks for more goals: {', '.join(others)}. `batchlab curve --goal` answers each.")


def _published(summary: ShownSummary) -> PublishedComparison | None:
    from batchlab.published.comparison import why_not_compared
    from batchlab.report.tables import published_beside

    found = published_beside(summary)
    if found is None:
        warn(why_not_compared(summary))
    return found
