"""One case of torture: what is done, and what was wrong with the answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One thing that is done to batchlab. The same kind, seed and number is the same case, on any day."""

    kind: str
    number: int
    what: str
    """What is done, in a few words."""

    run: Callable[[Path], list[str]]
    """Does it in an empty folder and returns what was wrong, a sentence each; nothing where all is as promised."""


Cases = Iterator[Case]


def chance(kind: str, seed: int, number: int) -> random.Random:
    """Return the random numbers of one case: they depend on no other case."""
    return random.Random(f"{kind}/{seed}/{number}")
