"""What the tool says in sentences: each with its range, and none that claims more than that."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from batchlab.analysis import CriticalBatchFit, StepsToResult, WorkloadSummary
from batchlab.analysis.answers.best_of import MIN_TRIALS
from batchlab.analysis.answers.confirmed import fewest_seeds
from batchlab.analysis.curve.regime_end import MAX_OCTAVES, RegimeEnd
from batchlab.analysis.interval import Interval
from batchlab.analysis.text import bounds, count, estimate, in_times, listed, significant
from batchlab.core.goal import Goal
from batchlab.report.tables import best_interval, format_steps, span

_ESTIMANDS = {"confirmed": "confirmed medians", "best_of": "best of m", "minimum": "minima"}


def answer(summary: WorkloadSummary) -> str:
    """Return the answer to the question of the lab for one workload, in one paragraph with numbers."""
    best = summary.best
    if best is None:
        return f"No trial met {summary.goal} at any batch size {_end_of_training(summary.rows)} ({_n(summary)})."
    if best.estimate(summary.headline).value == 0:
        return f"{summary.goal} is met at step 0, before any training: that tells nothing about batch sizes."
    sentences = [_fewest(summary, best)]
    if sum(row.is_reached for row in summary.rows) == 1:
        return f"{sentences[0]} One batch size tells nothing about scaling."
    return " ".join([*sentences, _critical(summary), *regimes(summary)])


def regimes(summary: WorkloadSummary) -> list[str]:
    """Return where perfect scaling ends and where a larger batch size saves little; of thin data what would tell."""
    found = summary.regimes
    if found is None:
        return []
    sizes = [row.batch_size for row in summary.rows if row.is_reached]
    maximal: Callable[[RegimeEnd, Sequence[int]], str] = partial(_maximal, is_curve=found.source == "fit")
    ends = [(_perfect, found.perfect_up_to), (maximal, found.maximal_from)]
    if summary.is_exact:
        ends = [(tell, _exact(end)) for tell, end in ends]
    if not found.is_thin:
        return [tell(end, sizes) for tell, end in ends]
    has_enough = min(row.num_trials for row in summary.rows if row.is_reached) >= MIN_TRIALS
    firm = [tell(end, sizes) for tell, end in ends if has_enough and end.is_firm]
    return [*firm, *([found.advice] if found.advice else [])]


def protocol(summary: WorkloadSummary) -> str:
    """Return how the trials were trained, and so what the numbers hold for."""
    how = {
        "race": _race(summary),
        "full": _full(summary),
        "imported": "Imported: these trials were not run here, and their minimum is the paper's statistic.",
    }[summary.protocol.kind]
    return f"{how} {confirmed}" if (confirmed := confirmation(summary)) else how


def left_out(number: int, of: str = "its archive") -> str:
    """Return the sentence for what an import could not take in."""
    what = "1 broken study or trial" if number == 1 else f"{count(number)} broken studies or trials"
    return f"{what} of {of} {'was' if number == 1 else 'were'} left out of the lab; its rejected.json has the reasons."


def fit_facts(fit: CriticalBatchFit) -> list[tuple[str, str]]:
    """Return the details of a fit as terms with their values."""
    facts = [
        ("Fitted to", _fitted_to(fit)),
        ("Steps with an unlimited batch, S_min", significant(fit.s_min)),
        ("Examples with the smallest batch, E_min", significant(fit.e_min)),
        ("Critical batch size, E_min / S_min", "not bounded" if fit.b_crit is None else significant(fit.b_crit)),
        ("95 % interval", "none: steps are exact here" if _is_exact(fit) else _bounds(fit.b_crit_ci)),
        ("Standard error of its logarithm", significant(fit.log_se, 2)),
        ("Largest deviation from the curve", f"{max(map(deviation, fit.residuals), key=abs):+.1f} %"),
        ("Alternative S_min + (E_min / B)^a", _alternative(fit)),
    ]
    if fit.censored:
        facts.append(("Not reached, so a lower bound only", f"batch size {listed(fit.censored)}"))
    if fit.contradicted_by:
        facts.append(("Trained for more steps than the fit predicts", f"batch size {listed(fit.contradicted_by)}"))
    return facts


def _fitted_to(fit: CriticalBatchFit) -> str:
    late = deviation(math.log(fit.lateness))
    if late < 0.1:
        return _ESTIMANDS[fit.estimand]
    return f"{_ESTIMANDS[fit.estimand]}, each in the middle of the gap before its evaluation, {late:.2g} % earlier"


def deviation(residual: float) -> float:
    """Return in per cent how far steps lie from the curve, of a difference of logarithms.

    >>> round(deviation(0.539), 1)
    71.4
    """
    return 100 * math.expm1(residual)


def critical(fit: CriticalBatchFit | None) -> str:
    """Return the critical batch size with its interval, or the bound alone, in a few characters."""
    return "no fit" if fit is None else _size_text(fit)


def regime_facts(summary: WorkloadSummary) -> list[tuple[str, str]]:
    """Return both ends of the regimes with their ranges, and what they were read from."""
    found = summary.regimes
    if found is None:
        return []
    if found.source == "fit":
        source = "the fit: its slope on log axes is -0.8 and -0.2 at the two ends"
    elif found.departs:
        source = "the closest convex curve: the hyperbola does not hold here"
    else:
        source = "the closest convex curve, which these steps follow more closely"
    return [
        ("Perfect scaling (efficiency of 80 % or more) up to", _end_text(found.perfect_up_to, summary)),
        ("Larger batch sizes save at most a fifth of the steps from", _end_text(found.maximal_from, summary)),
        ("Read from", source),
    ]


def training_cost(protocol: Mapping[str, Any]) -> str | None:
    """Return what was trained and what the race saved, from `trained_steps` and `full_steps`; None without them."""
    trained, full = protocol.get("trained_steps"), protocol.get("full_steps")
    if trained is None:
        return None
    again = protocol.get("confirming_steps")
    confirming = f"; confirming the best points took {count(again)} more" if again else ""
    if protocol.get("protocol") != "race" or not full or full <= trained:
        return f"The search trained {count(trained)} steps{confirming}."
    every = f"every trial to its budget would be {count(full)}{in_times(full, trained)}"
    return f"The search trained {count(trained)} steps, where {every}{confirming}."


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


# The answer


def _fewest(summary: WorkloadSummary, best: StepsToResult) -> str:
    value = best.estimate(summary.headline).value
    assert value is not None
    interval = best_interval(summary, best)
    shown = f"{format_steps(value)} (95 % interval {interval})" if interval else format_steps(value)
    return f"The fewest steps to {summary.goal} are {shown} at batch size {count(best.batch_size)}: {_what(summary)}."


def _what(summary: WorkloadSummary) -> str:
    """Return what the headline's number is the number of."""
    if summary.headline == "confirmed":
        return f"the median over {_seeds(summary)} fresh seeds of the best configuration, from {_n(summary)}"
    if summary.headline == "best_of":
        numbers = [row.best_of.m for row in summary.rows if row.best_of]
        trials = "one trial" if max(numbers) == 1 else f"the best of {span(numbers)} trials"
        return f"the median steps of {trials}, from {_n(summary)}"
    return f"the minimum of {_n(summary)}, {_no_interval(summary)}"


