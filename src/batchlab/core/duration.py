"""Durations as a person says them."""

from __future__ import annotations

import re

from batchlab.errors import InputError, shown

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 1e10
"""Seconds: three hundred years."""


def spell_seconds(seconds: float) -> str:
    """Return a duration in the unit that suits it.

    >>> spell_seconds(42.4), spell_seconds(600), spell_seconds(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def read_seconds(text: str, place: str) -> float:
    """Return the seconds that a number with its unit means; InputError, which begins with `place`, for anything else.

    >>> read_seconds("5m", "--deadline"), read_seconds("1.5h", "--deadline"), read_seconds("20 ms", "t0")
    (300.0, 5400.0, 0.02)
    """
    match = re.fullmatch(r"\s*([0-9]+(?:[.][0-9]*)?|[.][0-9]+)\s*([A-Za-z]*)\s*", text)
    unit = match[2].lower() if match else ""
    if match is None or unit not in _UNITS:
        known, bare = ", ".join(_UNITS), shown(text.strip())
        example = f"{bare}s or {bare}m" if match and not unit else "90s or 5m"
        raise InputError(f"{place} = {shown(text)}: give a number with its unit ({known}), such as {example}.")
    seconds = float(match[1]) * _UNITS[unit]
    if not 0 < seconds <= _LONGEST:
        raise InputError(f"{place} = {shown(text)}: give more than no time, and less than three hundred years.")
    return seconds
