"""Lists of a spec that name something twice. A lab that was filled before they were refused is still read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batchlab.core.space import SearchSpace, Values
from batchlab.core.sweep import Sweep
from batchlab.core.value import doubled
from batchlab.errors import SpecError, shown


def check_doubled(sweep: Sweep) -> None:
    """Raise SpecError for the first list of a spec in which something stands twice."""
    for place, items in _lists(sweep):
        for item in doubled(items)[:1]:
            raise SpecError(f"`{place}`: {shown(item)} is listed twice.")


def _lists(sweep: Sweep) -> Iterator[tuple[str, Sequence[object]]]:
    yield "sweep.goal", [str(goal) for goal in sweep.search.goal]
    yield "sweep.evaluate.splits", sweep.search.evaluate.splits
    yield from _values("search_space", sweep.search_space)
    for batch_size, changes in (sweep.at or {}).items():
        if changes.evaluate is not None:
            yield f"at.{batch_size}.evaluate.splits", changes.evaluate.splits
        yield from _values(f"at.{batch_size}.search_space", changes.search_space)


def _values(place: str, space: SearchSpace) -> Iterator[tuple[str, Sequence[object]]]:
    for name, dimension in space.root.items():
        if isinstance(dimension, Values):
            yield f"{place}.{shown(name)}.values", dimension.values
