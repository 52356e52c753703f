"""Where scaling is perfect and from where a larger batch size saves little, in sentences and as facts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from batchlab.analysis import WorkloadSummary
from batchlab.analysis.answers.best_of import MIN_TRIALS
from batchlab.analysis.curve.regime_end import RegimeEnd
from batchlab.analysis.text import count, significant
from batchlab.report.words.fit import fewest_trials, is_doubted


def regime_sentences(summary: WorkloadSummary) -> list[str]:
    """Return where perfect scaling ends and where a larger batch size saves little; of thin data what would tell."""
    found = summary.regimes
    if found is None:
        return []
    sizes = [row.batch_size for row in summary.rows if row.steps]
    is_curve = found.source == "fit" and not (summary.fit and summary.fit.contradicted_by)
    maximal: Callable[[RegimeEnd, Sequence[int]], str] = partial(_maximal, is_curve=is_curve)
    ends = [(_perfect, found.perfect_up_to), (maximal, found.maximal_from)]
    if summary.is_exact:
        ends = [(tell, _exact(end)) for tell, end in ends]
    has_enough = fewest_trials(summary) >= MIN_TRIALS
    told = [tell(end, sizes) for tell, end in ends if not found.is_thin or (has_enough and end.is_firm)]
    if found.source == "fit" and is_doubted(summary):
        told = [f"By the fit, {sentence[0].lower()}{sentence[1:]}" for sentence in told]
    return [*told, *([found.advice] if found.advice else [])]


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
