"""Several sweeps in one picture: their steps to one goal against batch size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from matplotlib.figure import Figure

from batchlab.analysis import StepsToResult, WorkloadSummary
from batchlab.analysis.answers.headline import Headline, choose_headline
from batchlab.analysis.answers.steps_to_result import measured_steps
from batchlab.analysis.text import span
from batchlab.errors import InputError
from batchlab.plots.answers import answer_label
from batchlab.plots.draw import draw_sheet
from batchlab.plots.panel import Panel, Series
from batchlab.plots.sheet import Sheet
from batchlab.plots.steps import (
    perfect_series,
    published_series,
    steps_axes,
    steps_series,
    unreached_series,
)
from batchlab.published.comparison import compare_published


@dataclass(frozen=True, kw_only=True)
class CompareData:
    """The curves, as one panel."""

    panel: Panel
    headline: Headline
    """The best answer that all of them can give."""

    caption: str

    def table(self) -> list[dict[str, object]]:
        """Return one row for each point."""
        return [
            {
                "series": series.label,
                "kind": series.kind,
                "workload": series.workload,
                "quantity": series.quantity,
                "batch_size": point.x,
                "steps": point.y,
                "low": point.low,
                "high": point.high,
                "num_trials": point.num_trials,
            }
            for series in self.panel.series
            for point in series.points
        ]


def compare_data(summaries: Mapping[str, WorkloadSummary], *, published: bool = False) -> CompareData:
    """Return the curves of some sweeps, by name; InputError where they have no goal in common."""
    goals = list(dict.fromkeys(str(summary.goal) for summary in summaries.values()))
    if len(goals) > 1:
        raise InputError(
            f"The sweeps have different goals: {', '.join(goals)}. Give one goal, or choose among the sweeps."
        )
    shared, labels = _labels({name: summary.workload for name, summary in summaries.items()})
    rows = [row for summary in summaries.values() for row in summary.rows]
    headline = choose_headline(rows)
    series = tuple(_series(summaries, labels, headline, published))
    if not any(point.y for one in series if one.kind == "measured" for point in one.points):
        raise InputError(f"No sweep reached {goals[0]}. Give an easier goal.")
    x_axis, y_axis = steps_axes(series, f"Steps to {goals[0]}", ticks="numbers", reach=3.0)
    panel = Panel(title=shared, x_axis=x_axis, y_axis=y_axis, series=series)
    never = [labels[name] for name, summary in summaries.items() if summary.best is None]
    caption = _caption(headline, [row for row in rows if row.is_reached], never)
    return CompareData(panel=panel, headline=headline, caption=caption)


def compare_figure(data: CompareData) -> Figure:
    """Return the figure, ready to be saved."""
    return draw_sheet(Sheet(caption=data.caption, columns=1, panels=(data.panel,), panel_aspect=1.5, width=6.4))


def _series(
    summaries: Mapping[str, WorkloadSummary], labels: Mapping[str, str], headline: Headline, published: bool
) -> Iterator[Series]:
    anchor: Series | None = None
    for name, summary in summaries.items():
        curve = steps_series(labels[name], summary.workload, summary.goal, summary.rows, headline)
        anchor = anchor or (curve if any(point.y for point in curve.points) else None)
        yield curve
    if anchor:
        yield perfect_series(anchor)
    for summary in summaries.values():
        missed = unreached_series(summary.workload, summary.goal, summary.rows)
        if missed:
            yield missed
        beside = compare_published(summary, measured_steps(summary.rows, headline)) if published else None
        if beside:
            yield published_series(summary.workload, summary.goal, beside)


def _caption(headline: Headline, rows: list[StepsToResult], never: list[str]) -> str:
    """Return what the points are, the best answer that all curves can give, and who has none."""
    words = answer_label(headline, rows)
    trials = f", of the best points of {span(row.num_trials for row in rows)} trials" if headline == "confirmed" else ""
    missed = f" Nowhere reached by {', '.join(never)}." if never else ""
    return f"Each point: {words}{trials}.{missed}"


def _labels(workloads: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return what the workloads begin with in common, and a short label of each sweep.

    >>> _labels({"one": "mnist/fc_9/sgd", "two": "mnist/fc_9/momentum"})
    ('mnist/fc_9', {'one': 'sgd', 'two': 'momentum'})
    """
    parts = [workload.split("/") for workload in workloads.values()]
    if len({tuple(part) for part in parts}) < len(parts):
        return "", {name: name for name in workloads}
    num_shared = 0
    while len(parts) > 1 and len({tuple(part[: num_shared + 1]) for part in parts}) == 1:
        num_shared += 1
    labels = {name: "/".join(part[num_shared:]) for name, part in zip(workloads, parts, strict=True)}
    return "/".join(parts[0][:num_shared]), labels
