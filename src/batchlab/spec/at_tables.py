"""Tables `[at.BATCH_SIZE]` of a spec that is extended or changed: what is said later of all batch sizes wins."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from batchlab.errors import spelled

Table = dict[str, Any]


def narrowed(at: Any, later: Table) -> Any:
    """Return the tables `at` without what a later layer says of all batch sizes, and without those it leaves out.

    >>> narrowed({"8": {"max_steps": 90}, "64": {"max_steps": 20}}, {"sweep": {"batch_sizes": [64]}})
    {'64': {'max_steps': 20}}
    >>> narrowed({"8": {"max_steps": 90, "max_examples": 720}}, {"sweep": {"max_steps": 5}})
    {'8': {'max_examples': 720}}
    """
    if not isinstance(at, dict):
        return at
    sweep, space = (_table(later.get(key)) for key in ("sweep", "search_space"))
    sizes = sweep.get("batch_sizes")
    kept = {spelled(size) for size in sizes} if isinstance(sizes, list) else set(at)
    return {size: _changed(changes, sweep, space) for size, changes in at.items() if size in kept}


def _changed(changes: Any, sweep: Collection[str], space: Collection[str]) -> Any:
    if not isinstance(changes, dict):
        return changes
    left = {key: value for key, value in changes.items() if key not in sweep}
    if isinstance(left.get("search_space"), dict):
        left["search_space"] = {name: value for name, value in left["search_space"].items() if name not in space}
    return left


def _table(value: Any) -> Table:
    return value if isinstance(value, dict) else {}
