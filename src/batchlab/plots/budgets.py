"""The best value of a metric against batch size, under budgets of steps, and of epochs or examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from batchlab.analysis import apply_example_budget, apply_step_budget, best_measurement, select_metric
from batchlab.analysis.text import complete_trials, count
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.errors import InputError
from batchlab.plots.draw import draw_sheet
from batchlab.plots.panel import Panel, Point, Series
from batchlab.plots.scales import log_axis, value_axis
from batchlab.plots.sheet import Sheet
from batchlab.plots.steps import BATCH_SIZE
from batchlab.plots.style import ShownFigure
from batchlab.plots.trained_sweep import TrainedSweep

Unit = Literal["steps", "epochs", "examples"]

MOST_BUDGETS = 7
"""Curves of a panel."""


@dataclass(frozen=True)
class Budget:
    """How long every trial may train."""

    amount: float
    unit: Unit
    num_train_examples: int = 1
    """What an epoch is."""

    @property
    def label(self) -> str:
        """Its name in a legend: `500 steps`, `2,000,000 examples` or `0.5 epochs`.

        >>> Budget(500, "steps").label, Budget(2e6, "examples").label, Budget(1, "epochs").label
        ('500 steps', '2,000,000 examples', '1 epoch')
        """
        unit = self.unit[:-1] if self.amount == 1 else self.unit
        return f"{self.amount:g} {unit}" if self.amount < 1000 else f"{count(int(self.amount))} {unit}"

    def apply(self, study: StudyResult) -> StudyResult | None:
        """Return the study within the budget; None where it did not train that long."""
        if self.unit == "steps":
            return apply_step_budget(study, self.amount)
        return apply_example_budget(study, self.amount * self.num_train_examples)

    def series(self, studies: Sequence[StudyResult], goal: Goal) -> Series:
        """Return the best value within the budget at every batch size that trained that long and was evaluated."""
        return Series(
            label=self.label,
            kind="measured",
            workload=studies[0].workload,
            quantity=f"best {goal.metric} within {self.label}",
            points=tuple(point for study in studies if (point := self._point(study, goal))),
        )

    def _point(self, study: StudyResult, goal: Goal) -> Point | None:
        within = self.apply(study)
        is_known = within is not None and (self.amount == 0 or _has_trained(within, goal))
        best = best_measurement(within, goal) if within and is_known else None
        return Point(study.batch_size, best.value, num_trials=best.num_trials) if best else None


def budgets_data(sweep: TrainedSweep) -> Sheet:
    """Return the best value of the goal's metric under budgets of steps, and of epochs where it is known what one is.

    A batch size takes part under a budget where its study trained that long and was evaluated after step 0; so a race
    tells of budgets up to its end, and no network that was never trained is the best of any.

    >>> from batchlab.analysis import example_workload, summarise
    >>> studies = example_workload()
    >>> summary = summarise(studies, Goal.read("val/classification_error < 0.08"))
    >>> sheet = budgets_data(TrainedSweep(summary=summary, studies=tuple(studies)))
    >>> [series.label for series in sheet.panels[0].series][-2:]
    ['100 steps', '200 steps']
    """
    goal = sweep.summary.goal
    studies = [select_metric(study, goal.metric) for study in sweep.studies]
    num_train_examples = sweep.num_train_examples
    unit: Unit = "epochs" if num_train_examples else "examples"
    panels = (
        _panel(studies, goal, "steps", 1),
        _panel(studies, goal, unit, num_train_examples or 1),
    )
    if not any(panel.series for panel in panels):
        raise InputError(_refusal(sweep.summary.workload, studies, goal))
    return Sheet(caption=_caption(sweep), columns=2, panels=panels, panel_aspect=4 / 3)


def budgets_figure(sheet: Sheet) -> ShownFigure:
    """Return the figure, ready to be saved."""
    return draw_sheet(sheet)


def spaced_budgets(longest: Sequence[float]) -> list[float]:
    """Return 1, 2, 5, 10, ... up to the longest training that two studies share: the last seven.

    >>> spaced_budgets([300, 1200, 20_000])
    [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
    """
    *_, top = sorted(longest)[-2:-1] or longest
    if top <= 0:
        return []
    last = math.floor(math.log10(top))
    amounts = [float(f"{digit}e{k}") for k in range(last - 2, last + 1) for digit in (1, 2, 5)]
    return [amount for amount in amounts if amount <= top][-MOST_BUDGETS:]


def _panel(studies: Sequence[StudyResult], goal: Goal, unit: Unit, num_train_examples: int) -> Panel:
    longest = [_length(study, unit) / num_train_examples for study in studies]
    # Nothing is shorter than a step or an example; an epoch may be cut.
    amounts = [amount for amount in spaced_budgets(longest) if amount >= 1 or unit == "epochs"]
    found = [Budget(amount, unit, num_train_examples).series(studies, goal) for amount in amounts]
    series = tuple(_with_gaps(one, studies) for one in found if one.points)
    points = [point for one in series for point in one.points]
    return Panel(
        title=f"{unit[:-1].capitalize()} budgets",
        x_axis=log_axis(BATCH_SIZE, "log2", [point.x for point in points], ticks="numbers"),
        y_axis=value_axis(f"Best {goal.metric}", [point.y for point in points]),
        series=series,
        is_ordered=True,
        has_gaps=True,
        legend=None,
    )


def _with_gaps(series: Series, studies: Sequence[StudyResult]) -> Series:
    """Return the series with a point without a value where a study takes no part: no line leads over it."""
    known = {point.x: point for point in series.points}
    sizes = [study.batch_size for study in studies]
    return replace(series, points=tuple(known.get(size, Point(size, None)) for size in sizes))


def _refusal(workload: str, studies: Sequence[StudyResult], goal: Goal) -> str:
    """Return why no batch size takes part under any budget."""
    if any(_has_trained(study, goal) for study in studies):
        return (
            f"{workload} has no value of {goal.metric} between step 0 and the largest of the budgets that are drawn. "
            "Draw figure curves, or evaluate more often."
        )
    return f"{workload} has no complete trial with a value of {goal.metric} after step 0."


def _has_trained(study: StudyResult, goal: Goal) -> bool:
    """Return whether a complete trial has a value of the goal's metric after step 0."""
    rows = study.measurements
    is_complete = np.isin(rows.trial_id, [trial.trial_id for trial in study.first_complete()])
    values = rows.metrics.get(goal.metric, np.full(len(rows), np.nan))
    return bool(np.any(is_complete & (rows.step > 0) & ~np.isnan(values)))


def _length(study: StudyResult, unit: Unit) -> int:
    return study.end_step if unit == "steps" else study.end_examples


def _caption(sweep: TrainedSweep) -> str:
    trials = complete_trials(row.num_trials for row in sweep.rows)
    found = [
        f"{sweep.summary.workload}: the best {sweep.summary.goal.metric} of {trials} within a "
        "budget. A batch size takes part where its study trained that long, and was evaluated in it after step 0."
    ]
    if sweep.is_cut_short:
        found.append("A race ended studies early: of longer budgets they tell nothing.")
    if sweep.num_train_examples:
        found.append(f"An epoch is {count(sweep.num_train_examples)} examples.")
    return " ".join(found)
