"""Numbers as words read them: thousands separated, three digits that mean something, open bounds as such."""

from __future__ import annotations

from collections.abc import Iterable


def count(value: int) -> str:
    """Return a whole number with its thousands separated.

    >>> count(1234567)
    '1,234,567'
    """
    return f"{value:,}"


def significant(value: float, digits: int = 3) -> str:
    """Return `value` rounded to a few significant digits.

    >>> significant(105.716), significant(12345.6), significant(0.02954)
    ('106', '12,300', '0.0295')
    """
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e15 else f"{rounded:g}"


def bounds(low: float | None, high: float | None) -> str:
    """Return an interval in words; a bound that is None is open.

    >>> bounds(95.2, 118.0), bounds(95.2, None), bounds(None, 118.0)
    ('95.2 to 118', '> 95.2', '< 118')
    """
    if low is None:
        return "not bounded" if high is None else f"< {significant(high)}"
    return f"> {significant(low)}" if high is None else f"{significant(low)} to {significant(high)}"


def estimate(value: float, low: float | None, high: float | None) -> str:
    """Return a value with its interval, or the bound alone where one side is open.

    >>> estimate(105.7, 95.2, 118.0), estimate(3790.0, 143.0, None)
    ('106 (95.2 to 118)', '> 143')
    """
    interval = bounds(low, high)
    return interval if low is None or high is None else f"{significant(value)} ({interval})"


LEAST_FACTOR = 1.1
"""Rounded, a smaller factor would be "1 times", and it is nothing to speak of."""


def in_times(more: float, less: float) -> str:
    """Return how many times one number is another, as it stands behind it; nothing for hardly more.

    >>> in_times(40_000, 1_000), in_times(2_500, 1_000), in_times(1_050, 1_000)
    (' (40 times)', ' (2.5 times)', '')
    """
    if more < LEAST_FACTOR * less:
        return ""
    return f" ({more / less:.2g} times)" if more < 10 * less else f" ({more / less:,.0f} times)"


def span(numbers: Iterable[int]) -> str:
    """Return whole numbers as the range they span.

    >>> span([32, 16]), span([6, 6])
    ('16 to 32', '6')
    """
    found = sorted(set(numbers))
    return count(found[0]) if len(found) == 1 else f"{count(found[0])} to {count(found[-1])}"


def complete_trials(numbers: Iterable[int]) -> str:
    """Return how many trials stand behind each of some numbers.

    >>> complete_trials([16, 32]), complete_trials([1])
    ('n = 16 to 32 complete trials', 'n = 1 complete trial')
    """
    spanned = span(numbers)
    return f"n = {spanned} complete {'trial' if spanned == '1' else 'trials'}"


def met_untrained(batch_sizes: Iterable[int], goal: object) -> str:
    """Return what is asked where a goal was met at step 0.

    >>> met_untrained([8, 64], "val/risk > 0.1")[:51]
    'At batch size 8 and 64 the goal was met at step 0, '
    """
    return (
        f"At batch size {listed(batch_sizes)} the goal was met at step 0, before any training: is {goal} in the units "
        "of the metric (3 % is 0.03), and is it the right way round?"
    )


def listed(batch_sizes: Iterable[int]) -> str:
    """Return batch sizes as a sentence lists them.

    >>> listed([1, 2, 1024])
    '1, 2 and 1,024'
    """
    *most, last = [count(batch_size) for batch_size in batch_sizes]
    return f"{', '.join(most)} and {last}" if most else last
