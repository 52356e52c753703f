"""Durations as a person says them."""

from __future__ import annotations


def spell_seconds(seconds: float) -> str:
    """Return a duration in the unit that suits it.

    >>> spell_seconds(42.4), spell_seconds(600), spell_seconds(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
