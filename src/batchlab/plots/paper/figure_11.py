"""Figure 11: the best validation error or cross entropy against batch size, under budgets of steps and of epochs."""

from __future__ import annotations

from dataclasses import dataclass

from batchlab.analysis import select_metric
from batchlab.errors import InputError
from batchlab.plots.budgets import Budget, Unit
from batchlab.plots.panel import Panel, Series
from batchlab.plots.paper.figure import PaperFigure
from batchlab.plots.paper.lines import (
    Line,
    Results,
    error_below,
    studies_of,
    transformer,
)
from batchlab.plots.scales import linear_axis, log_axis
from batchlab.plots.steps import BATCH_SIZE
from batchlab.published.sizes import LM1B_SENTENCES, MNIST_IMAGES


@dataclass(frozen=True, kw_only=True)
class BudgetsPanel:
    """One panel of Figure 11: a curve for each budget, over all complete trials."""

    title: str
    line: Line
    """The goal gives the metric and its direction; its threshold plays no part."""

    unit: Unit
    budgets: tuple[float, ...]
    num_train_examples: int
    y_label: str
    y_window: tuple[float, float]
    """The paper's axis; a lab whose values lie elsewhere gets its own."""

    @property
    def needs(self) -> list[tuple[str, str]]:
        """The workloads and metrics it is made of."""
        return [(self.line.workload, self.line.goal.metric)]

    def data(self, name: str, results: Results, published: bool) -> Panel:
        """Return what the panel shows of a lab; nothing of it was published as numbers."""
        series: list[Series] = []
        notes: tuple[str, ...] = ()
        try:
            studies = studies_of(results, *self.needs[0])
            slim = [select_metric(study, self.line.goal.metric) for study in studies]
            budgets = [Budget(amount, self.unit, self.num_train_examples) for amount in self.budgets]
            series = [one for budget in budgets if (one := budget.series(slim, self.line.goal)).points]
            notes = () if series else ("no study trained to the end of any budget",)
        except InputError as error:
            notes = (str(error),)
        points = [point for one in series for point in one.points]
        return Panel(
            name=name,
            title=self.title,
            x_axis=log_axis(BATCH_SIZE, "log2", [point.x for point in points]),
            y_axis=linear_axis(self.y_label, [point.y for point in points], self.y_window),
            series=tuple(series),
            notes=notes,
            is_ordered=True,
            legend="upper right" if self.unit == "steps" else "upper left",
        )


@dataclass(frozen=True)
class _Family:
    """What the rows of one kind of data have in common."""

    steps: tuple[float, ...]
    epochs: tuple[float, ...]
    num_train_examples: int
    y_label: str

    def row(self, title: str, line: Line, y_window: tuple[float, float]) -> tuple[BudgetsPanel, BudgetsPanel]:
        """Return the left and the right panel of a row."""

        def panel(unit: Unit, budgets: tuple[float, ...]) -> BudgetsPanel:
            return BudgetsPanel(
                title=f"{title}, {unit[:-1]} budgets",
                line=line,
                unit=unit,
                budgets=budgets,
                num_train_examples=self.num_train_examples,
                y_label=self.y_label,
                y_window=y_window,
            )

        return panel("steps", self.steps), panel("epochs", self.epochs)


_IMAGES = _Family(
    steps=tuple(1000.0 * thousands for thousands in (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)),
    epochs=(10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0),
    num_train_examples=MNIST_IMAGES,
    y_label="Best validation error",
)
_SENTENCES = _Family(
    steps=tuple(1000.0 * thousands for thousands in (10, 20, 50, 100, 200, 500, 1000)),
    epochs=(0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0),
    num_train_examples=LM1B_SENTENCES,
    y_label="Best validation cross entropy",
)

FIGURE_11 = PaperFigure(
    caption=(
        "Best validation error or cross entropy within a budget, over all complete trials; a batch size takes part "
        "where its study trained that long."
    ),
    columns=2,
    panel_aspect=4 / 3,
    panels=(
        *_IMAGES.row(
            "Simple CNN on MNIST",
            Line("", "solution_quality/mnist/simple_cnn_base/nesterov_momentum", error_below(0.01)),
            (0.0, 0.04),
        ),
        *_IMAGES.row(
            "Simple CNN on Fashion MNIST",
            Line("", "solution_quality/fashion_mnist/simple_cnn_base/nesterov_momentum", error_below(0.1)),
            (0.05, 0.2),
        ),
        *_SENTENCES.row(
            "Transformer (narrow and shallow) on LM1B", transformer("", "narrow_and_shallow", 4.2), (4.0, 5.5)
        ),
        *_SENTENCES.row("Transformer (base) on LM1B", transformer("", "base", 3.9), (3.5, 5.5)),
    ),
)
