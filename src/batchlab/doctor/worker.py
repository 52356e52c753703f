"""Workers that are simulated one after another, and what they tell each other.

A sum over workers needs the numbers of all of them, which run one by one. So a worker that asks for one is stopped;
when all have asked, they run again from the same start, and the sum is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from batchlab.doctor.gradient import Gradient, mean
from batchlab.errors import InputError

Number = TypeVar("Number", Tensor, float, int)


class Waiting(BaseException):
    """Ends a run of a worker until the others have told their numbers; no `except Exception` of a step may hold it."""

    def __init__(self, value: Tensor) -> None:
        self.value = value


class Worker:
    """One of several workers that share a batch, as a step sees itself."""

    def __init__(self, rank: int = 0, num_workers: int = 1, known: Sequence[Tensor] = ()) -> None:
        self.rank, self.num_workers = rank, num_workers
        self._known, self._asked = known, 0

    def sum(self, value: Number) -> Number:
        """Return the sum of a number or tensor over all workers, as `torch.distributed.all_reduce` has it.

        Autograd does not notice that one either: the gradient of the sum is that of the worker's own value.
        """
        if not isinstance(value, Tensor):
            return self._exchanged(torch.as_tensor(value)).item()  # type: ignore[return-value]
        total = self._exchanged(value.detach())
        return value + (total - value.detach()) if value.requires_grad else total

    def average_gradients(self, model: nn.Module) -> None:
        """Let the gradients be the mean over all workers, as DistributedDataParallel leaves them.

        Where a step does not call it, that is done after it. Call it before whatever needs the mean, such as clipping.
        """
        kinds: dict[tuple[torch.dtype, torch.device], list[nn.Parameter]] = {}
        for parameter in model.parameters():
            if parameter.requires_grad:
                kinds.setdefault((parameter.dtype, parameter.device), []).append(parameter)
        for parameters in kinds.values():  # one exchange for each, since all runs begin anew after one
            mean = self._exchanged(torch.cat([_flat_gradient(each) for each in parameters])) / self.num_workers
            for parameter, part in zip(parameters, mean.split([each.numel() for each in parameters]), strict=True):
                parameter.grad = part.view_as(parameter)

    def _exchanged(self, value: Tensor) -> Tensor:
        if self.num_workers == 1:
            return value.clone()
        if self._asked == len(self._known):
            raise Waiting(value.clone())
        self._asked += 1
        return self._known[self._asked - 1].clone()


def _flat_gradient(parameter: nn.Parameter) -> Tensor:
    gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    return gradient.detach().to_dense().flatten()


def run_workers(run: Callable[[Worker], Gradient], num_workers: int) -> Gradient:
    """Return the mean of the workers' gradients; `run` is called once and more for each."""
    known: list[Tensor] = []
    while True:
        found, asked = list[Gradient](), list[Tensor]()
        for rank in range(num_workers):
            try:
                found.append(run(Worker(rank, num_workers, known)))
            except Waiting as waiting:
                asked.append(waiting.value)
        if not asked:
            return mean(found)
        if found or len({each.shape for each in asked}) > 1:
            raise InputError(
                f"Of {num_workers} workers some exchange more, or other, numbers than the rest: let each call "
                "worker.sum and worker.average_gradients equally often, also where its share is smaller."
            )
        known.append(torch.stack(asked).sum(0))
