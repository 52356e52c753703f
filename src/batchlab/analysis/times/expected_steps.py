"""Steps to a goal at any batch size: confirmed medians where there are some, the hyperbola between and beyond them.

What the hyperbola says of a batch size that was not tuned has the interval of what tuning it would find: the error of
the curve, and the scatter of the tuned batch sizes about it. Simulated coverage: docs/results/plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from batchlab.analysis.answers.steps_to_result import StepsToResult
from batchlab.analysis.curve.spread import Spread
from batchlab.analysis.interval import NO_INTERVAL, Interval
from batchlab.analysis.summary import WorkloadSummary
from batchlab.analysis.times.expected import Expected
from batchlab.errors import InputError


@dataclass(frozen=True, kw_only=True)
class StepsCurve:
    """Steps to a goal as a function of the batch size."""

    s_min: float | None
    e_min: float | None
    """None without a fit: then only what was measured is known."""

    spread: Spread | None = None
    """None where the curve was given, or is exact."""

    tuned: Mapping[int, Expected] = field(default_factory=dict)
    """The batch sizes whose answer stands by itself: confirmed medians, or minima where there is no fit; never both."""

    is_confirmed: bool = False
    """Whether the steps are confirmed medians, or follow a curve of them; else they are minima, given or exact."""

    reached: tuple[int, ...] = ()
    """The batch sizes that met the goal, ascending; empty for a curve that was given."""

    missed: tuple[int, ...] = ()
    """Those that were trained and did not, or not with half of their fresh seeds."""

    smallest: int = 1
    largest: float = math.inf
    """Beyond these nothing is said."""

    @property
    def b_crit(self) -> float | None:
        """The critical batch size; None without a fit."""
        return self.e_min / self.s_min if self.s_min and self.e_min else None

    def fitted(self, batch_size: float) -> float | None:
        """Return the steps by the hyperbola; None without a fit."""
        return None if self.s_min is None or self.e_min is None else self.s_min + self.e_min / batch_size

    def at(self, batch_size: int) -> Expected | None:
        """Return the steps at a batch size; None where nothing can be said of it.

        >>> StepsCurve(s_min=100, e_min=51_200).at(512)
        Expected(value=200.0, interval=None, is_extrapolated=False)
        """
        if batch_size in self.tuned:
            return self.tuned[batch_size]
        steps = self.fitted(batch_size)
        if steps is None or batch_size in self.missed or not self.smallest <= batch_size <= self.largest:
            return None
        return Expected(steps, self._interval(steps, batch_size), self.is_beyond(batch_size))

    def is_beyond(self, batch_size: float) -> bool:
        """Return whether a batch size lies outside of those that met the goal."""
        return bool(self.reached) and not self.reached[0] <= batch_size <= self.reached[-1]

    def _interval(self, steps: float, batch_size: int) -> Interval | None:
        if self.spread is None:
            return None
        width = self.spread.half_width(batch_size)
        return Interval.around(steps, width, width)


def expected_steps(summary: WorkloadSummary) -> StepsCurve:
    """Return the curve of a workload for its goal; InputError where no batch size met it by training.

    Beyond the batch sizes that met the goal it goes on only where both ends of the curve were seen, and never past a
    batch size that was trained for as many steps as the curve predicts, or more, and did not meet it.

    >>> from batchlab.analysis import example_workload, summarise
    >>> from batchlab.core.goal import Goal
    >>> curve = expected_steps(summarise(example_workload(), Goal.read("val/classification_error < 0.1")))
    >>> round(curve.at(64).value), curve.at(64).interval.low < 200 < curve.at(64).interval.high
    (225, True)
    """
    rows, fit = [row for row in summary.rows if row.steps], summary.fit
    if not rows and any(row.is_reached for row in summary.rows):
        raise InputError(
            f"{summary.workload} meets {summary.goal} before it trains: there is no time to it. "
            "Give a harder goal with --goal."
        )
    if not rows:
        raise InputError(
            f"No batch size of {summary.workload} met {summary.goal} by training: there is no time to it. "
            "Give an easier goal with --goal, or train for longer."
        )
    rows = [row for row in rows if not row.failed_to_confirm]
    if not rows:
        raise InputError(
            f"{summary.workload} met {summary.goal} with lucky seeds alone: at every batch size half of the fresh ones "
            "or more missed it, so there is no time to it. Give an easier goal with --goal, or search more trials."
        )
    reached = tuple(row.batch_size for row in rows)
    missed = tuple(row.batch_size for row in summary.rows if not row.is_reached or row.failed_to_confirm)
    smallest, largest = _limits(summary, reached, missed)
    # One estimand throughout, or lucky batch sizes would win.
    is_confirmed = fit.estimand == "confirmed" if fit else all(row.estimate("confirmed").value for row in rows)
    return StepsCurve(
        # What a study would read, as tuned batch sizes were read: a little late.
        s_min=fit.lateness * fit.s_min if fit else None,
        e_min=fit.lateness * fit.e_min if fit else None,
        spread=Spread.of(fit.hyperbola, fit.batch_sizes) if fit and not fit.is_exact else None,
        tuned=_tuned(rows, is_confirmed, has_curve=fit is not None),
        is_confirmed=is_confirmed,
        reached=reached,
        missed=missed,
        smallest=smallest,
        largest=largest,
    )


def _tuned(rows: Sequence[StepsToResult], is_confirmed: bool, has_curve: bool) -> dict[int, Expected]:
    """Return what stands by itself; minima do so only where there is no curve of them."""
    if is_confirmed:
        answers = {row.batch_size: row.estimate("confirmed") for row in rows}
        # Fewer than six seeds have no interval: then a curve says more.
        told = {size: each for size, each in answers.items() if not has_curve or each.interval != NO_INTERVAL}
        return {size: Expected(each.value, each.interval) for size, each in told.items() if each.value is not None}
    if has_curve:
        return {}
    steps = {row.batch_size: (row.steps, None if row.is_exact else NO_INTERVAL) for row in rows}
    return {size: Expected(value, interval) for size, (value, interval) in steps.items() if value is not None}


def _limits(summary: WorkloadSummary, reached: tuple[int, ...], missed: tuple[int, ...]) -> tuple[int, float]:
    """Return the smallest and the largest batch size of which the curve may speak."""
    fit = summary.fit
    if fit is None or fit.b_crit is None:
        return reached[0], reached[-1]
    against = [size for size in fit.contradicted_by if size < reached[0]]
    above = [size for size in missed if size > reached[-1]]
    return max(against, default=0) + 1, min(above) - 1 if above else math.inf
