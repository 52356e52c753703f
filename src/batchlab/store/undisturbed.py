"""Reading without a lock: what was read is used only if nobody has changed it meanwhile, else it is read again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Seen = TypeVar("_Seen")


def undisturbed(look: Callable[[], _Seen], standing: Callable[[], object]) -> _Seen:
    """Return what `look` sees, or raise what it raises, once `standing` is the same before and after.

    >>> versions, seen = iter([1, 2, 2, 2]), iter(["half of each", "the second"])
    >>> undisturbed(lambda: next(seen), lambda: next(versions))
    'the second'
    """
    while True:
        before = standing()
        try:
            seen = look()
        except Exception:
            if standing() == before:
                raise
        else:
            if standing() == before:
                return seen
