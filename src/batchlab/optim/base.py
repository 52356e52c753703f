"""What an optimizer is here: a pair of functions over matrices that hold one trial in each row.

`init(parameters)` returns the optimizer's state, matrices of the same shape by name. `update(parameters,
gradients, state, metaparameters)` makes one update in place; it may use `gradients` as scratch space.
`metaparameters` holds `[K, 1]` columns, one value for each trial, the learning rate already scheduled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

State = dict[str, Tensor]
Metaparameters = Mapping[str, Tensor]


@dataclass(frozen=True)
class Optimizer:
    """A named pair of functions; see the module's text for their contract."""

    init: Callable[[Tensor], State]
    update: Callable[[Tensor, Tensor, State, Metaparameters], None]
