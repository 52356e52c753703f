"""A batch of whatever form: tensors whose first dimension counts examples, in tuples, lists, dicts or dataclasses."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from batchlab.errors import InputError, shown

Padding = Mapping[Any, float]
"""Which parts of a batch may be longer or shorter along their second dimension, and what fills them there."""

_FORM = "give tensors whose first dimension counts the examples, or tuples, lists, dicts or dataclasses of such"


def num_examples(batch: Any) -> int:
    """Return how many examples a batch has; InputError where its parts do not agree.

    >>> num_examples({"inputs": torch.zeros(3, 2), "labels": torch.zeros(3), "name": "train"})
    3
    """
    lengths = sorted({length for each in _leaves(batch) if (length := _length(each)) is not None})
    if len(lengths) != 1:
        found = f"parts of {' and '.join(map(str, lengths))} examples" if lengths else "no tensor"
        raise InputError(f"The batch ({type(batch).__name__}) has {found}: {_FORM}.")
    return lengths[0]


def rows_of(batch: Any, rows: range) -> Any:
    """Return some consecutive examples of a batch, in its own form; a step may change them in place."""
    return _changed(batch, lambda each: each if _length(each) is None else _copied(each[rows.start : rows.stop]))


def _copied(part: Any) -> Any:
    return part.clone() if isinstance(part, Tensor) else copy.copy(part)


def joined(batches: Sequence[Any], padding: Padding | None = None) -> Any:
    """Return the examples of several batches as one; what differs in length is filled up where `padding` says how."""
    first = batches[0]
    if padding:
        longest = {key: max(_part(each, key).shape[1] for each in batches) for key in padding}
        batches = [_padded_to(each, padding, longest) for each in batches]
    parts = [list(_leaves(each)) for each in batches]
    if len({len(each) for each in parts}) != 1:
        raise InputError(
            "Microbatches differ in form, and cannot be joined to a whole batch: give each the same parts."
        )
    whole = iter([_concatenated(column) for column in zip(*parts, strict=True)])
    return _changed(first, lambda each: next(whole))


def lengthened(batch: Any, padding: Padding, columns: int) -> Any:
    """Return a batch with so many more columns of padding."""
    return _padded_to(batch, padding, {key: _part(batch, key).shape[1] + columns for key in padding})


def shortened(batch: Any, padding: Padding) -> Any:
    """Return a batch without the last columns that are padding in every row of every padded part."""
    needed = 1
    for key, fill in padding.items():
        part = _part(batch, key)
        filled = (part != fill).flatten(2).any(2) if part.ndim > 2 else part != fill
        used = filled.any(0).nonzero()
        needed = max(needed, int(used.max()) + 1 if len(used) else 1)
    return _with_parts(batch, {key: _part(batch, key)[:, :needed] for key in padding})


def in_double_precision(batch: Any) -> Any:
    """Return a batch whose floating-point tensors are float64."""
    return _changed(
        batch, lambda each: each.double() if isinstance(each, Tensor) and each.is_floating_point() else each
    )


def check_padding(batch: Any, padding: Padding) -> None:
    """Raise InputError where `padding` names what the batch has not, or what has no second dimension."""
    if not isinstance(padding, Mapping):
        raise InputError(f'padding = {shown(padding)}: give a dict such as {{"input_ids": 0, "labels": -100}}.')
    for key in padding:
        part = _part(batch, key)
        if not isinstance(part, Tensor) or part.ndim < 2:
            raise InputError(f"padding[{shown(key)}] is no tensor with a second dimension that can be filled up.")


def _part(batch: Any, key: Any) -> Any:
    try:
        return batch[key]
    except (KeyError, IndexError, TypeError):
        raise InputError(f"padding[{shown(key)}]: the batch ({type(batch).__name__}) has no such part.") from None


def _padded_to(batch: Any, padding: Padding, lengths: Mapping[Any, int]) -> Any:
    parts = {}
    for key, fill in padding.items():
        part = _part(batch, key)
        shape = (part.shape[0], lengths[key] - part.shape[1], *part.shape[2:])
        parts[key] = torch.cat([part, torch.full(shape, fill, dtype=part.dtype, device=part.device)], 1)
    return _with_parts(batch, parts)


def _with_parts(batch: Any, parts: Mapping[Any, Tensor]) -> Any:
    if isinstance(batch, tuple | list):
        changed = [parts.get(index, each) for index, each in enumerate(batch)]
        return type(batch)(*changed) if hasattr(batch, "_fields") else type(batch)(changed)
    new = copy.copy(batch)
    for key, part in parts.items():
        new[key] = part
    return new


def _length(leaf: Any) -> int | None:
    """Return how many examples a part has; None where it has none: a number, a name, a flag."""
    if isinstance(leaf, Tensor | np.ndarray):
        return len(leaf) if leaf.ndim else None
    return len(leaf) if isinstance(leaf, list) else None


def _concatenated(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if _length(first) is None:
        return first
    if isinstance(first, list):
        return [each for part in parts for each in part]
    try:
        return torch.cat(list(parts)) if isinstance(first, Tensor) else np.concatenate(parts)
    except (RuntimeError, ValueError):
        shapes = sorted({str(tuple(each.shape)) for each in parts})
        raise InputError(
            f"Microbatches of shapes {' and '.join(shapes[:2])} do not make one batch: say by `padding` what fills "
            'them up, such as {"input_ids": 0, "labels": -100}.'
        ) from None


def _leaves(batch: Any) -> Iterator[Any]:
    """Yield tensors, arrays and whatever else is no container, in order; a list without tensors is one of them."""
    if _is_structure(batch):
        for part in _parts(batch):
            yield from _leaves(part)
    else:
        yield batch


def _is_structure(batch: Any) -> bool:
    if isinstance(batch, list):
        return any(isinstance(each, Tensor | np.ndarray | Mapping | tuple) for each in batch)
    return isinstance(batch, tuple | Mapping) or (dataclasses.is_dataclass(batch) and not isinstance(batch, type))


def _parts(batch: Any) -> list[Any]:
    if isinstance(batch, Mapping):
        return list(batch.values())
    if isinstance(batch, tuple | list):
        return list(batch)
    return [getattr(batch, field.name) for field in dataclasses.fields(batch)]


def _changed(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Return a batch of the same form with each part changed, in the order of `_leaves`."""
    if not _is_structure(batch):
        return change(batch)
    parts = [_changed(each, change) for each in _parts(batch)]
    if isinstance(batch, MutableMapping):  # one of another kind than dict, such as Hugging Face's, stays what it is
        new = copy.copy(batch)
        new.update(zip(batch, parts, strict=True))
        return new
    if isinstance(batch, Mapping):
        return dict(zip(batch, parts, strict=True))
    if isinstance(batch, tuple | list):
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    names = [field.name for field in dataclasses.fields(batch)]
    return dataclasses.replace(batch, **dict(zip(names, parts, strict=True)))
