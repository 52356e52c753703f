"""The three named answers as a legend calls them, with how much stands behind each."""

from __future__ import annotations

from collections.abc import Sequence

from batchlab.analysis import CriticalBatchFit, StepsToResult
from batchlab.analysis.answers.headline import IN_WORDS, Headline
from batchlab.analysis.text import bounds, significant, span

INTERVAL = "95 % interval"


def answer_label(headline: Headline, rows: Sequence[StepsToResult]) -> str:
    """Return what a named answer is, and of how many trials or seeds."""
    if headline == "confirmed":
        return f"confirmed median of {span(row.confirmed.seeds for row in rows if row.confirmed)} seeds"
    trials = span(row.num_trials for row in rows)
    if headline == "best_of":
        return f"best of {span(row.best_of.m for row in rows if row.best_of)} (median), from {trials} trials"
    return "one trial" if trials == "1" else f"minimum of {trials} trials"


def fit_label(fit: CriticalBatchFit) -> str:
    """Return the fitted curve in numbers, and what it was fitted to."""
    return f"fit of {IN_WORDS[fit.estimand]}: {significant(fit.s_min)} + {significant(fit.e_min)} / batch size"


def critical_label(fit: CriticalBatchFit) -> str:
    """Return the critical batch size with its interval; the bound alone where a side is open."""
    low, high = fit.b_crit_ci.low, fit.b_crit_ci.high
    if fit.b_crit is None or (fit.b_crit_ci.is_open and not fit.is_exact):
        return f"critical batch size {bounds(low, high)}"
    if low is None and high is None:
        return f"critical batch size {significant(fit.b_crit)} (no chance, no interval)"
    return f"critical batch size {significant(fit.b_crit)} ({bounds(low, high)})"