def _seeds(summary: WorkloadSummary) -> str:
    return span([row.confirmed.seeds for row in summary.rows if row.confirmed])


def _no_interval(summary: WorkloadSummary) -> str:
    """Return why a minimum stands first, and so without an interval."""
    if summary.is_exact:
        return "exact, so without an interval"
    if summary.protocol.is_closed_form:
        return f"without chance, but up to {_most_late(summary)} steps late: not every step was evaluated"
    if summary.protocol.is_grid:
        return "points of a grid, which give no interval"
    if summary.protocol.kind == "imported":
        return "the paper's statistic, which has no interval"
    if _fewest_trials(summary) < MIN_TRIALS:
        return f"too few for an interval ({MIN_TRIALS} give one)"
    return "of which too few met the goal for an interval"


def _most_late(summary: WorkloadSummary) -> str:
    estimates = [row.estimate("minimum") for row in summary.rows if row.steps]
    return format_steps(max(each.value - each.earliest_step for each in estimates if each.value is not None))


def _n(summary: WorkloadSummary) -> str:
    numbers = [row.num_trials for row in summary.rows]
    places = "one batch size" if len(numbers) == 1 else f"each of {len(numbers)} batch sizes"
    return f"n = {span(numbers)} complete trials at {places}"


def _end_of_training(rows: Sequence[StepsToResult]) -> str:
    found = []
    for ended_by, words in (("race", "before the race ended at step"), ("budget", "within the budget of")):
        steps = [row.end_step for row in rows if row.ended_by == ended_by]
        if steps:
            found.append(f"{words} {span(steps)}{' steps' if ended_by == 'budget' else ''}")
    if any(row.ended_by == "divergence" for row in rows):
        found.append("before all diverged")
    return " or ".join(found)


