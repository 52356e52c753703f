"""batchlab figure: one figure as SVG, PNG and CSV."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    GoalOption,
    LabOption,
    SweepOption,
    TrialsOption,
    WorkloadArgument,
    fail_on_problems,
    summarise_sweep,
)

if TYPE_CHECKING:
    from batchlab.analysis.summary import WorkloadSummary


class FigureName(StrEnum):
    """The figures that can be drawn."""

    STEPS_TO_RESULT = "steps-to-result"
    METAPARAMETERS = "metaparameters"


def figure(
    name: Annotated[FigureName, typer.Argument(help="Which figure.")],
    workload: WorkloadArgument = None,
    lab: LabOption = DEFAULT_LAB,
    out: Annotated[Path, typer.Option("--out", help="The folder for the files.")] = Path("figures"),
    goal: GoalOption = None,
    trials: TrialsOption = None,
    sweep: SweepOption = None,
) -> None:
    """Draw a figure as SVG, PNG and CSV. Prints where the files are."""
    from batchlab.store.lab import Lab

    results, summary = summarise_sweep(Lab.open(lab), workload, sweep, goal, trials)
    for path in _save(name, summary, out / f"{results.sweep.name}-{name}"):
        print(path)
    fail_on_problems(results.problems)


def _save(name: FigureName, summary: WorkloadSummary, stem: Path) -> list[Path]:
    from batchlab import plots

    if name is FigureName.STEPS_TO_RESULT:
        steps = plots.steps_curve_data(summary)
        return plots.save(plots.steps_curve_figure(steps), steps, stem)
    best = plots.metaparameters_data(summary)
    return plots.save(plots.metaparameters_figure(best), best, stem)
