"""Momentum, heavy ball and Nesterov, in the form of TensorFlow's MomentumOptimizer (and PyTorch's SGD).

The velocity accumulates gradients, not scaled steps: v <- gamma v + g. A change of the learning rate so
acts on the whole accumulated velocity at once. No dampening.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from batchlab.optim.base import Now, NowOfRow, Optimizer, State
from batchlab.optim.layout import Layout


def momentum(layout: Layout) -> Optimizer:
    """Return the heavy ball."""
    return Optimizer(init, update_heavy_ball, partial(update_row, is_nesterov=False), is_elementwise=True)


def nesterov_momentum(layout: Layout) -> Optimizer:
    """Return Nesterov's momentum."""
    return Optimizer(init, update_nesterov, partial(update_row, is_nesterov=True), is_elementwise=True)


def init(parameters: Tensor) -> State:
    """Return a velocity of zero."""
    return {"velocity": torch.zeros_like(parameters)}


def update_heavy_ball(parameters: Tensor, gradients: Tensor, state: State, now: Now) -> None:
    """v <- gamma v + g; theta <- theta - eta v."""
    velocity = state["velocity"]
    torch.addcmul(gradients, velocity, now["momentum"], out=velocity)
    parameters.addcmul_(velocity, now["learning_rate"], value=-1)


def update_nesterov(parameters: Tensor, gradients: Tensor, state: State, now: Now) -> None:
    """v <- gamma v + g; theta <- theta - eta (g + gamma v)."""
    velocity = state["velocity"]
    torch.addcmul(gradients, velocity, now["momentum"], out=velocity)
    gradients.addcmul_(velocity, now["momentum"])
    parameters.addcmul_(gradients, now["learning_rate"], value=-1)


def update_row(parameters: Tensor, gradients: Tensor, state: State, now: NowOfRow, is_nesterov: bool) -> None:
    """Do the same to one row, in one pass over its memory; the kernel keeps no velocity where it is forgotten."""
    if now["momentum"] == 0:
        state["velocity"].copy_(gradients)
        parameters.add_(gradients, alpha=-now["learning_rate"])
        return
    torch._fused_sgd_(
        [parameters],
        [gradients],
        [state["velocity"]],
        weight_decay=0.0,
        momentum=now["momentum"],
        lr=now["learning_rate"],
        dampening=0.0,
        nesterov=is_nesterov,
        maximize=False,
        is_first_step=False,
    )
