"""Advice: what the data do not tell about the regimes, and what would tell it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from batchlab.analysis.best_of import MIN_TRIALS
from batchlab.analysis.regime_end import RegimeEnd
from batchlab.analysis.steps_to_result import StepsToResult
from batchlab.analysis.text import count, significant

MAX_OCTAVES = 2.0
"""A range over more doublings than these allows no firm sentence."""


def advise(
    rows: Sequence[StepsToResult], perfect: RegimeEnd, maximal: RegimeEnd, is_closed_form: bool = False
) -> str | None:
    """Return what is not known of the two ends and what would tell; None where both are known.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> rows = [steps_to_result(study, Goal.read("val/classification_error < 0.1")) for study in example_workload()]
    >>> advise(rows, RegimeEnd(50, 40, 70), RegimeEnd(None, 700, None))
    'Three trials at a batch size are too few for a firm sentence: run 6 or more. Where the maximal regime begins was \
not seen: batch size 512 would tell.'
    """
    reached = [row for row in rows if row.steps]
    found = []
    if not is_closed_form:
        found.append(_too_few(reached))
    found.append(_unknown("Where perfect scaling ends", perfect, reached, is_closed_form))
    found.append(_unknown("Where the maximal regime begins", maximal, reached, is_closed_form))
    return " ".join(sentence for sentence in found if sentence) or None


def _too_few(rows: Sequence[StepsToResult]) -> str | None:
    fewest = min(row.num_trials for row in rows)
    if fewest >= MIN_TRIALS:
        return None
    numbers = {1: "One trial", 2: "Two trials", 3: "Three trials", 4: "Four trials", 5: "Five trials"}
    verb = "is" if fewest == 1 else "are"
    return f"{numbers[fewest]} at a batch size {verb} too few for a firm sentence: run {MIN_TRIALS} or more."


def _unknown(what: str, end: RegimeEnd, rows: Sequence[StepsToResult], is_closed_form: bool) -> str | None:
    sizes = [row.batch_size for row in rows]
    if is_closed_form:
        return None if end.value is not None else f"{what} was not seen: batch size {count(2 * sizes[-1])} would tell."
    if end.low is None and end.high is None:
        return f"{what} is not known: {_more(rows, 4.0)} would tell."
    if end.high is None:
        return _seen_from_below(what, end, rows)
    if end.low is None:
        return f"{what} was not seen: {_below(sizes)} would tell."
    if end.octaves <= MAX_OCTAVES:
        return None
    factor = significant(end.high / end.low, 2)
    middle = _untried(math.sqrt(end.low * end.high), sizes)
    way_out = f"{middle}{_more(rows, end.octaves / MAX_OCTAVES)}{',' if middle else ''}"
    return f"{what} is known to a factor of {factor} only: {way_out} would tell."


def _seen_from_below(what: str, end: RegimeEnd, rows: Sequence[StepsToResult]) -> str:
    largest = rows[-1].batch_size
    if end.value is None or end.low is None:
        return f"{what} was not seen: batch size {count(2 * largest)} would tell."
    ways = f"{_more(rows, 4.0)}, or a batch size larger than {count(largest)},"
    return f"{what} has a lower bound only, batch size {significant(end.low, 2)}: {ways} would tell."


def _below(sizes: Sequence[int]) -> str:
    return f"batch size {count(sizes[0] // 2)}" if sizes[0] > 1 else "more trials at the smallest batch sizes"


def _more(rows: Sequence[StepsToResult], factor: float) -> str:
    """Return how many trials might do: at the best the luck of a minimum falls as one over their number."""
    fewest = min(row.num_trials for row in rows)
    return f"about {count(max(MIN_TRIALS, math.ceil(min(factor, 8.0) * fewest)))} trials at each batch size"


def _untried(batch_size: float, sizes: Sequence[int]) -> str:
    """Return the power of two next to a batch size, where nothing as close was tried."""
    near = 2 ** max(0, round(math.log2(batch_size)))
    is_tried = any(abs(math.log2(size / near)) < 0.5 for size in sizes)
    return "" if is_tried else f"batch size {count(near)}, or "
