"""Training curves: a metric of the best trial of each batch size against steps, examples or seconds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from batchlab.analysis import as_known, best_measurement, first_steps, is_measured
from batchlab.analysis.text import complete_trials, count, span
from batchlab.core.goal import Goal
from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial
from batchlab.errors import InputError, unknown_name
from batchlab.plots.draw import draw_sheet
from batchlab.plots.goal_line import goal_line
from batchlab.plots.panel import Axis, Panel, Point, Series
from batchlab.plots.scales import log_axis, value_axis
from batchlab.plots.sheet import Sheet
from batchlab.plots.style import ShownFigure
from batchlab.plots.trained_sweep import TrainedSweep

Against = Literal["steps", "examples", "seconds"]

MOST_CURVES = 6
"""Batch sizes that are told apart at a glance; of more, some are chosen where none is named."""

_MOST_WITH_OTHERS = 2
"""The other trials of more batch sizes than this would hide each other."""

_MOST_OTHERS = 30
_LABELS: dict[Against, str] = {
    "steps": "Steps (updates)",
    "examples": "Examples (repeats counted)",
    "seconds": "Seconds, from the trial's mean time per step",
}
_MEASURED_SECONDS = "Seconds on one worker, from measured step times"


@dataclass(frozen=True, kw_only=True)
class TrialCurve:
    """The evaluated steps of one trial that have a value of the metric."""

    batch_size: int
    trial: Trial
    steps: tuple[int, ...]
    examples: tuple[int, ...]
    """Seen before each of the steps, repeats counted."""

    values: tuple[float, ...]
    goal_step: int | None
    """The first step that met the goal; None where none did."""

    step_seconds: float | None = None
    """Of one worker, where that was measured; else the trial's own mean is taken, of a pack that trained together."""

    def seconds_of(self, step: int) -> float | None:
        """Return when a step was done, about; None where the trial's time is not stored."""
        if self.step_seconds is not None:
            return step * self.step_seconds
        seconds = self.trial.wall_seconds
        return step * seconds / self.trial.last_step if seconds and self.trial.last_step else None

    def xs(self, against: Against) -> tuple[float | None, ...]:
        """Return where each step lies."""
        if against == "seconds":
            return tuple(self.seconds_of(step) for step in self.steps)
        return self.steps if against == "steps" else self.examples

    def points(self, against: Against) -> tuple[Point, ...]:
        """Return the curve but for step 0, which has no place on a logarithmic axis."""
        return tuple(Point(x, value) for x, value in zip(self.xs(against), self.values, strict=True) if x)

    def goal_point(self, against: Against) -> Point | None:
        """Return the point of the curve where the goal was first met, if it has one."""
        rows = zip(self.steps, self.xs(against), self.values, strict=True)
        found = [Point(x, value) for step, x, value in rows if step == self.goal_step and x]
        return found[0] if found else None


@dataclass(frozen=True, kw_only=True)
class BatchSizeCurves:
    """What is shown of one batch size."""

    best: TrialCurve
    others: tuple[TrialCurve, ...] = ()

    @property
    def label(self) -> str:
        """Its name in the legend."""
        missed = " (goal not met)" if self.best.goal_step is None else ""
        return f"batch size {count(self.best.batch_size)}{missed}"


