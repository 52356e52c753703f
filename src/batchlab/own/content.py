"""What a batch of the user's own may be: tensors, whatever can be moved as they can, and tuples and dicts of such."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from copy import copy
from math import inf
from typing import Any

import torch
from torch import Tensor


def moved(content: Any, device: torch.device) -> Any:
    """Return a batch on a device: whatever has a method `to`, at any depth of tuples, lists and dicts."""
    if hasattr(content, "to") and not isinstance(content, Mapping):  # of which some move themselves in place
        return content.to(device)
    return _mapped(content, lambda each: moved(each, device))


def each_tensor(content: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a batch with its tensors changed, at any depth of tuples, lists and dicts.

    >>> each_tensor(("a", {"b": torch.ones(1)}), lambda tensor: -tensor)
    ('a', {'b': tensor([-1.])})
    """
    return change(content) if isinstance(content, Tensor) else _mapped(content, lambda each: each_tensor(each, change))


def copied(content: Any) -> Any:
    """Return a batch with tensors of its own, in memory of this process: whoever changes them changes no other."""
    return content.clone() if isinstance(content, Tensor) else _mapped(content, copied)


def num_bytes(content: Any) -> float:
    """Return what a batch takes in memory; infinity where it holds something unknown.

    >>> num_bytes({"inputs": torch.zeros(3), "names": ["a", "b"]}), num_bytes(object())
    (12, inf)
    """
    if isinstance(content, Tensor):
        return content.nbytes
    if isinstance(content, Mapping):
        return sum(num_bytes(each) for each in content.values())
    if isinstance(content, list | tuple):
        return sum(num_bytes(each) for each in content)
    return 0 if content is None or isinstance(content, str | bytes | int | float) else inf


def _mapped(content: Any, change: Callable[[Any], Any]) -> Any:
    """Return a tuple, list or mapping with its parts changed; anything else as it is."""
    if isinstance(content, tuple) and hasattr(content, "_fields"):
        return type(content)(*map(change, content))
    if type(content) in (list, tuple):
        parts: Iterable[Any] = map(change, content)
        return type(content)(parts)
    if type(content) is dict:
        return {name: change(each) for name, each in content.items()}
    if isinstance(content, MutableMapping):
        changed = copy(content)
        for name, each in content.items():
            changed[name] = change(each)
        return changed
    return content
