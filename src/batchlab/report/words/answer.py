"""The answer to the question of the lab for one workload, in one paragraph."""

from __future__ import annotations

from collections.abc import Sequence

from batchlab.analysis import StepsToResult, WorkloadSummary
from batchlab.analysis.answers.best_of import MIN_TRIALS
from batchlab.analysis.text import complete_trials, count, span
from batchlab.report.tables import best_interval, format_steps
from batchlab.report.words.fit import critical_sentence, fewest_trials
from batchlab.report.words.protocol import confirmed_seeds
from batchlab.report.words.regimes import regime_sentences


def answer_text(summary: WorkloadSummary) -> str:
    """Return the answer to the question of the lab for one workload, in one paragraph with numbers."""
    best = summary.best
    if best is None:
        return f"No trial met {summary.goal} at any batch size {_end_of_training(summary.rows)} ({_sample(summary)})."
    if best.estimate(summary.headline).value == 0:
        return f"{summary.goal} is met at step 0, before any training: that tells nothing about batch sizes."
    sentences = [_fewest(summary, best)]
    if sum(row.is_reached for row in summary.rows) == 1:
        return f"{sentences[0]} One batch size tells nothing about scaling."
    return " ".join([*sentences, critical_sentence(summary), *regime_sentences(summary)])


def _fewest(summary: WorkloadSummary, best: StepsToResult) -> str:
    value = best.estimate(summary.headline).value
    assert value is not None
    interval = best_interval(summary, best)
    shown = f"{format_steps(value)} (95 % interval {interval})" if interval else format_steps(value)
    return f"The fewest steps to {summary.goal} are {shown} at batch size {count(best.batch_size)}: {_what(summary)}."


def _what(summary: WorkloadSummary) -> str:
    """Return what the headline's number is the number of."""
    if summary.headline == "confirmed":
        return (
            f"the median over {confirmed_seeds(summary)} fresh seeds of the best configuration, from {_sample(summary)}"
        )
    if summary.headline == "best_of":
        numbers = [row.best_of.m for row in summary.rows if row.best_of]
        trials = "one trial" if max(numbers) == 1 else f"the best of {span(numbers)} trials"
        return f"the median steps of {trials}, from {_sample(summary)}"
    return f"the minimum of {_sample(summary)}, {_no_interval(summary)}"


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
    if fewest_trials(summary) < MIN_TRIALS:
        return f"too few for an interval ({MIN_TRIALS} give one)"
    return "of which too few met the goal for an interval"


def _most_late(summary: WorkloadSummary) -> str:
    estimates = [row.estimate("minimum") for row in summary.rows if row.steps]
    return format_steps(max(each.value - each.earliest_step for each in estimates if each.value is not None))


def _sample(summary: WorkloadSummary) -> str:
    numbers = [row.num_trials for row in summary.rows]
    places = "one batch size" if len(numbers) == 1 else f"each of {len(numbers)} batch sizes"
    return f"{complete_trials(numbers)} at {places}"


def _end_of_training(rows: Sequence[StepsToResult]) -> str:
    found = []
    for ended_by, words in (("race", "before the race ended at step"), ("budget", "within the budget of")):
        steps = [row.end_step for row in rows if row.ended_by == ended_by]
        if steps:
            found.append(f"{words} {span(steps)}{' steps' if ended_by == 'budget' else ''}")
    if any(row.ended_by == "divergence" for row in rows):
        found.append("before all diverged")
    return " or ".join(found)
