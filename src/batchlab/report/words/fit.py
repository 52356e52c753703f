"""The critical batch size and the fit behind it: in a sentence, in a few characters, and as facts."""

from __future__ import annotations

import math

from batchlab.analysis import CriticalBatchFit, WorkloadSummary
from batchlab.analysis.answers.best_of import MIN_TRIALS
from batchlab.analysis.answers.headline import IN_WORDS
from batchlab.analysis.curve.regime_end import MAX_OCTAVES
from batchlab.analysis.interval import Interval
from batchlab.analysis.text import bounds, estimate, listed, significant

_FITTED_ALL_THE_SAME = "A hyperbola does not describe these steps well; fitted all the same, its"


def critical_sentence(summary: WorkloadSummary) -> str:
    """Return what is known of the critical batch size, and how firmly."""
    fit = summary.fit
    if fit is None:
        return "The critical batch size could not be determined."
    if fit.is_exact and fit.b_crit is not None:
        return _exactly(fit.b_crit, fit, summary)
    low, high = fit.b_crit_ci.low, fit.b_crit_ci.high
    if low is None and high is None:
        return "The critical batch size could not be determined."
    found, place = _found(fit)
    if fit.contradicted_by:
        return f"A fit puts the critical batch size {place}, but {_against(fit)}."
    if failed := _failed(summary):
        return f"A fit puts the critical batch size {place}, but batch size {listed(failed)} failed to be confirmed."
    fewest = fewest_trials(summary)
    if _is_poor(summary):
        return f"{_FITTED_ALL_THE_SAME} critical batch size is {found}."
    if fewest < MIN_TRIALS and not fit.is_exact:
        return f"A fit puts the critical batch size {place}: a hint, no more, from so few trials ({fewest})."
    if fit.b_crit is not None and low is not None and high is not None and high > 2**MAX_OCTAVES * low:
        span = f"{significant(low)} and {significant(high)}"
        return (
            f"The critical batch size lies between {span} (95 % interval, from {IN_WORDS[fit.estimand]}; "
            f"the fit says {significant(fit.b_crit)})."
        )
    return f"The critical batch size is {found}."


def _found(fit: CriticalBatchFit) -> tuple[str, str]:
    """Return the critical batch size with its interval, or its one bound, and where that is."""
    low, high = fit.b_crit_ci.low, fit.b_crit_ci.high
    if fit.b_crit is None or low is None or high is None:
        side = bounds(low, high).replace(">", "above").replace("<", "below")
        found = side if fit.is_exact else f"{side} (95 %)"
        return found, found
    found = f"{significant(fit.b_crit)} (95 % interval {bounds(low, high)}, from {IN_WORDS[fit.estimand]})"
    return found, f"at {found}"


def critical_text(fit: CriticalBatchFit | None) -> str:
    """Return the critical batch size with its interval, or the bound alone, in a few characters."""
    return "no fit" if fit is None else _size_text(fit)


def fit_facts(fit: CriticalBatchFit) -> list[tuple[str, str]]:
    """Return the details of a fit as terms with their values."""
    facts = [
        ("Fitted to", _fitted_to(fit)),
        ("Steps with an unlimited batch, S_min", significant(fit.s_min)),
        ("Examples with the smallest batch, E_min", significant(fit.e_min)),
        ("Critical batch size, E_min / S_min", "not bounded" if fit.b_crit is None else significant(fit.b_crit)),
        ("95 % interval", "none: steps are exact here" if fit.is_exact else _bounds(fit.b_crit_ci)),
        ("Standard error of its logarithm", significant(fit.log_se, 2)),
        ("Largest deviation from the curve", f"{max(map(deviation, fit.residuals), key=abs):+.1f} %"),
        ("Alternative S_min + (E_min / B)^a", _alternative(fit)),
    ]
    if fit.censored:
        facts.append(("Not reached, so a lower bound only", f"batch size {listed(fit.censored)}"))
    if fit.contradicted_by:
        facts.append(("Trained for more steps than the fit predicts", f"batch size {listed(fit.contradicted_by)}"))
    return facts


def deviation(residual: float) -> float:
    """Return in per cent how far steps lie from the curve, of a difference of logarithms.

    >>> round(deviation(0.539), 1)
    71.4
    """
    return 100 * math.expm1(residual)


def _fitted_to(fit: CriticalBatchFit) -> str:
    late = deviation(math.log(fit.lateness))
    if late < 0.1:
        return IN_WORDS[fit.estimand]
    return f"{IN_WORDS[fit.estimand]}, each in the middle of the gap before its evaluation, {late:.2g} % earlier"


def _is_poor(summary: WorkloadSummary) -> bool:
    """Return whether enough trials show that the hyperbola does not hold."""
    return _departs(summary) and fewest_trials(summary) >= MIN_TRIALS


def _departs(summary: WorkloadSummary) -> bool:
    return summary.regimes is not None and summary.regimes.departs


def is_doubted(summary: WorkloadSummary) -> bool:
    """Return whether a batch size speaks against the fit: a firm word would be one too many."""
    return bool(summary.fit and summary.fit.contradicted_by) or bool(_failed(summary))


def _failed(summary: WorkloadSummary) -> list[int]:
    return [row.batch_size for row in summary.rows if row.failed_to_confirm]


def _against(fit: CriticalBatchFit) -> str:
    sizes = listed(fit.contradicted_by)
    return f"batch size {sizes} trained for more steps than the fit predicts without meeting the goal: see the notes"


def _exactly(b_crit: float, fit: CriticalBatchFit, summary: WorkloadSummary) -> str:
    found = f"{significant(b_crit)}, without an interval: steps are exact here"
    if fit.contradicted_by:
        return f"A fit puts the critical batch size at {found}, but {_against(fit)}."
    return f"{_FITTED_ALL_THE_SAME if _departs(summary) else 'The'} critical batch size is {found}."


def _size_text(fit: CriticalBatchFit) -> str:
    if fit.is_exact and fit.b_crit is not None:
        return significant(fit.b_crit)
    if fit.b_crit is None:
        return _bounds(fit.b_crit_ci)
    return estimate(fit.b_crit, fit.b_crit_ci.low, fit.b_crit_ci.high)


def _bounds(interval: Interval) -> str:
    return bounds(interval.low, interval.high)


def _alternative(fit: CriticalBatchFit) -> str:
    law = fit.power_law
    if law is None:
        return "needs four batch sizes"
    return f"a = {significant(law.exponent)}, AIC {law.aic_difference:+.1f} against the hyperbola"


def fewest_trials(summary: WorkloadSummary) -> int:
    """Return how many trials the batch size has that has the fewest, of those that met the goal."""
    return min(row.num_trials for row in summary.rows if row.is_reached)
