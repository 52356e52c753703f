"""What an optimizer is here: functions over matrices that hold one trial in each row.

`init(parameters)` returns the optimizer's state: tensors by name, one trial in each entry of their first axis.
`update(parameters, gradients, state, now)` makes one update of K trials in place; it may use `gradients` as scratch
space. `update_row` does the same for a single row, by one fused kernel, where PyTorch has one: large networks are
updated so, row by row, small ones all at once.

An optimizer is made for a `Layout`, so that it may treat parameters differently, and by the options of a spec.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor

State = dict[str, Tensor]


Value = TypeVar("Value", Tensor, float)


@dataclass(frozen=True)
class At(Generic[Value]):
    """One update: its number, from 1, and every metaparameter as it is scheduled."""

    step: int
    values: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.values[name]


Now = At[Tensor]
"""Of K trials: [K, 1] each."""

NowOfRow = At[float]
"""Of one."""


@dataclass(frozen=True)
class Optimizer:
    """Two functions, or three; see the module's text for their contract."""

    init: Callable[[Tensor], State]
    update: Callable[[Tensor, Tensor, State, Now], None]
    update_row: Callable[[Tensor, Tensor, State, NowOfRow], None] | None = None
    is_elementwise: bool = False
    """Whether each number of a row is updated by itself, so that `update_row` may be given any part of a row."""
