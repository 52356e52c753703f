"""The critical batch size of a workload, with an interval, and with what the data cannot tell.

What is fitted is one estimand throughout, and its scatter about the curve gives the interval: search, seeds and the
grid of evaluations all enter it, whatever their shares; it counts for no less than the grid alone lets expect, as steps
on a coarse one may lie on a curve by chance. Simulated coverage: docs/results/coverage.md. It assumes that
the scatter is alike at all batch sizes and that the hyperbola holds: a search that is harder at large batch sizes
bends the curve of the minima, and then it covers 89 to 97 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from batchlab.analysis.answers.gap import grid_noise
from batchlab.analysis.answers.headline import Headline
from batchlab.analysis.answers.steps_to_result import StepsToResult
from batchlab.analysis.curve.censored_hyperbola import fit_censored_hyperbola
from batchlab.analysis.curve.contradiction import contradicting, contradictions, unexplained
from batchlab.analysis.curve.hyperbola import Hyperbola, PowerLaw, fit_hyperbola, fit_power_law
from batchlab.analysis.interval import NO_INTERVAL, Interval
from batchlab.core.clock import constant_examples

MIN_BATCH_SIZES = 3

MIN_RATIO = 1.5
"""Examples (or steps) that vary by less than this over the curve show one of its two ends only."""


@dataclass(frozen=True, kw_only=True)
class CriticalBatchFit:
    """The fit S = S_min + E_min / B, B_crit = E_min / S_min."""

    s_min: float
    e_min: float
    b_crit: float | None
    """None unless the data bound it on both sides."""

    b_crit_ci: Interval
    """95 %. One bound alone where half the curve was not seen or the other would lie more than a factor of 1,000 from
    the middle, none where both would or where there is no chance (closed form)."""

    log_se: float
    """Standard error of log B_crit."""

    estimand: Headline
    """What was fitted: confirmed medians where every batch size that met the goal has one, else minima."""

    is_exact: bool
    """Whether steps are exact, as those of the noisy quadratic model that is evaluated at every step: no interval."""

    batch_sizes: tuple[int, ...]
    """The batch sizes that met the goal."""

    residuals: tuple[float, ...]
    """log of measured over fitted steps, for each of them; measured ones are the middle of their gap."""

    noise: float = 0.0
    """What log steps scatter at the least, because they are read on a grid of evaluations."""

    lateness: float = 1.0
    """How much later than in the middle of their gaps answers are read: a factor, the geometric mean."""

    censored: tuple[int, ...]
    """Batch sizes at which the goal was not met: that it takes more steps than were trained is all that is known."""

    contradicted_by: tuple[int, ...]
    """Those of them that trained for longer than the curve says that the goal takes."""

    warning: str | None

    @property
    def hyperbola(self) -> Hyperbola:
        """The curve by itself."""
        return Hyperbola(self.s_min, self.e_min, self.log_se, np.array(self.residuals), self.b_crit_ci, self.noise)

    @property
    def worst_residual(self) -> float:
        """The largest deviation of log steps from the curve; 0.08 is about 8 %."""
        return max(abs(residual) for residual in self.residuals)

    @cached_property
    def power_law(self) -> PowerLaw | None:
        """The alternative with a free exponent, through the same steps; None for fewer than four batch sizes."""
        sizes, residuals = np.array(self.batch_sizes, dtype=float), np.array(self.residuals)
        return fit_power_law(sizes, self.steps_at(sizes) * np.exp(residuals))

    def steps_at(self, batch_sizes: np.ndarray) -> np.ndarray:
        """Return the fitted steps at these batch sizes."""
        return self.s_min + self.e_min / batch_sizes


def fit_critical_batch(rows: Sequence[StepsToResult]) -> CriticalBatchFit | None:
    """Return the fit through the rows, or None where fewer than three met the goal.

    Rows that did not meet it count as more steps than they were trained for; those whose trials all diverged do not.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> goal = Goal.read("val/classification_error < 0.1")
    >>> fit = fit_critical_batch([steps_to_result(study, goal) for study in example_workload()])
    >>> round(fit.s_min), round(fit.e_min), fit.b_crit  # three batch sizes do not bound it
    (40, 8251, None)
    """
    # Steps have no logarithm where the goal is met before the first update.
    reached = [row for row in rows if row.steps]
    if len(reached) < MIN_BATCH_SIZES:
        return None
    estimand: Headline = "confirmed" if all(row.estimate("confirmed").value for row in reached) else "minimum"
    censored = [row for row in rows if row.is_censored]
    batch_sizes = np.array([row.batch_size for row in reached], dtype=float)
    answers = [row.estimate(estimand) for row in reached]
    read, steps = (np.array(each, dtype=float) for each in zip(*((a.value, a.middle) for a in answers), strict=True))
    is_exact = all(row.is_exact for row in reached)
    noise = grid_noise(answers)
    hyperbola = _fit(batch_sizes, steps, censored, noise)
    seen = _seen(batch_sizes, steps, hyperbola.b_crit)
    exact = Interval(hyperbola.b_crit, hyperbola.b_crit)
    interval = seen.bounds(exact if is_exact else hyperbola.interval, hyperbola.b_crit)
    against = contradicting(hyperbola, censored)
    beyond_chance = against if is_exact else unexplained(against, batch_sizes, steps, noise)
    return CriticalBatchFit(
        s_min=hyperbola.s_min,
        e_min=hyperbola.e_min,
        b_crit=None if interval.is_open else hyperbola.b_crit,
        b_crit_ci=NO_INTERVAL if is_exact and not interval.is_open else interval,
        log_se=hyperbola.log_se,
        estimand=estimand,
        is_exact=is_exact,
        batch_sizes=tuple(row.batch_size for row in reached),
        residuals=tuple(hyperbola.residuals.tolist()),
        noise=noise,
        lateness=float(np.exp(np.mean(np.log(read / steps)))),
        censored=tuple(row.batch_size for row in censored),
        contradicted_by=tuple(row.batch_size for row in against),
        warning=" ".join([*seen.warnings(interval), *contradictions(against, beyond_chance)]) or None,
    )


def _fit(batch_sizes: np.ndarray, steps: np.ndarray, censored: Sequence[StepsToResult], noise: float) -> Hyperbola:
    if not censored:
        return fit_hyperbola(batch_sizes, steps, noise)
    sizes = np.concatenate([batch_sizes, [row.batch_size for row in censored]])
    ends = np.concatenate([steps, [row.end_step for row in censored]])
    return fit_censored_hyperbola(sizes, ends, np.arange(len(sizes)) >= len(batch_sizes), noise)


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

    def bounds(self, found: Interval, b_crit: float) -> Interval:
        """Return the interval, or the one bound of it that what was seen allows."""
        low, high = found.low if self.fall else None, found.high if self.end else None
        if low is not None and high is not None:
            return found.within_span(b_crit)
        return Interval(
            None if low is None else min(low, self.highest), None if high is None else max(high, self.lowest)
        )

    def warnings(self, interval: Interval) -> list[str]:
        if not self.fall and not self.end:
            return ["The batch sizes lie too close together to tell the critical batch size."]
        if interval == NO_INTERVAL:
            return [
                "The data give no bound of the critical batch size: "
                "more batch sizes, or steps with less noise, would tell."
            ]
        if self.fall and self.perfect:
            return ["Only perfect scaling was seen: the critical batch size has a lower bound only."]
        if self.fall and not self.end:
            return ["The fit puts the critical batch size far beyond those tried: it has a lower bound only."]
        if not self.fall:
            return ["Steps hardly fall with batch size: the critical batch size has an upper bound only."]
        return [
            f"The data give the critical batch size {side} bound only: {way} batch sizes would tell, "
            "or steps with less noise."
            for side, way, bound in (("a lower", "larger", interval.high), ("an upper", "smaller", interval.low))
            if bound is None
        ]


def _seen(batch_sizes: np.ndarray, steps: np.ndarray, b_crit: float) -> _Seen:
    examples = constant_examples(steps, batch_sizes)
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
