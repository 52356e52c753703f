"""Plain stochastic gradient descent: theta <- theta - eta g."""

from __future__ import annotations

from torch import Tensor

from batchlab.optim.base import Now, Optimizer, State
from batchlab.optim.layout import Layout


def sgd(layout: Layout) -> Optimizer:
    """Return plain SGD, which remembers nothing."""
    return Optimizer(lambda parameters: {}, update)


def update(parameters: Tensor, gradients: Tensor, state: State, now: Now) -> None:
    """Make one step down the gradient."""
    parameters.addcmul_(gradients, now["learning_rate"], value=-1)