def _critical(summary: WorkloadSummary) -> str:
    fit = summary.fit
    if fit is None:
        return "The critical batch size could not be determined."
    if _is_exact(fit) and fit.b_crit is not None:
        return _exactly(fit.b_crit, fit, summary)
    low, high = fit.b_crit_ci.low, fit.b_crit_ci.high
    if low is None and high is None:
        return "The critical batch size could not be determined."
    if fit.b_crit is None or low is None or high is None:
        share = "" if _is_exact(fit) else " (95 %)"
        side = bounds(low, high).replace(">", "above").replace("<", "below")
        return f"{_FITTED_ALL_THE_SAME if _is_poor(summary) else 'The'} critical batch size is {side}{share}."
    found = f"{significant(fit.b_crit)} (95 % interval {bounds(low, high)}, from {_ESTIMANDS[fit.estimand]})"
    if fit.contradicted_by:
        return f"A fit puts the critical batch size at {found}, but {_against(fit)}."
    if failed := [row.batch_size for row in summary.rows if row.failed_to_confirm]:
        return f"A fit puts the critical batch size at {found}, but batch size {listed(failed)} failed to be confirmed."
    fewest = _fewest_trials(summary)
    if _is_poor(summary):
        return f"{_FITTED_ALL_THE_SAME} critical batch size is {found}."
    if fewest < MIN_TRIALS:
        return f"A fit puts the critical batch size at {found}: a hint, no more, from so few trials ({fewest})."
    if high > 2**MAX_OCTAVES * low:
        span = f"{significant(low)} and {significant(high)}"
        return (
            f"The critical batch size lies between {span} (95 % interval, from {_ESTIMANDS[fit.estimand]}; "
            f"the fit says {significant(fit.b_crit)})."
        )
    return f"The critical batch size is {found}."


_FITTED_ALL_THE_SAME = "A hyperbola does not describe these steps well; fitted all the same, its"


def _fewest_trials(summary: WorkloadSummary) -> int:
    return min(row.num_trials for row in summary.rows if row.is_reached)


def _is_poor(summary: WorkloadSummary) -> bool:
    """Return whether enough trials show that the hyperbola does not hold."""
    return _departs(summary) and _fewest_trials(summary) >= MIN_TRIALS


def _departs(summary: WorkloadSummary) -> bool:
    return summary.regimes is not None and summary.regimes.departs


def _against(fit: CriticalBatchFit) -> str:
    sizes = listed(fit.contradicted_by)
    return f"batch size {sizes} trained for more steps than the fit predicts without meeting the goal: see the notes"


def _exactly(b_crit: float, fit: CriticalBatchFit, summary: WorkloadSummary) -> str:
    found = f"{significant(b_crit)}, without an interval: steps are exact here"
    if fit.contradicted_by:
        return f"A fit puts the critical batch size at {found}, but {_against(fit)}."
    return f"{_FITTED_ALL_THE_SAME if _departs(summary) else 'The'} critical batch size is {found}."


# Regimes


def _perfect(end: RegimeEnd, sizes: Sequence[int]) -> str:
    smallest, largest = min(sizes), max(sizes)
    if end.low is not None and end.low >= largest:
        return f"Scaling is perfect as far as it was tried, to batch size {count(largest)}."
    if end.high is not None and end.high < smallest:
        return f"Perfect scaling ends below batch size {count(smallest)}, the smallest that met the goal."
    if end.low is None or end.high is None:
        return _open_end("Where perfect scaling ends is not known", end)
    return f"Scaling is perfect (efficiency of 80 % or more) up to batch size {_range_text(end)}."


def _maximal(end: RegimeEnd, sizes: Sequence[int], *, is_curve: bool) -> str:
    """Return where little is left to save; without a fitted curve nothing is known beyond the batch sizes tried."""
    smallest, largest = min(sizes), max(sizes)
    if end.low is not None and end.low >= largest:
        return f"Steps still fall at batch size {count(largest)}, the largest that met the goal."
    if end.high is not None and end.high < smallest:
        return f"Beyond batch size {count(smallest)}, the smallest, larger ones save at most a fifth of the steps."
    if end.low is None or end.high is None:
        return _open_end("Where larger batch sizes stop paying is not known", end)
    larger = "larger ones" if is_curve else f"larger ones, up to {count(largest)}, the largest that met the goal,"
    return f"Beyond batch size {_range_text(end)}, {larger} save at most a fifth of the steps."


def _open_end(sentence: str, end: RegimeEnd) -> str:
    if end.low is None and end.high is None:
        return f"{sentence}."
    side = f"above {_size(end.low)}" if end.low is not None else f"below {_size(end.high or 0)}"
    return f"{sentence}: somewhere {side}."


def _exact(end: RegimeEnd) -> RegimeEnd:
    return RegimeEnd(end.value, end.value, end.value)


