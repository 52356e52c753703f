"""All kinds of torture by name, and how many of a run's cases each has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.torture import archives, damage, data_files, exchange, kills, readers, spec_fuzz
from tests.torture.case import Cases
from tests.torture.stock import Sample

Kind = Callable[[Sequence[Sample], int, range], Cases]
KINDS: dict[str, Kind] = {
    module.KIND: module.cases for module in (damage, exchange, kills, readers, archives, data_files, spec_fuzz)
}
SHARES = {"damage": 42, "exchange": 15, "kills": 10, "readers": 1, "archives": 14, "data files": 6, "specs": 12}
"""In hundredths: of 10,000 cases 1,000 are kills."""


def shared_out(num_cases: int, kinds: Sequence[str]) -> dict[str, int]:
    """Return how many cases each of some kinds gets.

    >>> shared_out(100, ["damage", "kills"])
    {'damage': 81, 'kills': 19}
    """
    total = sum(SHARES[kind] for kind in kinds)
    return {kind: max(1, round(num_cases * SHARES[kind] / total)) for kind in kinds}