@dataclass(frozen=True, kw_only=True)
class CurvesData:
    """Everything the figure shows, as plain numbers."""

    workload: str
    goal: Goal
    metric: str
    against: Against
    caption: str
    curves: tuple[BatchSizeCurves, ...]
    is_timed: bool = False
    """Whether seconds are those of measured step times."""

    @property
    def panel(self) -> Panel:
        """The curves, the goal, and where each curve first met it."""
        measured = [self._series(one) for one in self.curves]
        lines = [line for series in measured for line in (series.points, *series.behind)]
        label = _MEASURED_SECONDS if self.against == "seconds" and self.is_timed else _LABELS[self.against]
        x_axis = _x_axis(self.against, label, [point.x for line in lines for point in line])
        values = [point.y for line in lines for point in line]
        has_goal = self.metric == self.goal.metric
        return Panel(
            title=self.workload,
            x_axis=x_axis,
            y_axis=value_axis(self.metric, [*values, *([self.goal.threshold] if has_goal else [])]),
            series=(*measured, *self._guides(x_axis, has_goal)),
            is_ordered=True,
            is_dense=True,
            legend=None,
        )

    def table(self) -> list[dict[str, object]]:
        """Return the rows of the CSV file: one for each evaluated step of every trial, step 0 too."""
        return [row for one in self.curves for trial in (one.best, *one.others) for row in self._rows(one, trial)]

    def _series(self, one: BatchSizeCurves) -> Series:
        return Series(
            label=one.label,
            kind="measured",
            workload=self.workload,
            quantity=self.metric,
            points=one.best.points(self.against),
            behind=tuple(other.points(self.against) for other in one.others),
        )

    def _guides(self, x_axis: Axis, has_goal: bool) -> Iterator[Series]:
        if has_goal:
            yield goal_line(self.goal, x_axis, self.workload)
        met = tuple(point for one in self.curves if (point := one.best.goal_point(self.against)))
        if met:
            label = "goal first met" if has_goal else f"{self.goal} first met"
            yield Series(label=label, kind="goal first met", workload=self.workload, quantity=self.metric, points=met)

    def _rows(self, one: BatchSizeCurves, curve: TrialCurve) -> Iterator[dict[str, object]]:
        for step, examples, value in zip(curve.steps, curve.examples, curve.values, strict=True):
            yield {
                "batch_size": curve.batch_size,
                "trial_id": curve.trial.trial_id,
                "is_best": curve is one.best,
                "step": step,
                "examples": examples,
                "seconds": curve.seconds_of(step),
                "metric": self.metric,
                "value": value,
            }


def curves_data(sweep: TrainedSweep, *, metric: str | None = None, against: Against = "steps") -> CurvesData:
    """Return the curve of the headline's trial at each batch size; of few batch sizes those of other trials as well.

    `metric` is the goal's where None. InputError where it was not measured, or where seconds are asked for and not
    stored.

    >>> from batchlab.analysis import example_workload, summarise
    >>> studies = example_workload()
    >>> summary = summarise(studies, Goal.read("val/classification_error < 0.08"))
    >>> data = curves_data(TrainedSweep(summary=summary, studies=tuple(studies)), against="examples")
    >>> [(one.best.trial.trial_id, one.best.goal_point("examples").x) for one in data.curves]
    [(3, 12800), (3, 12800), (3, 25600)]
    """
    metric = metric or sweep.summary.goal.metric
    _check_metric(sweep.studies, metric)
    most_others = _MOST_OTHERS if len(sweep.studies) <= _MOST_WITH_OTHERS else 0
    curves = tuple(one for study in sweep.studies if (one := _curves(sweep, study, metric, most_others)))
    if against == "seconds":
        _check_times([one.best for one in curves], sweep.summary.workload)
        curves = tuple(_with_times(one) for one in curves)
    if not any(len(one.best.points(against)) for one in curves):
        raise InputError(f"{sweep.summary.workload} has no complete trial with a value of {metric} after step 0.")
    return CurvesData(
        workload=sweep.summary.workload,
        goal=sweep.summary.goal,
        metric=metric,
        against=against,
        caption=_caption(sweep, curves, against),
        curves=curves,
        is_timed=sweep.throughput is not None,
    )


def curves_figure(data: CurvesData) -> ShownFigure:
    """Return the figure, ready to be saved."""
    return draw_sheet(Sheet(caption=data.caption, columns=1, panels=(data.panel,), panel_aspect=1.6, width=6.4))


