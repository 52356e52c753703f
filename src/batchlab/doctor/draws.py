"""Counts how often something draws random numbers, whoever has seeded them."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class CountedDraws(TorchDispatchMode):
    """Counts within it the operations that PyTorch says depend on a seed."""

    number = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.number += torch.Tag.nondeterministic_seeded in function.tags
        return function(*args, **(kwargs or {}))
