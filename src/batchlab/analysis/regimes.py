"""The regimes of a curve: up to where scaling is perfect, and from where a larger batch size saves next to nothing.

On the fitted curve S = S_min + E_min / B the slope of log S against log B is -0.8 at B_crit / 4, where 80 % of the
examples are of use, and -0.2 at 4 B_crit, where the steps exceed S_min by 25 %. Both ends carry their range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from batchlab.analysis.critical_batch import CriticalBatchFit
from batchlab.analysis.steps_to_result import StepsToResult

Regime = Literal["perfect", "diminishing", "maximal"]

SPREAD = 4.0
"""Perfect scaling ends this factor below the critical batch size, and the maximal regime begins as far above it."""


@dataclass(frozen=True)
class RegimeEnd:
    """Where a regime ends or begins, a batch size."""

    value: float | None
    low: float | None
    high: float | None
    """95 % range; None where it is open on that side."""


@dataclass(frozen=True)
class Efficiency:
    """The share of the examples at one batch size that the smallest would need too; 1 is perfect scaling."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Regimes:
    """The two ends of the regimes, each with its range, and the efficiency of every batch size."""

    source: Literal["fit", "shape"]
    """The hyperbola, or the curve that is only known to be convex with a slope from -1 to 0."""

    perfect_up_to: RegimeEnd
    maximal_from: RegimeEnd
    efficiencies: tuple[Efficiency | None, ...]
    """Aligned with the rows; None where the goal was not met."""

    is_thin: bool
    """Whether the data allow no firm sentence."""

    advice: str | None
    """Where they do not: what is not known, and what would tell."""

    is_closed_form: bool = False
    """Whether steps are exact, so that the ends have no range because they need none."""

    def regime_of(self, batch_size: float) -> Regime | None:
        """Return the regime of a batch size, or None where the ranges leave it open."""
        perfect, maximal = self.perfect_up_to, self.maximal_from
        if self.is_closed_form:
            perfect, maximal = (RegimeEnd(end.value, end.value, end.value) for end in (perfect, maximal))
        if perfect.low is not None and batch_size <= perfect.low:
            return "perfect"
        if maximal.high is not None and batch_size >= maximal.high:
            return "maximal"
        is_past = perfect.high is not None and batch_size > perfect.high
        is_before = maximal.low is not None and batch_size < maximal.low
        return "diminishing" if is_past and is_before else None


def find_regimes(rows: Sequence[StepsToResult], fit: CriticalBatchFit | None) -> Regimes | None:
    """Return the regimes of a curve; None without a fit.

    >>> from batchlab.analysis import example_workload, fit_critical_batch, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> goal = Goal.read("val/classification_error < 0.1")
    >>> rows = [steps_to_result(study, goal) for study in example_workload()]
    >>> regimes = find_regimes(rows, fit_critical_batch(rows))
    >>> round(regimes.perfect_up_to.value), round(regimes.maximal_from.value), regimes.is_thin
    (52, 828, True)
    """
    if fit is None:
        return None
    is_thin = not fit.is_closed_form and (fit.b_crit_ci.is_open or min(row.num_trials for row in rows) < 6)
    return Regimes(
        source="fit",
        perfect_up_to=_end(fit, 1 / SPREAD),
        maximal_from=_end(fit, SPREAD),
        efficiencies=tuple(_efficiency(fit, row) for row in rows),
        is_thin=is_thin,
        advice="More trials would tell." if is_thin else None,
        is_closed_form=fit.is_closed_form,
    )


def _end(fit: CriticalBatchFit, factor: float) -> RegimeEnd:
    values = (fit.b_crit, fit.b_crit_ci.low, fit.b_crit_ci.high)
    return RegimeEnd(*(None if value is None else factor * value for value in values))


def _efficiency(fit: CriticalBatchFit, row: StepsToResult) -> Efficiency | None:
    if not row.is_reached or fit.b_crit is None:
        return None

    def at(b_crit: float | None) -> float | None:
        return None if b_crit is None else b_crit / (b_crit + row.batch_size)

    value = fit.b_crit / (fit.b_crit + row.batch_size)
    return Efficiency(value, at(fit.b_crit_ci.low), at(fit.b_crit_ci.high))
