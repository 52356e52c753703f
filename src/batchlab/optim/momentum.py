"""Momentum, heavy ball and Nesterov, in the form of TensorFlow's MomentumOptimizer (and PyTorch's SGD).

The velocity accumulates gradients, not scaled steps: v <- gamma v + g. A change of the learning rate so
acts on the whole accumulated velocity at once. No dampening.
"""

from __future__ import annotations

import torch
from torch import Tensor

from batchlab.optim.base import Metaparameters, Optimizer, State


def init(parameters: Tensor) -> State:
    """Return a velocity of zero."""
    return {"velocity": torch.zeros_like(parameters)}


def update_heavy_ball(parameters: Tensor, gradients: Tensor, state: State, metaparameters: Metaparameters) -> None:
    """v <- gamma v + g; theta <- theta - eta v."""
    velocity = state["velocity"]
    torch.addcmul(gradients, velocity, metaparameters["momentum"], out=velocity)
    parameters.addcmul_(velocity, metaparameters["learning_rate"], value=-1)


def update_nesterov(parameters: Tensor, gradients: Tensor, state: State, metaparameters: Metaparameters) -> None:
    """v <- gamma v + g; theta <- theta - eta (g + gamma v)."""
    velocity = state["velocity"]
    torch.addcmul(gradients, velocity, metaparameters["momentum"], out=velocity)
    gradients.addcmul_(velocity, metaparameters["momentum"])
    parameters.addcmul_(gradients, metaparameters["learning_rate"], value=-1)


momentum = Optimizer(init, update_heavy_ball)
nesterov_momentum = Optimizer(init, update_nesterov)
