"""Adam and AdamW, in PyTorch's form.

m <- beta_1 m + (1 - beta_1) g and v <- beta_2 v + (1 - beta_2) g^2; theta moves by eta m' / (sqrt(v') + epsilon), where
m' = m / (1 - beta_1^t) and v' = v / (1 - beta_2^t) undo the start at zero in update t. Adam adds weight decay to the
gradient, AdamW takes it off the parameters: theta <- (1 - eta lambda) theta.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from batchlab.optim.base import Now, NowOfRow, Optimizer, State
from batchlab.optim.layout import Layout


def adam(layout: Layout) -> Optimizer:
    """Return Adam, with weight decay in the gradient."""
    return Optimizer(init, update_adam, partial(update_row, fused=torch._fused_adam_), is_elementwise=True)


def adamw(layout: Layout) -> Optimizer:
    """Return AdamW, with weight decay apart from the gradient."""
    return Optimizer(init, update_adamw, partial(update_row, fused=torch._fused_adamw_), is_elementwise=True)


def init(parameters: Tensor) -> State:
    """Return first and second moments of zero."""
    return {"mean": torch.zeros_like(parameters), "square": torch.zeros_like(parameters)}


def update_adam(parameters: Tensor, gradients: Tensor, state: State, now: Now) -> None:
    """Add the decay to the gradient, then step."""
    gradients.addcmul_(parameters, now["weight_decay"])
    _step(parameters, gradients, state, now)


def update_adamw(parameters: Tensor, gradients: Tensor, state: State, now: Now) -> None:
    """Take the decay off the parameters, then step."""
    parameters.mul_(1 - now["learning_rate"] * now["weight_decay"])
    _step(parameters, gradients, state, now)


def _step(parameters: Tensor, gradients: Tensor, state: State, now: Now) -> None:
    mean, square, beta_1, beta_2 = state["mean"], state["square"], now["beta_1"], now["beta_2"]
    mean.lerp_(gradients, 1 - beta_1)
    square.mul_(beta_2).addcmul_(gradients.mul_(gradients), 1 - beta_2)
    deviation = torch.sqrt(square, out=gradients).div_((1 - beta_2**now.step).sqrt()).add_(now["epsilon"])
    parameters.addcdiv_(mean * (now["learning_rate"] / (1 - beta_1**now.step)), deviation, value=-1)


def update_row(parameters: Tensor, gradients: Tensor, state: State, now: NowOfRow, fused: Callable[..., None]) -> None:
    """Do the same to one row, in one pass over its memory."""
    fused(
        [parameters],
        [gradients],
        [state["mean"]],
        [state["square"]],
        [],
        [torch.tensor(float(now.step), device=parameters.device)],
        lr=now["learning_rate"],
        beta1=now["beta_1"],
        beta2=now["beta_2"],
        weight_decay=now["weight_decay"],
        eps=now["epsilon"],
        amsgrad=False,
        maximize=False,
    )
