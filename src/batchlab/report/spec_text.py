"""A resolved spec as the TOML file that would write it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any


def spec_text(spec: Mapping[str, Any]) -> str:
    """Return `spec` as TOML: values first, then one table for each mapping, with inline tables inside.

    >>> print(spec_text({"name": "digits", "sweep": {"trials": 32, "evaluate": {"growth": 1.03}}}))
    name = "digits"
    <BLANKLINE>
    [sweep]
    trials = 32
    evaluate = {growth = 1.03}
    """
    values = [f"{_key(name)} = {_value(value)}" for name, value in spec.items() if not isinstance(value, Mapping)]
    tables = [_table(name, value) for name, value in spec.items() if isinstance(value, Mapping)]
    return "\n\n".join(part for part in ["\n".join(values), *tables] if part)


def _table(name: str, table: Mapping[str, Any]) -> str:
    return "\n".join([f"[{_key(name)}]", *(f"{_key(key)} = {_value(value)}" for key, value in table.items())])


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(part) for part in value) + "]"
    # TOML writes strings, numbers and truth values as JSON does.
    return json.dumps(value, ensure_ascii=False)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
