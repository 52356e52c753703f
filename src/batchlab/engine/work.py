"""How much work a network is."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from batchlab.engine.forward import Forward
from batchlab.engine.noise import Noise
from batchlab.engine.trainable import Trainable

SAMPLE = 2
"""Examples that are counted: one alone a module may refuse to normalise."""


@torch.no_grad()
def count_multiplications(problem: Trainable, forward: Forward) -> int:
    """Return about how many multiplications a forward pass takes for one example of one trial: of matrix products."""
    num_trials, size = len(forward.parameters.values), min(SAMPLE, len(problem.train))
    examples = problem.train.first(size, num_trials, problem.device)
    with forward.untouched(), _Count() as count:
        forward.train(False)
        problem.outputs(forward, examples, Noise())
    return max(1, count.operations // (2 * num_trials * size))


def _count_attention(
    queries: Tensor, keys: Tensor, contents: Tensor, dropout: float = 0.0, is_causal: bool = False, **ignored: Any
) -> int:
    """Return the operations of attention on a processor, for which PyTorch has no formula: two products."""
    *heads, num_queries, width = queries.shape
    pairs = num_queries * (num_queries + 1) // 2 if is_causal else num_queries * keys.shape[-2]
    return 2 * math.prod(heads) * pairs * (width + contents.shape[-1])


_FORMULAS = {**flop_registry, torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _count_attention}


class _Count(TorchDispatchMode):
    """Counts additions and multiplications, by PyTorch's own formulas; its own counter takes seconds to start."""

    operations = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Say that it need not be hidden from PyTorch's compiler: to hide it, that would be imported."""
        return False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        formula = _FORMULAS.get(function._overloadpacket)
        if formula is not None:
            self.operations += formula(*args, **(kwargs or {}), out_val=result)
        return result
