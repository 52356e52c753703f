"""What the report says in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batchlab.analysis import CriticalBatchFit, Scaling, WorkloadSummary, measure_scaling
from batchlab.analysis.text import bounds, count, estimate, significant
from batchlab.report.tables import format_share

_EFFICIENCIES = (0.7, 0.8, 0.9)
_EXCESSES = (0.1, 0.25, 0.5)


def answer(summary: WorkloadSummary) -> str:
    """Return the answer to the question of the lab for one workload, in one paragraph with numbers."""
    best = summary.best
    if best is None or best.steps is None:
        return f"No trial reached {summary.goal} at any batch size ({_budget(summary)})."
    first = (
        f"The fewest steps to {summary.goal} are {count(best.steps)}, at batch size {count(best.batch_size)} "
        f"({_budget(summary)})."
    )
    if sum(row.is_reached for row in summary.rows) == 1:
        return f"{first} One batch size tells nothing about scaling."
    return " ".join([first, _critical(summary), _end_of_perfect(summary.scaling), _max_useful(summary.scaling)])


def fit_facts(fit: CriticalBatchFit) -> list[tuple[str, str]]:
    """Return the details of a fit as terms with their values."""
    resampled = f", {count(fit.num_resamples)} resamples" if fit.num_resamples else ", not available"
    return [
        ("Steps with an unlimited batch, S_min", significant(fit.s_min)),
        ("Examples with the smallest batch, E_min", significant(fit.e_min)),
        ("Critical batch size, E_min / S_min", estimate(fit.b_crit, *fit.b_crit_ci)),
        (f"95 % interval, bootstrap over trials{resampled}", bounds(*fit.b_crit_ci) if fit.num_resamples else ""),
        ("95 % interval, delta method", bounds(*fit.b_crit_ci_delta)),
        ("Standard error of its logarithm", significant(fit.log_se, 2)),
        ("Largest deviation from the curve", f"{100 * fit.worst_residual:.1f} %"),
        ("Alternative S_min + (E_min / B)^a", _alternative(fit)),
    ]


def sensitivity(summary: WorkloadSummary) -> list[tuple[str, str]]:
    """Return how both ends of the regimes move with their thresholds."""
    ends = [
        f"{format_share(share)}: {_size(measure_scaling(summary.rows, min_efficiency=share).end_of_perfect)}"
        for share in _EFFICIENCIES
    ]
    useful = [
        f"{format_share(share)}: {_size(measure_scaling(summary.rows, max_excess=share).max_useful)}"
        for share in _EXCESSES
    ]
    return [
        ("End of perfect scaling, by least efficiency", ", ".join(ends)),
        ("Maximum useful batch size, by excess over the fewest steps", ", ".join(useful)),
    ]


def training_cost(protocol: Mapping[str, Any]) -> str | None:
    """Return what was trained and what the race saved, from `trained_steps` and `full_steps`; None without them."""
    trained, full = protocol.get("trained_steps"), protocol.get("full_steps")
    if trained is None:
        return None
    if not full or full <= trained:
        return f"{count(trained)} steps were trained."
    saved = format_share(1 - trained / full)
    return f"{count(trained)} steps were trained instead of {count(full)} in full: the race saved {saved}."


def facts(values: Mapping[str, Any], place: str = "") -> list[tuple[str, str]]:
    """Return a nested mapping as terms with their values, `versions.torch` for what lies deeper.

    >>> facts({"host": "lab", "versions": {"torch": "2.13.0"}})
    [('host', 'lab'), ('versions.torch', '2.13.0')]
    """
    found = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += facts(value, f"{place}{name}.")
        else:
            found.append((f"{place}{name}", _value(value)))
    return found


def _budget(summary: WorkloadSummary) -> str:
    numbers = [row.num_trials for row in summary.rows]
    trials = count(min(numbers))
    if min(numbers) != max(numbers):
        trials += f" to {count(max(numbers))}"
    sizes = "one batch size" if len(numbers) == 1 else f"{len(numbers)} batch sizes"
    return f"{sizes}, n = {trials} complete trials each"


def _critical(summary: WorkloadSummary) -> str:
    fit = summary.fit
    if fit is None or fit.b_crit_ci == (None, None):
        return "The critical batch size could not be determined."
    low, high = fit.b_crit_ci
    if low is None or high is None:
        return f"The critical batch size is {bounds(low, high).replace('>', 'above').replace('<', 'below')}."
    method = "bootstrap over trials" if fit.num_resamples else "delta method"
    return f"The critical batch size is {significant(fit.b_crit)} (95 % interval {bounds(low, high)}, {method})."


def _end_of_perfect(scaling: Scaling) -> str:
    if scaling.is_perfect_throughout:
        return f"Scaling is perfect as far as it was tried, to batch size {_size(scaling.end_of_perfect)}."
    return f"Scaling is perfect up to batch size {_size(scaling.end_of_perfect)}."


def _max_useful(scaling: Scaling) -> str:
    if not scaling.is_saturated:
        return f"Steps still fall at the end: the maximum useful batch size is at least {_size(scaling.max_useful)}."
    return f"The maximum useful batch size is {_size(scaling.max_useful)}: larger ones save few steps or none."


def _size(batch_size: int | None) -> str:
    return "none" if batch_size is None else count(batch_size)


def _alternative(fit: CriticalBatchFit) -> str:
    law = fit.power_law
    if law is None:
        return "needs four batch sizes"
    verdict = "neither is clearly better"
    if abs(law.aic_difference) > 2:
        verdict = "the hyperbola is better" if law.aic_difference > 0 else "the alternative is better"
    return f"a = {significant(law.exponent)}, AIC {law.aic_difference:+.1f} against the hyperbola: {verdict}"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(part) for part in value)
    return str(value)
