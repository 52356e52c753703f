"""Advice: what the data do not tell about the regimes, and what would tell it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from batchlab.analysis.answers.best_of import MIN_TRIALS
from batchlab.analysis.answers.steps_to_result import StepsToResult
from batchlab.analysis.curve.regime_end import MAX_OCTAVES, RegimeEnd
from batchlab.analysis.text import count, significant

_PERFECT, _MAXIMAL = "Where perfect scaling ends", "Where the maximal regime begins"
_MORE_TRIALS = "more trials at the smallest batch sizes"


def advise(rows: Sequence[StepsToResult], perfect: RegimeEnd, maximal: RegimeEnd, is_exact: bool = False) -> str | None:
    """Return what is not known of the two ends and what would tell; None where both are known.

    >>> from batchlab.analysis import example_workload, steps_to_result
    >>> from batchlab.core.goal import Goal
    >>> rows = [steps_to_result(study, Goal.read("val/classification_error < 0.1")) for study in example_workload()]
    >>> advise(rows, RegimeEnd(50, 40, 70), RegimeEnd(None, 700, None))
    'Three trials at a batch size are too few for a firm sentence: run 6 or more. Where the maximal regime begins was \
not seen: batch size 1,024 would tell.'
    """
    reached = [row for row in rows if row.steps]
    tried = _Tried([row.batch_size for row in reached], [row.batch_size for row in rows])
    if is_exact:
        found = [
            _unseen(_PERFECT, perfect, tried, is_below=perfect.low is None) if perfect.value is None else None,
            _unseen(_MAXIMAL, maximal, tried, is_below=maximal.high is not None) if maximal.value is None else None,
        ]
    else:
        found = [
            _too_few(reached),
            _unknown(_PERFECT, perfect, reached, tried),
            _unknown(_MAXIMAL, maximal, reached, tried),
        ]
    return " ".join(sentence for sentence in found if sentence) or None


@dataclass(frozen=True)
class _Tried:
    """The batch sizes that there are, and what another one could tell."""

    reached: Sequence[int]
    all: Sequence[int]

    def above(self, low: float | None) -> str:
        """Return a larger batch size, one that an end above `low` does not lie beyond."""
        return self._at(max(2 * self.reached[-1], 1 if low is None else 2 ** math.ceil(math.log2(low))))

    def below(self, high: float | None) -> str:
        """Return a smaller batch size, one at which an end below `high` does not lie behind."""
        size = math.inf if high is None else 2 ** math.floor(math.log2(high))
        smaller = min(self.reached[0] // 2, size)
        return self._at(int(smaller)) if smaller >= 1 else _MORE_TRIALS

    def near(self, batch_size: float) -> str:
        """Return the power of two next to a batch size, where nothing as close was tried."""
        power = 2 ** max(0, round(math.log2(batch_size)))
        is_tried = any(abs(math.log2(size / power)) < 0.5 for size in self.all)
        return "" if is_tried else f"batch size {count(power)}"

    def _at(self, batch_size: int) -> str:
        """Return a batch size to train at; longer, where it was tried and did not meet the goal."""
        return f"batch size {count(batch_size)}{', trained for longer,' if batch_size in self.all else ''}"


def _unseen(what: str, end: RegimeEnd, tried: _Tried, *, is_below: bool) -> str:
    if is_below and end.high is not None and end.high < 1:
        return f"{what} was not seen: it lies below batch size 1."
    if is_below and end.high is not None and tried.below(end.high) == _MORE_TRIALS:
        return f"{what} has an upper bound only, batch size {significant(end.high)}: {_MORE_TRIALS} might tell."
    return f"{what} was not seen: {tried.below(end.high) if is_below else tried.above(end.low)} would tell."


def _too_few(rows: Sequence[StepsToResult]) -> str | None:
    fewest = min(row.num_trials for row in rows)
    if fewest >= MIN_TRIALS:
        return None
    numbers = {1: "One trial", 2: "Two trials", 3: "Three trials", 4: "Four trials", 5: "Five trials"}
    verb = "is" if fewest == 1 else "are"
    return f"{numbers[fewest]} at a batch size {verb} too few for a firm sentence: run {MIN_TRIALS} or more."


def _unknown(what: str, end: RegimeEnd, rows: Sequence[StepsToResult], tried: _Tried) -> str | None:
    if end.low is None and end.high is None:
        return f"{what} is not known: {_ways(_more(rows, 4.0))} might tell."
    if end.high is None:
        return _seen_from_below(what, end, rows, tried)
    if end.low is None:
        return _unseen(what, end, tried, is_below=True)
    if end.is_firm:
        return None
    factor = significant(end.high / end.low, 2)
    ways = _ways(tried.near(math.sqrt(end.low * end.high)), _more(rows, end.octaves / MAX_OCTAVES))
    return f"{what} is known only to within a factor of {factor}: {ways} might tell."


def _seen_from_below(what: str, end: RegimeEnd, rows: Sequence[StepsToResult], tried: _Tried) -> str:
    if end.value is None or end.low is None:
        return _unseen(what, end, tried, is_below=False)
    ways = _ways(_more(rows, 4.0), f"a batch size larger than {count(rows[-1].batch_size)}")
    return f"{what} has a lower bound only, batch size {significant(end.low)}: {ways} might tell."


def _ways(*ways: str) -> str:
    """Return the ways out, as they stand before a verb; an empty one is none.

    >>> _ways("", "more trials"), _ways("batch size 8", "more trials")
    ('more trials', 'batch size 8, or more trials,')
    """
    text = ", or ".join(way for way in ways if way)
    return f"{text}," if ", " in text else text


def _more(rows: Sequence[StepsToResult], factor: float) -> str:
    """Return how many trials might do: at the best the luck of a minimum falls as one over their number.

    Confirmed medians scatter by their seeds as well. A closed form is only read late.
    """
    if all(row.protocol.is_closed_form for row in rows):
        return "an evaluation at every step"
    fewest = min(row.num_trials for row in rows)
    seeds = [row.confirmed.seeds for row in rows if row.confirmed and row.confirmed.steps]
    more = f", confirmed with more than {min(seeds)} seeds" if len(seeds) == len(rows) else ""
    return f"about {count(max(MIN_TRIALS, math.ceil(min(factor, 8.0) * fewest)))} trials at each batch size{more}"