def _curves(sweep: TrainedSweep, study: StudyResult, metric: str, most_others: int) -> BatchSizeCurves | None:
    """Return the best trial and others; None where no complete trial has a value of the goal's metric."""
    summary = sweep.summary
    row = next(row for row in sweep.rows if row.batch_size == study.batch_size)
    best = row.winner(summary.headline).trial or _closest(study, summary.goal)
    if best is None:
        return None
    steps, each = first_steps(study, summary.goal), None
    if sweep.throughput is not None:
        each = sweep.throughput.step_seconds(study.batch_size).value
    others = [trial for trial in study.first_complete() if trial != best][:most_others]
    return BatchSizeCurves(
        best=_curve(study, best, metric, steps[best.trial_id], each),
        others=tuple(_curve(study, trial, metric, steps[trial.trial_id], each) for trial in others),
    )


def _closest(study: StudyResult, goal: Goal) -> Trial | None:
    """Return the trial with the best value as far as all were trained: where none met the goal."""
    best = best_measurement(as_known(study), goal)
    return best.trial if best else None


def _curve(
    study: StudyResult, trial: Trial, metric: str, goal_step: int | None, step_seconds: float | None
) -> TrialCurve:
    curve = study.measurements.curve(trial.trial_id)
    values = curve.metrics.get(metric, np.full(len(curve.steps), np.nan))
    keep = np.isfinite(values)
    assert curve.examples is not None, "a result tells its examples"
    return TrialCurve(
        batch_size=study.batch_size,
        trial=trial,
        steps=tuple(curve.steps[keep].tolist()),
        examples=tuple(curve.examples[keep].tolist()),
        values=tuple(values[keep].tolist()),
        goal_step=goal_step,
        step_seconds=step_seconds,
    )


def _check_metric(studies: Sequence[StudyResult], metric: str) -> None:
    tables = [study.measurements for study in studies]
    if not any(is_measured(table, metric) for table in tables):
        measured = {name for table in tables for name in table.metrics if is_measured(table, name)}
        raise InputError(unknown_name("metric", metric, measured))


def _check_times(curves: Sequence[TrialCurve], workload: str) -> None:
    for curve in curves:
        if curve.seconds_of(1) is None:
            raise InputError(
                f"{workload} has no times: trial {curve.trial.trial_id} of batch size {count(curve.batch_size)} stores "
                "no seconds, as imported ones do not. Draw them against steps or examples."
            )


def _with_times(one: BatchSizeCurves) -> BatchSizeCurves:
    timed = tuple(other for other in one.others if other.seconds_of(1) is not None)
    return BatchSizeCurves(best=one.best, others=timed)


def _x_axis(against: Against, label: str, values: Sequence[float]) -> Axis:
    # Powers of two of a second are no numbers that one reads.
    return log_axis(label, "log10" if against == "seconds" else "log2", values, ticks="numbers")


def _caption(sweep: TrainedSweep, curves: Sequence[BatchSizeCurves], against: Against) -> str:
    summary = sweep.summary
    best = "with the fewest steps to" if summary.headline != "confirmed" else "whose point was confirmed as best for"
    trials = complete_trials(row.num_trials for row in sweep.rows)
    found = [f"Each line: the trial {best} {summary.goal}, of {trials} at its batch size."]
    if any(one.best.goal_step is None for one in curves):
        found.append("Where none met it: the one that came closest.")
    num_others = {len(one.others) for one in curves}
    if max(num_others, default=0):
        found.append(f"Pale: {span(num_others)} of its other trials.")
    if sweep.is_cut_short:
        found.append("Lines end where the race did.")
    if against == "seconds" and sweep.throughput is not None:
        found.append(f"Step times: {sweep.throughput.machine}; updates alone.")
    elif sweep.is_cut_short and against == "seconds":
        found.append("Of a trial that trained past that end, the seconds are an upper bound.")
    return " ".join([*found, *([sweep.share] if sweep.share else [])])
