"""Figure 8: the optimal effective learning rate against batch size, beside two rules of thumb."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from batchlab.analysis import TunedPoint, guides, steps_to_result, tuned_points
from batchlab.analysis.answers.tuning import Quantity
from batchlab.core.result import StudyResult
from batchlab.errors import InputError
from batchlab.plots.panel import Kind, Panel, Point, Series
from batchlab.plots.paper.figure import PaperFigure
from batchlab.plots.paper.lines import MAIN_LINES, Line, Results, studies_of
from batchlab.plots.scales import log_axis
from batchlab.plots.steps import BATCH_SIZE

_QUANTITY: Quantity = "effective_learning_rate"


@dataclass(frozen=True, kw_only=True)
class RatesPanel:
    """One panel of Figure 8."""

    title: str
    line: Line

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The workloads and metrics it is made of."""
        return [(self.line.workload, self.line.goal.metric)]

    def data(self, name: str, results: Results, published: bool) -> Panel:
        """Return what the panel shows of a lab; nothing of it was published as numbers."""
        series: list[Series] = []
        notes: tuple[str, ...] = ()
        try:
            series = _series(self.line, studies_of(results, *self.needs[0]))
        except InputError as error:
            notes = (str(error),)
        measured = [point for one in series if one.kind == "measured" for point in one.points]
        rules = [value for one in series for point in one.points for value in (point.y, point.low, point.high)]
        return Panel(
            name=name,
            title=self.title,
            x_axis=log_axis(BATCH_SIZE, "log2", [point.x for point in measured]),
            y_axis=log_axis(
                "Learning rate / (1 \N{MINUS SIGN} momentum)", "log2", [point.y for point in measured], rules
            ),
            series=tuple(series),
            notes=notes,
            legend=None,
        )


def _series(line: Line, studies: Sequence[StudyResult]) -> list[Series]:
    rows = [steps_to_result(study, line.goal, line.num_trials) for study in studies]
    tuned = [point for point in tuned_points(rows) if point.effective_learning_rate]
    if not tuned:
        raise InputError(f"{line.workload} did not reach {line.goal} with a learning rate")
    trials = {row.batch_size: row.num_trials for row in rows}
    measured = Series(
        label=line.label,
        kind="measured",
        workload=line.workload,
        quantity=f"effective learning rate at the fewest steps to {line.goal}",
        points=tuple(_point(point, trials[point.batch_size]) for point in tuned),
        legend="trial with the fewest steps",
        bars="range of the top trials",
    )
    return [measured, *_rules(line, tuned)]


def _point(tuned: TunedPoint, num_trials: int) -> Point:
    low, high = tuned.region_of(_QUANTITY) or (None, None)
    return Point(tuned.batch_size, tuned.effective_learning_rate, low, high, num_trials)


def _rules(line: Line, tuned: Sequence[TunedPoint]) -> list[Series]:
    found = guides(tuned, _QUANTITY)
    if found is None:
        return []
    sizes = [point.batch_size for point in tuned]

    def rule(kind: Kind, values: Sequence[float]) -> Series:
        points = tuple(Point(size, value) for size, value in zip(sizes, values, strict=True))
        return Series(label=kind, kind=kind, workload=line.workload, quantity="effective learning rate", points=points)

    return [rule("linear rule", found.linear), rule("square-root rule", found.square_root)]


FIGURE_8 = PaperFigure(
    caption=(
        "Effective learning rate of the trial that reached the goal first, against batch size, and its range over the "
        "trials within 1.5 times as many steps. The goal on Fashion "
        "MNIST is 0.1, as in Figure 1 (the authors' notebook has 0.3 here, probably a slip)."
    ),
    columns=3,
    panels=tuple(RatesPanel(title=title, line=line) for title, line in MAIN_LINES.items()),
)
