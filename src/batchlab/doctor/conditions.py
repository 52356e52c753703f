"""Experiments: a step is run with something in the model switched off, and nothing else changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from enum import StrEnum

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

SMALL = 2.0**-20
"""How much smaller gradients are made, so that no bound on them is reached; a power of two changes no digit."""


class Condition(StrEnum):
    """What is switched off."""

    BATCH_NORM = "batch normalisation"
    DROPOUT = "dropout"
    CLIPPING = "clipping"


@contextmanager
def switched_off(model: nn.Module, conditions: frozenset[Condition], small: float = SMALL) -> Iterator[None]:
    """Run what is within without batch statistics, dropout or bounds on the gradient."""
    with ExitStack() as stack:
        for condition in sorted(conditions):
            stack.enter_context(_HOW[condition](model, small))
        yield


def scale_of(conditions: frozenset[Condition], small: float = SMALL) -> float:
    """Return how much smaller a gradient is under some conditions."""
    return small if Condition.CLIPPING in conditions else 1.0


@contextmanager
def _running_statistics(model: nn.Module, small: float) -> Iterator[None]:
    """Let batch normalisation use its running statistics; where it keeps none, mean 0 and variance 1."""
    norms = [each for each in model.modules() if isinstance(each, _BatchNorm)]
    lent = [each for each in norms if each.running_mean is None]
    for norm in lent:
        like = next(norm.parameters(), next(model.parameters()))
        norm.running_mean = torch.zeros(norm.num_features, dtype=like.dtype, device=like.device)
        norm.running_var = torch.ones(norm.num_features, dtype=like.dtype, device=like.device)
    try:
        with _evaluated(norms):
            yield
    finally:
        for norm in lent:
            norm.running_mean = norm.running_var = None


@contextmanager
def _no_dropout(model: nn.Module, small: float) -> Iterator[None]:
    """Let all modules but batch normalisation and recurrent ones be in evaluation mode, and those drop nothing."""
    recurrent = [each for each in model.modules() if isinstance(each, nn.RNNBase)]
    others = [each for each in model.modules() if not isinstance(each, nn.RNNBase | _BatchNorm)]
    before = [each.dropout for each in recurrent]
    for each in recurrent:
        each.dropout = 0.0
    try:
        with _evaluated(others):
            yield
    finally:
        for each, dropout in zip(recurrent, before, strict=True):
            each.dropout = dropout


@contextmanager
def _small_gradients(model: nn.Module, small: float) -> Iterator[None]:
    """Let every gradient that reaches a parameter be smaller, as if the loss were."""

    def shrunk(gradient: Tensor) -> Tensor:
        return gradient * small

    handles = [each.register_hook(shrunk) for each in model.parameters() if each.requires_grad]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _evaluated(modules: list[nn.Module] | list[_BatchNorm]) -> Iterator[None]:
    """Hold modules in evaluation mode, also where a step calls `model.train()`: their children follow their own."""
    for module in modules:
        module.training = False
        setattr(module, "train", _only_children(module))  # noqa: B010 - mypy lets no method be assigned
    try:
        yield
    finally:
        for module in modules:
            del module.train


def _only_children(module: nn.Module) -> Callable[[bool], nn.Module]:
    def train(mode: bool = True) -> nn.Module:
        for child in module.children():
            child.train(mode)
        return module

    return train


_HOW: dict[Condition, Callable[[nn.Module, float], AbstractContextManager[None]]] = {
    Condition.BATCH_NORM: _running_statistics,
    Condition.DROPOUT: _no_dropout,
    Condition.CLIPPING: _small_gradients,
}
