"""The critical batch size of a workload, with an interval, and with what the data cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from batchlab.analysis.headline import Headline
from batchlab.analysis.hyperbola import PowerLaw, fit_hyperbola, fit_power_law
from batchlab.analysis.interval import NO_INTERVAL, Interval
from batchlab.analysis.steps_to_result import StepsToResult
from batchlab.analysis.text import listed

MIN_BATCH_SIZES = 3

MIN_RATIO = 1.5
"""Examples (or steps) that vary by less than this over the curve show one of its two ends only."""


@dataclass(frozen=True, kw_only=True)
class CriticalBatchFit:
    """The fit S = S_min + E_min / B, B_crit = E_min / S_min."""

    s_min: float
    e_min: float
    b_crit: float | None
    """None where the data bound it on neither side."""

    b_crit_ci: Interval
    """95 %."""

    log_se: float
    """Standard error of log B_crit."""

    estimand: Headline
    """What was fitted: confirmed medians where every batch size that met the goal has one, else minima."""

    is_closed_form: bool
    """Whether steps are exact, as those of the noisy quadratic model: without chance there is no interval."""

    batch_sizes: tuple[int, ...]
    """The batch sizes that met the goal."""

    residuals: tuple[float, ...]
    """log of measured over fitted steps, for each of them."""

    power_law: PowerLaw | None
    """The alternative with a free exponent; None for fewer than four batch sizes."""

    censored: tuple[int, ...]
    """Batch sizes at which the goal was not met: that it takes more steps than were trained is all that is known."""

    contradicted_by: tuple[int, ...]
    """Those of them that trained for longer than the curve says that the goal takes."""

    warning: str | None

    @property
    def worst_residual(self) -> float:
        """The largest deviation of log steps from the curve; 0.08 is about 8 %."""
        return max(abs(residual) for residual in self.residuals)

    def steps_at(self, batch_sizes: np.ndarray) -> np.ndarray:
        """Return the fitted steps at these batch sizes."""
        return self.s_min + self.e_min / batch_sizes


def fit_critical_batch(rows: Sequence[StepsToResult]) -> CriticalBatchFit | None:
    """Return the fit through the rows that met the goal, or None where fewer than three did.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> goal = Goal.read("val/classification_error < 0.1")
    >>> fit = fit_critical_batch([steps_to_result(study, goal) for study in example_workload()])
    >>> round(fit.s_min), round(fit.e_min), round(fit.b_crit)
    (53, 10997, 207)
    """
    # Steps have no logarithm where the goal is met before the first update.
    reached = [row for row in rows if row.steps]
    if len(reached) < MIN_BATCH_SIZES:
        return None
    estimand: Headline = "confirmed" if all(row.estimate("confirmed").value for row in reached) else "minimum"
    batch_sizes = np.array([row.batch_size for row in reached], dtype=float)
    steps = np.array([row.estimate(estimand).value for row in reached], dtype=float)
    hyperbola = fit_hyperbola(batch_sizes, steps)
    seen = _seen(batch_sizes, steps, hyperbola.b_crit)
    is_closed_form = all(row.protocol.is_closed_form for row in reached)
    censored = [row for row in rows if not row.is_reached]
    fit = CriticalBatchFit(
        s_min=hyperbola.s_min,
        e_min=hyperbola.e_min,
        b_crit=hyperbola.b_crit,
        b_crit_ci=NO_INTERVAL if is_closed_form else seen.bound(hyperbola.b_crit_interval()),
        log_se=hyperbola.log_se,
        estimand=estimand,
        is_closed_form=is_closed_form,
        batch_sizes=tuple(row.batch_size for row in reached),
        residuals=tuple(hyperbola.residuals.tolist()),
        power_law=fit_power_law(batch_sizes, steps, hyperbola),
        censored=tuple(row.batch_size for row in censored),
        contradicted_by=(),
        warning=None,
    )
    against = tuple(row.batch_size for row in censored if fit.steps_at(np.array(row.batch_size)) < row.end_step)
    return replace(fit, contradicted_by=against, warning=" ".join([*seen.warnings(), *_warnings(against)]) or None)


@dataclass(frozen=True)
class _Seen:
    """How much of the curve the batch sizes cover, and so which B_crit they can speak of."""

    fall: bool
    """Steps are seen to fall, which bounds B_crit below."""

    end: bool
    """Perfect scaling is seen to end, which bounds B_crit above."""

    perfect: bool
    """No batch size needed many more examples than another."""

    lowest: float
    highest: float
    """A bound alone on its side is never taken beyond these: fits run away where half the curve is missing."""

    def bound(self, interval: Interval) -> Interval:
        low, high = interval.low, interval.high
        if not self.end and low is not None:
            low = min(low, self.highest)
        if not self.fall and high is not None:
            high = max(high, self.lowest)
        return Interval(low if self.fall else None, high if self.end else None)

    def warnings(self) -> list[str]:
        if self.fall and self.end:
            return []
        if self.fall and self.perfect:
            return ["Only perfect scaling was seen: the critical batch size has a lower bound only."]
        if self.fall:
            return ["The fit puts the critical batch size far beyond those tried: it has a lower bound only."]
        if self.end:
            return ["Steps hardly fall with batch size: the critical batch size has an upper bound only."]
        return ["The batch sizes lie too close together to tell the critical batch size."]


def _seen(batch_sizes: np.ndarray, steps: np.ndarray, b_crit: float) -> _Seen:
    examples = batch_sizes * steps
    # On the curve itself the ratios are below 1.5 where B_crit is beyond twice the largest batch size, or below half
    # the smallest. Asking for both also catches steps that fall faster than 1 / B, and steps that rise.
    lowest, highest = float(batch_sizes.min()) / 2, 2 * float(batch_sizes.max())
    is_perfect = bool(examples.max() < MIN_RATIO * examples.min())
    return _Seen(
        fall=bool(steps.max() >= MIN_RATIO * steps.min() and b_crit >= lowest),
        end=not is_perfect and bool(b_crit <= highest),
        perfect=is_perfect,
        lowest=lowest,
        highest=highest,
    )


def _warnings(against: Sequence[int]) -> list[str]:
    if not against:
        return []
    return [f"Batch size {listed(against)} did not meet the goal, though the curve says that it should have."]