def _end_text(end: RegimeEnd, summary: WorkloadSummary) -> str:
    if summary.is_exact and end.value is not None:
        return f"{_size(end.value)}, exact"
    if summary.regimes is not None and summary.regimes.has_few_trials:
        return f"not known: fewer than {MIN_TRIALS} trials at a batch size"
    return "not known" if end.low is None and end.high is None else _range_text(end)


def _range_text(end: RegimeEnd) -> str:
    if end.low is None or end.high is None:
        return f"> {_size(end.low)}" if end.low is not None else f"< {_size(end.high or 0)}"
    if end.low == end.high:
        return _size(end.low)
    spread = f"{_size(end.low)} to {_size(end.high)}"
    return spread if end.value is None else f"{_size(end.value)} (range {spread})"


def _size(batch_size: float) -> str:
    return significant(batch_size, 2) if batch_size < 10 else f"{batch_size:,.0f}"


# Protocol and fit


def _race(summary: WorkloadSummary) -> str:
    if not any(row.is_reached or row.ended_by == "race" for row in summary.rows):
        return "Raced, but no trial met the goal: every trial that did not diverge was trained to its budget."
    factor = summary.protocol.race_factor
    until = "soon after" if factor is None else "with" if factor == 1 else f"at {factor:g} times the steps of"
    goal = "the sweep's goal"
    return f"Raced: trials ended {until} the first that met {goal}, so counts of diverged and stuck ones end there."


def _full(summary: WorkloadSummary) -> str:
    alone = ", or ended by itself before" if any(row.ended_alone for row in summary.rows) else ""
    return f"Full protocol: every trial was trained to its budget{alone}."


def confirmation(summary: WorkloadSummary) -> str | None:
    """Return whether the answers were confirmed, and if not why; None where they could not have been."""
    if summary.is_confirmed:
        again = f"Confirmed: the best points were trained again with {_seeds(summary)} fresh seeds."
        return " ".join([again, *_lacking_intervals(summary)])
    if summary.protocol.kind == "imported" or summary.protocol.is_closed_form or summary.best is None:
        return None
    missed = [row for row in summary.rows if row.failed_to_confirm]
    if missed:
        sizes = [row.batch_size for row in missed]
        ends = [row.confirmed.end_step for row in missed if row.confirmed]
        diverged = any(row.confirmed.num_diverged for row in missed if row.confirmed)
        short = f"missed the goal within {span(ends)} steps{' or diverged' if diverged else ''}"
        return f"Not confirmed at batch size {listed(sizes)}: half or more of the runs with fresh seeds {short}."
    others = {row.confirmed_goal for row in summary.rows if row.confirmed_goal is not None}
    if others:
        return _confirmed_otherwise(summary, others)
    how = "`batchlab confirm`, or for code of your own `run` with `sweep.confirm`,"
    return f"Not confirmed: {how} trains the best points for the sweep's goal again with fresh seeds."


def _lacking_intervals(summary: WorkloadSummary) -> list[str]:
    """Return a sentence for confirmed answers whose seeds are too few, for so many points, to give an interval."""
    made = [(row.batch_size, row.confirmed) for row in summary.rows if row.confirmed]
    few = [(size, each) for size, each in made if each.seeds < fewest_seeds(each.points)]
    if not few:
        return []
    seeds, points = span([each.seeds for _, each in few]), [each.points for _, each in few]
    return [
        f"{seeds} seeds of {span(points)} points give no 95 % interval (batch size {listed(size for size, _ in few)}): "
        f"{fewest_seeds(max(points))} seeds would."
    ]


def _confirmed_otherwise(summary: WorkloadSummary, goals: Collection[Goal]) -> str:
    """Return what was confirmed in place of what is asked: another goal, or more trials or batch sizes."""
    if summary.goal not in goals:
        return f"Not confirmed: fresh seeds were trained to {' and '.join(sorted(map(str, goals)))}, not to this goal."
    lacking = [row for row in summary.rows if row.is_reached and row.confirmed is None]
    sizes = [row.batch_size for row in lacking if row.confirmed_goal is None]
    if sizes:
        return f"Not confirmed at batch size {listed(sizes)}: no point was trained again there."
    sizes = [row.batch_size for row in lacking]
    return (
        f"Not confirmed at batch size {listed(sizes)}: the points that were trained again are not among these trials."
    )


def _is_exact(fit: CriticalBatchFit) -> bool:
    return fit.is_exact


def _size_text(fit: CriticalBatchFit) -> str:
    if _is_exact(fit) and fit.b_crit is not None:
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


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(part) for part in value)
    return str(value)
