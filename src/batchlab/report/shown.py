"""A summary that shows itself: in a notebook, where it is printed, as a figure and as a data frame.

The analysis draws nothing and knows no page, so what it returns is given its looks here.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from markupsafe import Markup

from batchlab.analysis import StepsToResult, TrainingPlan, WorkloadSummary
from batchlab.errors import InputError
from batchlab.report.blocks import Paragraph, Warnings
from batchlab.report.tables import steps_table, text_of
from batchlab.report.words.answer import answer_text
from batchlab.report.words.plan import plan_line

if TYPE_CHECKING:
    from pandas import DataFrame

    from batchlab.plots.style import ShownFigure

# A notebook sets all cells to the right, by a rule stronger than any of ours, and breaks them also inside an interval.
_CELLS = """<style>
table.steps tr :is(th, td) { text-align: left !important; white-space: nowrap; }
table.steps tr .number { text-align: right !important; }
table.steps tr td:last-child:not(.number) { white-space: normal; }
</style>
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class ShownSummary(WorkloadSummary):
    """Steps to result of one workload at every batch size; printed, it is its table and its answer in words."""

    plan: TrainingPlan | None = None
    """Time and cost to the goal, where step times of the workload are stored in its lab."""

    @classmethod
    def of(cls, summary: WorkloadSummary) -> Self:
        """Return the same summary with looks."""
        return cls(**{field.name: getattr(summary, field.name) for field in fields(WorkloadSummary)})

    def __repr__(self) -> str:
        return self.text()

    def text(self, width: int | None = None) -> str:
        """Return the table in lines of at most `width` characters, and the answer in words."""
        lines = [self._title, text_of(steps_table(self), width), answer_text(self)]
        return "\n".join([*lines, *([plan_line(self.plan)] if self.plan else [])])

    def _repr_html_(self) -> str:
        from batchlab.report.render import render_blocks

        warnings = [Warnings(self.warnings)] if self.warnings else []
        answer = [Paragraph(answer_text(self)), *([Paragraph(plan_line(self.plan))] if self.plan else [])]
        return Markup(_CELLS) + render_blocks([Paragraph(self._title), steps_table(self), *answer, *warnings])

    def plot(self) -> ShownFigure:
        """Return the curve as a matplotlib figure, the one that `batchlab figure steps-to-result` saves.

        A notebook shows it as an image; `savefig` and everything else of matplotlib's figures works on it.
        """
        from batchlab.plots import steps_curve_data, steps_curve_figure

        return steps_curve_figure(steps_curve_data(self))

    def to_pandas(self) -> DataFrame:
        """Return a data frame with a row for each batch size; `steps` is the headline's answer.

        Metaparameters have columns of their own; one that is called `steps` is in `metaparameters.steps`.

        InputError without pandas, which batchlab itself does not need.
        """
        try:
            import pandas
        except ImportError:
            raise InputError("to_pandas() needs pandas. Install it: pip install pandas") from None
        return pandas.DataFrame([self._record(row) for row in self.rows])

    @property
    def _title(self) -> str:
        return f"{self.workload}: steps to {self.goal}"

    def _record(self, row: StepsToResult) -> dict[str, Any]:
        estimate = row.estimate(self.headline)
        tuned = next((point.metaparameters for point in self.tuned if point.batch_size == row.batch_size), {})
        record = {
            "batch_size": row.batch_size,
            "answer": self.headline,
            "steps": estimate.value,
            "low": estimate.interval.low if estimate.interval else None,
            "high": estimate.interval.high if estimate.interval else None,
            "minimum": row.steps,
            "end_step": row.end_step,
            "complete": row.complete,
            "infeasible": row.infeasible,
            "incomplete": row.incomplete,
            "stuck": row.stuck,
            "regime": self.regime_of(row),
        }
        return record | {(f"metaparameters.{name}" if name in record else name): tuned[name] for name in tuned}
