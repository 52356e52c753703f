"""The regimes of a curve: up to where scaling is perfect, and from where a larger batch size saves next to nothing.

From the fit S = S_min + E_min / B: the slope of log S against log B is -0.8 at B_crit / 4, where 80 % of the examples
are of use, and -0.2 at 4 B_crit, where steps exceed S_min by 25 %. Where the residuals speak against the hyperbola,
both are read off the shape-constrained curve. Either way both ends carry a 95 % range, and where it is too wide, or the
trials too few, no firm sentence follows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from batchlab.analysis.answers.best_of import MIN_TRIALS
from batchlab.analysis.answers.steps_to_result import StepsToResult
from batchlab.analysis.curve.advice import advise
from batchlab.analysis.curve.critical_batch import CriticalBatchFit
from batchlab.analysis.curve.curve_choice import MIN_NOISE, departs, is_hyperbolic
from batchlab.analysis.curve.regime_end import RegimeEnd
from batchlab.analysis.curve.shape_curve import ShapeCurve, ShapeRanges, fit_shape
from batchlab.analysis.interval import NO_INTERVAL, Interval

Regime = Literal["perfect", "diminishing", "maximal"]

SPREAD = 4.0
"""Perfect scaling ends this factor below the critical batch size, and the maximal regime begins as far above it."""

MIN_FREEDOM = 4
"""The shape curve's own residuals tell the noise from this many degrees of freedom on; else the hyperbola's do."""


@dataclass(frozen=True)
class Efficiency:
    """The share of the examples at one batch size that are of use; 1 is perfect scaling."""

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
    """E_min / (B S(B)) of each row, of a shape relative to the smallest batch size; None where the goal was not met."""

    is_thin: bool
    """Whether the data allow no firm sentence."""

    advice: str | None
    """Where they do not: what is not known, and what would tell."""

    is_exact: bool = False
    """Whether steps are exact, so that the ends have no range because they need none."""

    departs: bool = False
    """Whether the steps leave the hyperbola by more than chance explains: a claim, where `source` is a choice."""

    has_few_trials: bool = False
    """Whether a batch size that met the goal has too few trials for a firm word, whatever the ranges are."""

    def regime_of(self, batch_size: float) -> Regime | None:
        """Return the regime of a batch size, or None where the ranges, or too few trials, leave it open."""
        if self.has_few_trials:
            return None
        perfect, maximal = self.perfect_up_to, self.maximal_from
        if self.is_exact:
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
    >>> regimes.source, regimes.is_thin, regimes.regime_of(16)
    ('fit', True, None)
    """
    if fit is None:
        return None
    reached = [row for row in rows if row.steps]
    sizes = np.array([row.batch_size for row in reached], dtype=float)
    hyperbola = fit.hyperbola
    noise = max(fit.noise, _known_noise(reached) if fit.estimand == "confirmed" else 0.0)
    if is_hyperbolic(sizes, hyperbola, noise, fit.is_exact):
        found = _from_fit(rows, fit)
    else:
        found = _from_shape(
            rows, fit, fit_shape(sizes, np.exp(np.log(fit.steps_at(sizes)) + hyperbola.residuals)), noise
        )
    source, perfect, maximal, efficiencies = found
    advice = advise(rows, perfect, maximal, fit.is_exact)
    return Regimes(
        source=source,
        perfect_up_to=perfect,
        maximal_from=maximal,
        efficiencies=efficiencies,
        is_thin=advice is not None,
        advice=advice,
        is_exact=fit.is_exact,
        has_few_trials=not fit.is_exact and min(row.num_trials for row in reached) < MIN_TRIALS,
        departs=source == "shape" if fit.is_exact else departs(sizes, hyperbola, noise),
    )


_Found = tuple[Literal["fit", "shape"], RegimeEnd, RegimeEnd, tuple[Efficiency | None, ...]]


def _from_fit(rows: Sequence[StepsToResult], fit: CriticalBatchFit) -> _Found:
    def end(factor: float) -> RegimeEnd:
        values = (fit.b_crit, fit.b_crit_ci.low, fit.b_crit_ci.high)
        return RegimeEnd(*(None if value is None else factor * value for value in values))

    def share(b_crit: float | None, row: StepsToResult) -> float | None:
        return None if b_crit is None else b_crit / (b_crit + row.batch_size)

    def efficiency(row: StepsToResult) -> Efficiency | None:
        value = share(fit.b_crit, row)
        if value is None or not row.steps:
            return None
        return Efficiency(value, share(fit.b_crit_ci.low, row), share(fit.b_crit_ci.high, row))

    return "fit", end(1 / SPREAD), end(SPREAD), tuple(efficiency(row) for row in rows)


def _from_shape(rows: Sequence[StepsToResult], fit: CriticalBatchFit, curve: ShapeCurve, noise: float) -> _Found:
    ranges = None if fit.is_exact else _ranges(curve, fit, noise)

    def end(value: float | None, found: Interval) -> RegimeEnd:
        return RegimeEnd(value, found.low, found.high)

    # The smallest batch size is what the others are held against: that tells nothing of its own regime.
    smallest, shares = min(fit.batch_sizes), dict(zip(fit.batch_sizes, curve.efficiency().tolist(), strict=True))

    def efficiency(row: StepsToResult) -> Efficiency | None:
        if row.batch_size not in shares:
            return None
        found = ranges.efficiency(row.batch_size) if ranges and row.batch_size > smallest else NO_INTERVAL
        return Efficiency(shares[row.batch_size], found.low, found.high)

    perfect = end(
        curve.end_of_perfect() if curve.shows_perfect else None,
        ranges.end_of_perfect() if ranges else NO_INTERVAL,
    )
    maximal = end(
        curve.start_of_maximal() if curve.shows_maximal else None, ranges.start_of_maximal() if ranges else NO_INTERVAL
    )
    return "shape", perfect, maximal, tuple(efficiency(row) for row in rows)


def _ranges(curve: ShapeCurve, fit: CriticalBatchFit, noise: float) -> ShapeRanges:
    from scipy.special import stdtrit

    # A curve with many bends goes through noise too: then the hyperbola's residuals are the cautious measure of it.
    freedom, residuals = curve.degrees_of_freedom, curve.residuals
    if freedom < MIN_FREEDOM:
        freedom, residuals = len(fit.residuals) - 2, np.array(fit.residuals)
    variance = max(float(residuals @ residuals) / freedom, noise**2, MIN_NOISE**2)
    allowance = float(stdtrit(freedom, 0.975)) ** 2 * variance
    return ShapeRanges(curve, allowance)


def _known_noise(rows: Sequence[StepsToResult]) -> float:
    """Return the standard deviation of the logarithm of a confirmed median, from the spread of the replicates."""
    replicates = [_known_logs(row) for row in rows]
    freedom = sum(len(logs) - 1 for logs in replicates if len(logs) > 1)
    if freedom == 0:
        return 0.0
    variance = sum(float(((logs - logs.mean()) ** 2).sum()) for logs in replicates if len(logs) > 1) / freedom
    seeds = min(row.confirmed.seeds for row in rows if row.confirmed)
    return math.sqrt(math.pi / 2 * variance / seeds)


def _known_logs(row: StepsToResult) -> np.ndarray:
    steps = row.confirmed.replicate_steps if row.confirmed else ()
    return np.log([step for step in steps if step])
