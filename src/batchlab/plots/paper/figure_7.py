"""Figure 7: the trials of each study split by their label smoothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from batchlab.analysis import best_measurement, group_trials, select_trials, steps_to_result
from batchlab.analysis.text import count
from batchlab.core.result import StudyResult
from batchlab.errors import InputError
from batchlab.plots.panel import Panel, Point, Series
from batchlab.plots.paper.figure import PaperFigure
from batchlab.plots.paper.lines import MAIN_LINES, Line, Results, studies_of
from batchlab.plots.scales import linear_axis, log_axis
from batchlab.plots.steps import BATCH_SIZE, perfect_series, steps_axes, steps_series


@dataclass(frozen=True, kw_only=True)
class _SmoothingPanel:
    title: str
    line: Line
    values: tuple[float, ...]
    """The label smoothing of each curve."""

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The workloads and metrics it is made of."""
        return [(self.line.workload, self.line.goal.metric)]

    def _groups(self, results: Results) -> tuple[dict[Line, list[StudyResult]], tuple[str, ...]]:
        try:
            studies = studies_of(results, *self.needs[0])
        except InputError as error:
            return {}, (str(error),)
        return _split(studies, self.line, self.values)


@dataclass(frozen=True, kw_only=True)
class BestBySmoothingPanel(_SmoothingPanel):
    """The left panel: the best validation error of each group."""

    def data(self, name: str, results: Results, published: bool) -> Panel:
        """Return what the panel shows of a lab; nothing of it was published as numbers."""
        groups, notes = self._groups(results)
        series: list[Series] = []
        try:
            series = [_best_series(line, studies) for line, studies in groups.items()]
        except InputError as error:
            notes = (str(error),)
        points = [point for one in series for point in one.points]
        return Panel(
            name=name,
            title=self.title,
            x_axis=log_axis(BATCH_SIZE, "log2", [point.x for point in points]),
            y_axis=linear_axis("Validation error", [point.y for point in points]),
            series=tuple(series),
            notes=notes,
            legend="upper left",
        )


@dataclass(frozen=True, kw_only=True)
class StepsBySmoothingPanel(_SmoothingPanel):
    """The right panel: steps to result of each group."""

    perfect_of: str
    """The label of the curve that anchors perfect scaling."""

    def data(self, name: str, results: Results, published: bool) -> Panel:
        """Return what the panel shows of a lab; nothing of it was published as numbers."""
        groups, notes = self._groups(results)
        series = [
            steps_series(line.label, line.workload, line.goal, [steps_to_result(study, line.goal) for study in studies])
            for line, studies in groups.items()
        ]
        anchors = [one for one in series if one.label == self.perfect_of and any(point.y for point in one.points)]
        series += [perfect_series(anchor) for anchor in anchors]
        x_axis, y_axis = steps_axes(series, "Steps to the goal")
        return Panel(name=name, title=self.title, x_axis=x_axis, y_axis=y_axis, series=tuple(series), notes=notes)


def _split(
    studies: Sequence[StudyResult], line: Line, values: Sequence[float]
) -> tuple[dict[Line, list[StudyResult]], tuple[str, ...]]:
    """Return the groups of the first complete trials of each study, and how many trials are in none."""
    groups: dict[Line, list[StudyResult]] = {}
    for value in values:
        groups[Line(f"Label smoothing {value:g}", line.workload, line.goal_text)] = []
    num_others = 0
    for study in studies:
        first = select_trials(study, study.first_complete(line.num_trials))
        for value, group in group_trials(first, "label_smoothing", missing=0.0).items():
            wanted = [
                one for one, known in zip(groups, values, strict=True) if math.isclose(value, known, abs_tol=1e-9)
            ]
            if wanted:
                groups[wanted[0]].append(group)
            else:
                num_others += len(group.trials)
    notes = (f"{count(num_others)} trials with another label smoothing are left out",) if num_others else ()
    return {one: found for one, found in groups.items() if found}, notes


def _best_series(line: Line, studies: Sequence[StudyResult]) -> Series:
    points = []
    for study in studies:
        best = best_measurement(study, line.goal)
        if best is not None:
            points.append(Point(study.batch_size, best.value, num_trials=best.num_trials))
    return Series(
        label=line.label,
        kind="measured",
        workload=line.workload,
        quantity=f"best {line.goal.metric}",
        points=tuple(points),
    )


_LINE = MAIN_LINES["ResNet-50 on ImageNet"]
_VALUES = (0.0, 0.01, 0.1)

FIGURE_7 = PaperFigure(
    caption=(
        "ResNet-50 on ImageNet with Nesterov momentum; the trials of each batch size are split by their label "
        "smoothing."
    ),
    columns=2,
    panels=(
        BestBySmoothingPanel(title="Best validation error", line=_LINE, values=_VALUES),
        StepsBySmoothingPanel(
            title="Steps to validation error 0.25", line=_LINE, values=_VALUES, perfect_of="Label smoothing 0.1"
        ),
    ),
)
