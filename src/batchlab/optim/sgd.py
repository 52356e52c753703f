"""Plain stochastic gradient descent: theta <- theta - eta g."""

from __future__ import annotations

from torch import Tensor

from batchlab.optim.base import Metaparameters, Optimizer, State


def init(parameters: Tensor) -> State:
    """Return no state: SGD remembers nothing."""
    return {}


def update(parameters: Tensor, gradients: Tensor, state: State, metaparameters: Metaparameters) -> None:
    """Make one step down the gradient."""
    parameters.addcmul_(gradients, metaparameters["learning_rate"], value=-1)


sgd = Optimizer(init, update)
