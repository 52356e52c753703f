"""Figures 9 and 10: the points of a study by what became of them, in the plane of learning rate and momentum."""

from __future__ import annotations

from dataclasses import dataclass

from batchlab.analysis import classify_points
from batchlab.analysis.text import count
from batchlab.core.result import StudyResult
from batchlab.core.trial import Trial
from batchlab.errors import InputError
from batchlab.plots.panel import Axis, Panel, Series
from batchlab.plots.paper.figure import PaperFigure
from batchlab.plots.paper.lines import Line, Results, studies_of, transformer
from batchlab.plots.points import RATE_AND_MOMENTUM, outcome_series
from batchlab.plots.scales import holds_most, log_axis
from batchlab.published.sizes import LM1B_SENTENCES

Window = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class PointsPanel:
    """One panel of Figures 9 and 10: all complete and infeasible trials of one study."""

    title: str
    line: Line
    batch_size: int
    max_steps: float
    """The budget, inclusive; the goal counts as met only within it."""

    x_window: Window
    y_window: Window
    """The paper's axes; a lab whose points lie elsewhere gets its own."""

    contours: tuple[float, ...]

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The workloads and metrics it is made of."""
        return [(self.line.workload, self.line.goal.metric)]

    def data(self, name: str, results: Results, published: bool) -> Panel:
        """Return what the panel shows of a lab; nothing of it was published as numbers."""
        series: tuple[Series, ...] = ()
        try:
            study = _study(results, self.line, self.batch_size)
            points = classify_points(study, self.line.goal, self.max_steps)
            series = outcome_series(points, _place, self.line.workload, self._quantity)
            notes = _notes(study, self.max_steps)
        except InputError as error:
            notes = (str(error),)
        marks = [point for one in series for point in one.points]
        return Panel(
            name=name,
            title=self.title,
            x_axis=_axis("Learning rate", self.x_window, [point.x for point in marks]),
            y_axis=_axis("1 \N{MINUS SIGN} momentum", self.y_window, [point.y or 0.0 for point in marks]),
            series=series,
            notes=notes,
            legend=None,
            contours=self.contours,
        )

    @property
    def _quantity(self) -> str:
        return f"1 - momentum against learning rate, by {self.line.goal} within {count(int(self.max_steps))} steps"


def _place(trial: Trial) -> tuple[float, float] | None:
    """Return where a trial lies on axes that hold nothing at 0 or below."""
    at = RATE_AND_MOMENTUM.place(trial)
    return at if at and min(at) > 0 else None


def _study(results: Results, line: Line, batch_size: int) -> StudyResult:
    for study in studies_of(results, line.workload, line.goal.metric):
        if study.batch_size == batch_size:
            return study
    raise InputError(f"{line.workload} has no batch size {count(batch_size)} in this lab")


def _notes(study: StudyResult, max_steps: float) -> tuple[str, ...]:
    if study.end_step >= int(max_steps):
        return ()
    return (f"trained {count(study.end_step)} of {count(int(max_steps))} steps",)


def _axis(label: str, window: Window, values: list[float]) -> Axis:
    return Axis(label, "log10", *window) if holds_most(window, values) else log_axis(label, "log10", values)


def _epoch_points(batch_size: int) -> PointsPanel:
    max_steps = LM1B_SENTENCES / batch_size
    return _points(f"B = {count(batch_size)}, one epoch", "base", 3.9, batch_size, max_steps)


def _step_points(batch_size: int) -> PointsPanel:
    return _points(f"B = {count(batch_size)}, 25,000 steps", "base", 3.9, batch_size, 25_000)


def _points(title: str, size: str, goal: float, batch_size: int, max_steps: float) -> PointsPanel:
    return PointsPanel(
        title=title,
        line=transformer(title, size, goal),
        batch_size=batch_size,
        max_steps=max_steps,
        x_window=(10**-4.5, 10**-0.5),
        y_window=(1e-6, 10.0),
        contours=(1e-4, 1e-2, 1.0, 1e2),
    )


def _size_points(title: str, size: str) -> PointsPanel:
    return PointsPanel(
        title=title,
        line=transformer(title, size, 4.2),
        batch_size=1024,
        max_steps=50_000,
        x_window=(1e-4, 1e-1),
        y_window=(1e-4, 1e-1),
        contours=(1e-2, 1e-1, 1.0, 10.0, 100.0),
    )


FIGURE_9 = PaperFigure(
    caption=(
        "All complete and infeasible trials of the Transformer on LM1B, goal 3.9: (a) under a budget of one epoch, "
        "(b) of 25,000 steps."
    ),
    columns=3,
    panels=(
        *(_epoch_points(batch_size) for batch_size in (128, 256, 512, 1024, 2048, 4096)),
        *(_step_points(batch_size) for batch_size in (512, 1024, 2048, 4096, 8192, 16384)),
    ),
    names=tuple(f"{block}{number}" for block in "ab" for number in range(1, 7)),
)

FIGURE_10 = PaperFigure(
    caption=(
        "All complete and infeasible trials of four Transformer sizes on LM1B at batch size 1,024, goal 4.2, under "
        "a budget of 50,000 steps."
    ),
    columns=2,
    panels=(
        _size_points("Wide", "wide"),
        _size_points("Base", "base"),
        _size_points("Shallow", "shallow"),
        _size_points("Narrow and shallow", "narrow_and_shallow"),
    ),
)
