"""Terms with their values, of any nested data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def facts_of(values: Mapping[str, Any], place: str = "") -> list[tuple[str, str]]:
    """Return a nested mapping as terms with their values, `versions.torch` for what lies deeper.

    >>> facts_of({"host": "lab", "versions": {"torch": "2.13.0"}})
    [('host', 'lab'), ('versions.torch', '2.13.0')]
    """
    found = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            found += facts_of(value, f"{place}{name}.")
        else:
            found.append((f"{place}{name}", _value(value)))
    return found


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(part) for part in value)
    return str(value)
