"""References to the catalogue: `paper:NAME` and `small:NAME`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batchlab.catalogue.paper import paper_names, paper_spec
from batchlab.catalogue.small import small_names, small_spec
from batchlab.errors import SpecError, unknown_name

_SPECS: dict[str, Callable[[str], dict[str, Any]]] = {"paper": paper_spec, "small": small_spec}


def references(source: str) -> list[str]:
    """Return every reference of one source, `paper` or `small`.

    >>> references("small")[0]
    'small:cifar_10/resnet_8/nesterov_momentum'
    """
    names = {"paper": paper_names, "small": small_names}[source]()
    return [f"{source}:{name}" for name in names]


def is_reference(text: str) -> bool:
    """Return whether `text` points to the catalogue, be it to a known name or not."""
    return text.partition(":")[0] in _SPECS and ":" in text


def resolve(reference: str) -> dict[str, Any]:
    """Return the spec that a reference stands for, as its TOML would read; yours to change."""
    source, _, name = reference.partition(":")
    if source not in _SPECS:
        raise SpecError(unknown_name("source of workloads", source, _SPECS))
    return _SPECS[source](name)
