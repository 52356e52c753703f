"""The critical batch size of a workload, with an interval, and with what the data cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from batchlab.analysis.bootstrap import HIGH, LOW, Bounds
from batchlab.analysis.hyperbola import Hyperbola, PowerLaw, fit_hyperbola, fit_power_law
from batchlab.analysis.steps_to_result import StepsToResult, resample_steps
from batchlab.analysis.text import listed

MIN_BATCH_SIZES = 3
NUM_RESAMPLES = 400

MIN_RATIO = 1.5
"""Examples (or steps) that vary by less than this over the curve show one of its two ends only."""


@dataclass(frozen=True, kw_only=True)
class CriticalBatchFit:
    """The fit S = S_min + E_min / B, B_crit = E_min / S_min."""

    s_min: float
    e_min: float
    b_crit: float
    b_crit_ci: Bounds
    """95 %, by refitting bootstrap draws over trials; by the delta method where `num_resamples` is 0."""

    b_crit_ci_delta: Bounds
    """95 %, from the scatter about the curve."""

    log_se: float
    """Standard error of log B_crit, by the delta method."""

    num_resamples: int
    batch_sizes: tuple[int, ...]
    """The batch sizes that were fitted."""

    residuals: tuple[float, ...]
    """log of measured over fitted steps, for each of them."""

    power_law: PowerLaw | None
    """The alternative with a free exponent; None for fewer than four batch sizes."""

    censored: tuple[int, ...]
    """Batch sizes at which the goal was not met: all that is known is a lower bound, so they are not fitted."""

    warning: str | None

    @property
    def worst_residual(self) -> float:
        """The largest deviation of log steps from the curve; 0.08 is about 8 %."""
        return max(abs(residual) for residual in self.residuals)

    def steps_at(self, batch_sizes: np.ndarray) -> np.ndarray:
        """Return the fitted steps at these batch sizes."""
        return self.s_min + self.e_min / batch_sizes


def fit_critical_batch(
    rows: Sequence[StepsToResult], *, seed: int = 0, num_resamples: int = NUM_RESAMPLES
) -> CriticalBatchFit | None:
    """Return the fit through the rows that met the goal, or None where fewer than three did.

    The bootstrap resamples the trials within each batch size. A draw in which no trial met the goal is
    taken at the end of training, the least it can be; `warning` says where that happens.

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
    batch_sizes = np.array([row.batch_size for row in reached], dtype=float)
    steps = np.array([row.steps for row in reached], dtype=float)
    hyperbola = fit_hyperbola(batch_sizes, steps)
    if all(row.num_trials < 2 for row in reached):
        num_resamples = 0
    interval = _bootstrap_interval(reached, hyperbola, seed, num_resamples) or hyperbola.b_crit_interval()
    seen = _seen(batch_sizes, steps, hyperbola.b_crit)
    censored = tuple(row.batch_size for row in rows if row.steps is None)
    return CriticalBatchFit(
        s_min=hyperbola.s_min,
        e_min=hyperbola.e_min,
        b_crit=hyperbola.b_crit,
        b_crit_ci=seen.bound(interval),
        b_crit_ci_delta=seen.bound(hyperbola.b_crit_interval()),
        log_se=hyperbola.log_se,
        num_resamples=num_resamples,
        batch_sizes=tuple(row.batch_size for row in reached),
        residuals=tuple(hyperbola.residuals.tolist()),
        power_law=fit_power_law(batch_sizes, steps, hyperbola),
        censored=censored,
        warning=" ".join([*seen.warnings(), *_warnings(reached, censored, num_resamples)]) or None,
    )


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

    def bound(self, interval: Bounds) -> Bounds:
        low, high = interval
        if not self.end and low is not None:
            low = min(low, self.highest)
        if not self.fall and high is not None:
            high = max(high, self.lowest)
        return (low if self.fall else None), (high if self.end else None)

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


def _bootstrap_interval(
    reached: Sequence[StepsToResult], hyperbola: Hyperbola, seed: int, num_resamples: int
) -> Bounds | None:
    if num_resamples == 0:
        return None
    rng = np.random.default_rng(seed)
    batch_sizes = np.array([row.batch_size for row in reached], dtype=float)
    steps = np.stack([resample_steps(row, rng, num_resamples) for row in reached], axis=1)
    start = (hyperbola.s_min, hyperbola.e_min)
    fits = [fit_hyperbola(batch_sizes, draw, start, tolerance=1e-8).b_crit for draw in steps]
    low, high = np.quantile(fits, [LOW, HIGH])
    return float(low), float(high)


def _warnings(reached: Sequence[StepsToResult], censored: Sequence[int], num_resamples: int) -> list[str]:
    found = []
    if censored:
        found.append(f"Not reached, so not fitted: batch size {listed(censored)}.")
    is_open = [row.batch_size for row in reached if row.is_open]
    if is_open:
        found.append(
            f"Too few trials met the goal at batch size {listed(is_open)} to bound its steps above, "
            "so the interval of the critical batch size may be too narrow."
        )
    if num_resamples == 0:
        found.append("One trial for each batch size: the interval is that of the delta method.")
    return found
