"""What training took, and what the race saved of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batchlab.analysis.text import count, in_times


def training_cost(protocol: Mapping[str, Any]) -> str | None:
    """Return what was trained and what the race saved, from `trained_steps` and `full_steps`; None without them."""
    trained, full = protocol.get("trained_steps"), protocol.get("full_steps")
    if trained is None:
        return None
    again = protocol.get("confirming_steps")
    confirming = f"; confirming the best points took {count(again)} more" if again else ""
    if protocol.get("protocol") != "race" or not full or full <= trained:
        return f"The search trained {count(trained)} steps{confirming}."
    every = f"every trial to its budget would be {count(full)}{in_times(full, trained)}"
    return f"The search trained {count(trained)} steps, where {every}{confirming}."


def race_saving(trained: int, full: int) -> str:
    """Return what the race trained against the full protocol, in words.

    >>> race_saving(1_000, 40_000)
    'The race trained 1,000 steps; every trial to its budget would be 40,000 (40 times).'
    >>> race_saving(40_000, 40_000)
    'The race trained 40,000 steps, no fewer than every trial to its budget would: 40,000.'
    >>> race_saving(872_730, 900_000)
    'The race trained 872,730 steps; every trial to its budget would be 900,000.'
    """
    if full <= trained:
        return f"The race trained {trained:,} steps, no fewer than every trial to its budget would: {full:,}."
    return f"The race trained {trained:,} steps; every trial to its budget would be {full:,}{in_times(full, trained)}."
