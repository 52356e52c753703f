"""The table of steps to result: its cells are the same on the command line, in a notebook and in the report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from batchlab.analysis import StepsToResult, TunedPoint, WorkloadSummary
from batchlab.analysis.answers.headline import Headline
from batchlab.analysis.answers.steps_to_result import measured_steps
from batchlab.analysis.curve.regimes import Efficiency
from batchlab.analysis.text import count, significant, span
from batchlab.published.comparison import PublishedComparison, compare_published
from batchlab.report.blocks import Table
from batchlab.report.text_table import text_table

_NOT_KNOWN = "not known"


@dataclass(frozen=True)
class _Column:
    name: str
    cells: Sequence[str]
    is_number: bool = True
    is_kept: bool = False
    """Whether it stands there even where no row has anything to tell in it."""

    is_new: bool = False
    """Whether it begins something new."""

    @property
    def is_needed(self) -> bool:
        return self.is_kept or any(cell not in ("", "0", _NOT_KNOWN) for cell in self.cells)


def steps_table(summary: WorkloadSummary, published: PublishedComparison | None = None) -> Table:
    """Return a row for each batch size, the headline answer first; columns in which no row has anything are left out.

    `published` is what `published_beside` returns: the paper's steps, and the headline's over them as a ratio.
    """
    columns = [column for column in _columns(summary, published) if column.is_needed]
    return Table(
        name="steps",
        header=[column.name for column in columns],
        rows=list(zip(*(column.cells for column in columns), strict=True)),
        numbers=[place for place, column in enumerate(columns) if column.is_number],
        muted=[place for place, row in enumerate(summary.rows) if not row.is_reached],
        groups=[place for place, column in enumerate(columns) if column.is_new],
    )


def _columns(summary: WorkloadSummary, published: PublishedComparison | None) -> list[_Column]:
    rows = summary.rows
    return [
        _Column("Batch size", [count(row.batch_size) for row in rows], is_kept=True),
        *_answer_columns(summary),
        *_published_columns(rows, published),
        *_regime_columns(summary),
        _Column("Complete", [count(row.complete) for row in rows], is_kept=True, is_new=True),
        _Column("Infeasible", [count(row.infeasible) for row in rows], is_kept=True),
        _Column("Incomplete", [count(row.incomplete) for row in rows]),
        _Column("Stuck", [count(row.stuck) for row in rows]),
        *_tuning_columns(summary),
    ]


def _answer_columns(summary: WorkloadSummary) -> list[_Column]:
    rows, headline = summary.rows, summary.headline
    values = [row.estimate(headline).value if row.is_reached else None for row in rows]
    columns = [
        _Column(headline_name(summary), ["not reached" if v is None else format_steps(v) for v in values], True, True),
        _Column("95 % interval", [format_interval(row, summary) for row in rows]),
    ]
    if headline != "minimum":
        columns.append(_Column("Minimum", ["" if row.steps is None else count(row.steps) for row in rows]))
    return [*columns, *_confirmed_columns(summary)]


def _confirmed_columns(summary: WorkloadSummary) -> list[_Column]:
    """Return what was confirmed where that is not at every batch size, and so not what stands first."""
    rows = summary.rows
    if summary.headline == "confirmed" or not any(row.confirmed for row in rows):
        return []
    return [
        _Column("Confirmed", [_confirmed_text(row) for row in rows]),
        _Column("its 95 %", [_interval_text(row, "confirmed") if row.confirmed else "" for row in rows]),
    ]


def _confirmed_text(row: StepsToResult) -> str:
    if row.confirmed is None:
        return ""
    return "failed" if row.confirmed.steps is None else format_steps(row.confirmed.steps)


def _published_columns(rows: Sequence[StepsToResult], published: PublishedComparison | None) -> list[_Column]:
    if published is None:
        return []
    steps = [published.steps.get(row.batch_size) for row in rows]
    ratios = [published.ratios.get(row.batch_size) for row in rows]
    minima = [published.minimum_ratios.get(row.batch_size) for row in rows]
    return [
        _Column("Published", ["" if each is None else significant(each) for each in steps]),
        _Column("Ratio", ["" if each is None else f"{each:.2f}" for each in ratios]),
        _Column("Of minima", ["" if each is None else f"{each:.2f}" for each in minima]),
    ]


def published_beside(summary: WorkloadSummary) -> PublishedComparison | None:
    """Return the paper's steps of this workload to this very goal beside the headline's; None where there are none.

    The paper's are minima over its trials. So the minima of these trials are held against them as well, whatever the
    headline is.
    """
    found, minima = (
        compare_published(summary, measured_steps(summary.rows, each)) for each in (summary.headline, "minimum")
    )
    if found is None or minima is None or summary.headline == "minimum":
        return found
    return replace(found, minimum_ratios=minima.ratios)


def _regime_columns(summary: WorkloadSummary) -> list[_Column]:
    regimes = summary.regimes
    if regimes is None:
        return []
    is_exact = summary.is_exact
    names = [summary.regime_of(row) or _NOT_KNOWN if row.steps else "" for row in summary.rows]
    return [
        _Column("Efficiency %", [format_efficiency(each, is_exact) for each in regimes.efficiencies]),
        _Column("Regime", names, is_number=False),
    ]


def _tuning_columns(summary: WorkloadSummary) -> list[_Column]:
    tuned = {point.batch_size: point for point in summary.tuned}
    points = [tuned.get(row.batch_size) for row in summary.rows]
    return [
        _Column("At the edge", [", ".join(point.at_boundary) if point else "" for point in points], is_number=False),
        _Column("Best metaparameters", [format_tuned(p) if p else "" for p in points], is_number=False, is_new=True),
    ]


def parts_of(table: Table) -> list[Table]:
    """Return a table in parts, cut where something new begins; each opens with the first column."""
    starts = [1, *table.groups, len(table.header)]
    return [_part(table, [0, *range(start, end)]) for start, end in pairwise(starts) if start < end]


def _part(table: Table, columns: Sequence[int]) -> Table:
    return replace(
        table,
        header=[table.header[column] for column in columns],
        rows=[[row[column] for column in columns] for row in table.rows],
        numbers=[place for place, column in enumerate(columns) if column in table.numbers],
        groups=(),
    )


def text_of(table: Table, width: int | None = None) -> str:
    """Return a table as text, in lines of at most `width` characters."""
    left = [place for place in range(len(table.header)) if place not in table.numbers]
    return text_table(table.header, table.rows, width, left, groups=table.groups)


def headline_name(summary: WorkloadSummary) -> str:
    """Return the name of the answer that stands first: `Confirmed`, `Best of 6`, `Minimum`."""
    if summary.headline != "best_of":
        return summary.headline.capitalize()
    numbers = [row.best_of.m for row in summary.rows if row.best_of]
    return f"Best of {span(numbers)}"


def best_text(summary: WorkloadSummary) -> str:
    """Return the fewest steps with their interval, their name and their batch size, in a few words."""
    best = summary.best
    if best is None or (value := best.estimate(summary.headline).value) is None:
        return "not reached"
    interval = best_interval(summary, best)
    shown = f"{format_steps(value)} ({interval})" if interval else format_steps(value)
    return f"{shown} at batch size {count(best.batch_size)}, {headline_name(summary).lower()}"


def best_interval(summary: WorkloadSummary, best: StepsToResult) -> str:
    """Return the interval of the fewest steps; nothing where they are the fewest of several batch sizes.

    An interval knows nothing of that choice: simulated, it then covers 87 to 93 %, of confirmed medians.
    """
    is_chosen = sum(row.is_reached for row in summary.rows) > 1
    return "" if is_chosen else format_interval(best, summary)


def format_steps(steps: float) -> str:
    """Return a number of steps; the median of an even number may lie between two.

    >>> format_steps(1234), format_steps(205.5)
    ('1,234', '205.5')
    """
    return f"{steps:,.0f}" if steps == round(steps) else f"{steps:,.1f}"


def format_interval(row: StepsToResult, summary: WorkloadSummary) -> str:
    """Return `1,234 to 1,390`; `1,234 to > 1,851` where it reaches beyond training; nothing where there is none.

    Where the goal was not met, the steps that were trained and what ended them: `> 20,000, budget` or `> 1,851, race`;
    nothing where no trial completed.
    """
    if row.ended_by == "divergence":
        return ""
    if not row.is_reached:
        return f"> {count(row.end_step)}, {row.ended_by}"
    return _interval_text(row, summary.headline)


def _interval_text(row: StepsToResult, headline: Headline) -> str:
    interval = row.estimate(headline).interval
    if interval is None or interval.low is None:
        return ""
    if interval.high is not None:
        high = format_steps(interval.high)
    elif headline == "confirmed" and row.confirmed:
        high = "no bound" if row.confirmed.is_open_by_divergence else f"> {count(row.confirmed.end_step)}"
    elif row.end_step > interval.low:
        high = f"> {count(row.end_step)}"
    else:  # loops of one's own that reported nothing of the goal so far
        high = "no bound"
    return f"{format_steps(interval.low)} to {high}"


def format_efficiency(efficiency: Efficiency | None, is_exact: bool = False) -> str:
    """Return an efficiency in per cent with its range; a bound alone where the other is open.

    The smallest batch size of a shape is what the others are held against.

    >>> format_efficiency(Efficiency(0.83, 0.7, 0.95)), format_efficiency(Efficiency(0.83, 0.7, None))
    ('83 (70 to 95)', '> 70')
    """
    if efficiency is None:
        return ""
    value, low, high = (_per_cent(share) for share in (efficiency.value, efficiency.low, efficiency.high))
    if is_exact:
        return value
    if low and high:
        return f"{value} ({low} to {high})"
    if efficiency.value == 1.0 and not (low or high):
        return "reference"
    return f"> {low}" if low else f"< {high}" if high else _NOT_KNOWN


def _per_cent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f}"


def format_tuned(point: TunedPoint) -> str:
    """Return the best of what was searched, each with its range over the top trials, and how many those are.

    >>> top = ({"learning_rate": 0.06}, {"learning_rate": 0.12}, {"learning_rate": 0.2})
    >>> format_tuned(TunedPoint(64, {"learning_rate": 0.12}, (), top))
    'learning_rate 0.12 (0.06 to 0.2), top 3'
    """
    parts = [_with_region(name, value, point) for name, value in point.tuned.items()]
    return ", ".join([*parts, f"top {point.num_top}"] if point.region else parts)


def _with_region(name: str, value: float, point: TunedPoint) -> str:
    if name not in point.region:
        return f"{name} {format_value(value)}"
    low, high = (format_value(bound) for bound in point.region[name])
    return f"{name} {format_value(value)} ({low} to {high})" if low != high else f"{name} {format_value(value)}"


def format_value(value: float) -> str:
    """Return a metaparameter to three digits; close below 1, the digits that tell it from 1.

    >>> format_value(0.029512), format_value(0.999531)
    ('0.0295', '0.999531')
    """
    if not 0.9 < value < 1:
        return significant(value)
    decimals = 2 - math.floor(math.log10(1 - value))
    return f"{value:.{decimals}f}".rstrip("0")
