"""All kinds of torture by name, and how many of a run's cases each has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.torture import damage, exchange, kills
from tests.torture.case import Cases
from tests.torture.stock import Sample

Kind = Callable[[Sequence[Sample], int, range], Cases]
KINDS: dict[str, Kind] = {damage.KIND: damage.cases, exchange.KIND: exchange.cases, kills.KIND: kills.cases}
SHARES = {"damage": 45, "exchange": 15, "kills": 10}


def shared_out(num_cases: int, kinds: Sequence[str]) -> dict[str, int]:
    """Return how many cases each of some kinds gets.

    >>> shared_out(60, ["damage", "exchange"])
    {'damage': 45, 'exchange': 15}
    """
    total = sum(SHARES[kind] for kind in kinds)
    return {kind: max(1, round(num_cases * SHARES[kind] / total)) for kind in kinds}
