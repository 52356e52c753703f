"""How much work a network is."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from batchlab.engine.forward import Forward
from batchlab.engine.problem import Problem


@torch.no_grad()
def count_multiplications(problem: Problem, forward: Forward) -> int:
    """Return about how many multiplications a forward pass takes for one example of one trial: of matrix products."""
    num_trials = len(forward.parameters.values)
    batch = torch.zeros((num_trials, 1), dtype=torch.int64, device=problem.device)
    inputs = problem.view(problem.gather(problem.train.inputs, batch))
    with forward.untouched(), _Count() as count:
        forward.train(False)
        forward.logits(inputs)
    return max(1, count.operations // (2 * num_trials))


class _Count(TorchDispatchMode):
    """Counts additions and multiplications, by PyTorch's own formulas; its own counter takes seconds to start."""

    operations = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Say that it need not be hidden from PyTorch's compiler: to hide it, that would be imported."""
        return False

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        formula = flop_registry.get(function._overloadpacket)
        if formula is not None:
            self.operations += formula(*args, **(kwargs or {}), out_val=result)
        return result
