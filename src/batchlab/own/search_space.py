"""How a search space is written in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from batchlab.errors import SpecError, shown


def dimension_of(name: str, written: Any) -> Any:
    """Return a dimension of the search space as a spec has it.

    >>> dimension_of("learning_rate", (1e-4, 0.1, "log"))
    {'min': 0.0001, 'max': 0.1, 'scale': 'log'}
    >>> dimension_of("weight_decay", [0, 0.01])
    {'values': [0, 0.01]}
    """
    if isinstance(written, tuple) and len(written) in (2, 3):
        return dict(zip(("min", "max", "scale"), written, strict=False))
    if isinstance(written, Mapping):
        return dict(written)
    if isinstance(written, Sequence) and not isinstance(written, str | tuple):
        return {"values": list(written)}
    raise SpecError(
        f"search_space.{shown(name)} = {shown(written)}: give (min, max), (min, max, scale) or a list of values."
    )
