"""A model as it was: whatever a step does to it is undone, before the next step and at the end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from batchlab.engine.global_random import seed_torch


class Kept:
    """The parameters, buffers, gradients and modes of a model, and the random numbers of Python, NumPy and PyTorch."""

    def __init__(self, model: nn.Module) -> None:
        self._parameters = [(each, each.data, each.data.clone(), each.grad) for each in model.parameters()]
        self._buffers = [
            (module, name, buffer, None if buffer is None else buffer.clone())
            for module in model.modules()
            for name, buffer in module._buffers.items()
        ]
        self._modes = [(module, module.training) for module in model.modules()]
        self._random = random_state()

    @torch.no_grad()
    def begin(self, seed: int, *, is_double: bool) -> None:
        """Let the model be as it was, without gradients and in float64 where wanted; random numbers begin at a seed."""
        for parameter, data, copied, _ in self._parameters:
            parameter.grad = None
            parameter.data = _doubled(copied) if is_double else data.copy_(copied)
        for module, name, buffer, copied_buffer in self._buffers:
            if buffer is not None and copied_buffer is not None:
                module._buffers[name] = _doubled(copied_buffer) if is_double else buffer.copy_(copied_buffer)
            else:
                module._buffers[name] = None
        self._restore_modes()
        set_seed(seed)

    @torch.no_grad()
    def restore(self) -> None:
        """Let everything be as it was, gradients and random numbers included."""
        for parameter, data, copied, gradient in self._parameters:
            parameter.grad = None
            parameter.data = data.copy_(copied)
            parameter.grad = gradient
        for module, name, buffer, copied_buffer in self._buffers:
            module._buffers[name] = None if copied_buffer is None or buffer is None else buffer.copy_(copied_buffer)
        self._restore_modes()
        set_random_state(self._random)

    def _restore_modes(self) -> None:
        for module, is_training in self._modes:
            module.training = is_training


@contextmanager
def kept(model: nn.Module) -> Iterator[Kept]:
    """Give a model's keeper, and at the end the model back as it was."""
    keeper = Kept(model)
    try:
        yield keeper
    finally:
        keeper.restore()


def _doubled(values: Tensor) -> Tensor:
    """Return a copy, in double precision where it holds no whole numbers."""
    if values.is_complex():
        return values.to(torch.complex128, copy=True)
    return values.to(torch.float64, copy=True) if values.is_floating_point() else values.clone()


def set_seed(seed: int) -> None:
    """Let the generators of Python, NumPy and PyTorch begin at a seed."""
    random.seed(seed)
    np.random.seed(seed % (1 << 32))  # noqa: NPY002 - it is what training code draws from
    seed_torch(seed)


def random_state() -> tuple[Any, ...]:
    """Return where the generators stand."""
    on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return random.getstate(), np.random.get_state(), torch.get_rng_state(), on_gpus  # noqa: NPY002


def set_random_state(state: tuple[Any, ...]) -> None:
    """Let the generators go on from where they stood."""
    random.setstate(state[0])
    np.random.set_state(state[1])  # noqa: NPY002
    torch.set_rng_state(state[2])
    if state[3]:
        torch.cuda.set_rng_state_all(state[3])
