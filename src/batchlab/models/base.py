"""What a model is here: named parameter shapes, an initial value, and logits for K trials at once.

Tensors carry one trial in each entry of their first axis. Shape letters used in this room:
K trials, B examples, C classes, I inputs and O outputs of a layer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor

Parameters = Mapping[str, Tensor]


@dataclass(frozen=True)
class ParameterShape:
    """The shape of one parameter of one trial, and its fans; a bias has none and starts at zero."""

    shape: tuple[int, ...]
    fan_in: int = 0
    fan_out: int = 0

    @property
    def size(self) -> int:
        """The number of values."""
        return math.prod(self.shape)


class Model(Protocol):
    """A network as a function of its parameters; it holds no weights itself."""

    shapes: dict[str, ParameterShape]
    """The parameters by name, in the order in which they lie in a row of the parameter matrix."""

    dropout: float
    """The share of units dropped while training; 0 means that `draw_masks` is never called."""

    def logits(self, parameters: Parameters, inputs: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return [K, B, C] for parameters [K, ...] and inputs [K, B, ...]; `masks` only while training."""
        ...

    def draw_masks(self, noise: np.random.Generator, batch_size: int) -> np.ndarray:
        """Return one trial's dropout mask for one batch, scaled by 1/keep."""
        ...


def num_parameters(model: Model) -> int:
    """Return P, the number of parameters of one trial."""
    return sum(shape.size for shape in model.shapes.values())


def initial_parameters(model: Model, init: np.random.Generator) -> np.ndarray:
    """Return one trial's parameters [P]: Glorot-uniform weights, zero biases.

    The paper does not state its initialiser; this is the default of the library it used. It is the same
    at every batch size.
    """
    return np.concatenate([_initial(shape, init).reshape(-1) for shape in model.shapes.values()])


def _initial(shape: ParameterShape, init: np.random.Generator) -> np.ndarray:
    if shape.fan_in == 0:
        return np.zeros(shape.shape, np.float32)
    limit = math.sqrt(6 / (shape.fan_in + shape.fan_out))
    return (limit * (2 * init.random(shape.shape, np.float32) - 1)).astype(np.float32)
