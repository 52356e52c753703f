"""A number with its interval, in words."""

from __future__ import annotations

from batchlab.analysis import Expected, Interval
from batchlab.analysis.text import significant

_UNITS = ((86_400.0, "days", 2.0), (3600.0, "h", 2.0), (60.0, "min", 2.0), (1.0, "s", 1.0), (1e-3, "ms", 1.0))
"""Seconds of a unit, its name, and from how many of it on it is used."""


def spell_time(number: Expected) -> str:
    """Return a duration with its interval, both in one unit.

    >>> spell_time(Expected(55.54)), spell_time(Expected(600, Interval(540, None)))
    ('55.5 s', '10 min (95 % interval > 9)')
    """
    size, unit = time_unit(number.value)
    value = f"{significant(number.value / size)} {unit}"
    if number.interval is None:
        return value
    interval = interval_text(number.interval, size)
    return f"{value} (95 % interval {interval})" if interval else f"{value} (no 95 % interval)"


def interval_text(interval: Interval | None, unit: float = 1.0) -> str:
    """Return an interval in some unit; nothing where there is none, or where it has no bound.

    >>> interval_text(Interval(48.2, 63.0)), interval_text(Interval(48.2, None)), interval_text(None)
    ('48.2 to 63', '> 48.2', '')
    """
    if interval is None or (interval.low is None and interval.high is None):
        return ""
    if interval.low is None or interval.high is None:
        bound, sign = (interval.low, ">") if interval.low is not None else (interval.high, "<")
        return f"{sign} {significant((bound or 0.0) / unit)}"
    return f"{significant(interval.low / unit)} to {significant(interval.high / unit)}"


def with_interval(value: float, interval: Interval | None, unit: float, name: str) -> str:
    """Return a value with its interval, both in a unit of some name.

    >>> with_interval(0.012, Interval(0.01, 0.02), 1e-3, "ms")
    '12 (10 to 20) ms'
    """
    number, text = significant(value / unit), interval_text(interval, unit)
    found = f"{number} ({text})" if text else number
    return f"{found} {name}".strip()


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the seconds of the unit that suits a duration, and its name.

    >>> time_unit(9000.0)
    (3600.0, 'h')
    """
    return next(((size, name) for size, name, least in _UNITS if seconds >= least * size), _UNITS[-1][:2])
