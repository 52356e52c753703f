"""What a model is here: named parameter shapes, an initial value, and logits for K trials at once.

Tensors carry one trial in each entry of their first axis. Shape letters used in this room:
K trials, B examples, C classes or channels, T tokens, I inputs and O outputs of a layer.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from torch import Tensor

from batchlab.models.averages import RunningAverages

Parameters = Mapping[str, Tensor]


@dataclass(frozen=True)
class ParameterShape:
    """The shape of one parameter of one trial, and how it starts.

    With fans: Glorot-uniform. With `std`: normal around zero. With neither: `constant`.
    """

    shape: tuple[int, ...]
    fan_in: int = 0
    fan_out: int = 0
    std: float | None = None
    constant: float = 0.0

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

    normalised: Mapping[str, int]
    """The layers with batch normalisation, by name, and their numbers of channels; empty for most models."""

    ghost_size: int
    """The number of consecutive examples of a batch that are normalised together; 1 without normalised layers."""

    multiplications: int
    """About how many multiplications the forward pass of one example takes."""

    def logits(
        self,
        parameters: Parameters,
        inputs: Tensor,
        masks: Tensor | None = None,
        averages: RunningAverages | None = None,
    ) -> Tensor:
        """Return [K, B, C], or [K, B, T, C] for tokens, for parameters [K, ...] and inputs [K, B, ...].

        `masks` are given only while training, `averages` only to a model with normalised layers.
        """
        ...

    def draw_masks(self, noise: np.random.Generator, batch_size: int) -> np.ndarray:
        """Return one trial's dropout mask for one batch, scaled by 1/keep."""
        ...


class PlainModel:
    """What a model has that drops no units and normalises no layer."""

    dropout = 0.0
    normalised: Mapping[str, int] = {}
    ghost_size = 1

    def draw_masks(self, noise: np.random.Generator, batch_size: int) -> np.ndarray:
        """Return an empty mask: nothing is dropped."""
        return np.empty((batch_size, 0), np.float32)


class SingleTrialModel(PlainModel, ABC):
    """A model that trains one trial at a time, written as a function of one trial's parameters.

    Packs of models this large gain nothing: the products of one trial keep a core busy.
    """

    @abstractmethod
    def forward(self, parameters: Parameters, inputs: Tensor, averages: RunningAverages | None) -> Tensor:
        """Return the logits [B, ...] of one trial for inputs [B, ...]."""

    def logits(
        self,
        parameters: Parameters,
        inputs: Tensor,
        masks: Tensor | None = None,
        averages: RunningAverages | None = None,
    ) -> Tensor:
        """Return [1, B, ...]."""
        single = {name: values.squeeze(0) for name, values in parameters.items()}
        return self.forward(single, inputs.squeeze(0), averages).unsqueeze(0)


def num_parameters(model: Model) -> int:
    """Return P, the number of parameters of one trial."""
    return sum(shape.size for shape in model.shapes.values())


def initial_parameters(model: Model, init: np.random.Generator) -> np.ndarray:
    """Return one trial's parameters [P]: Glorot-uniform weights and zero biases where a model says nothing else.

    The paper does not state its initialisers; these are the defaults of the library it used. They are the same
    at every batch size.
    """
    return np.concatenate([_initial(shape, init).reshape(-1) for shape in model.shapes.values()])


def _initial(shape: ParameterShape, init: np.random.Generator) -> np.ndarray:
    if shape.std is not None:
        return (shape.std * init.standard_normal(shape.shape, np.float32)).astype(np.float32)
    if shape.fan_in == 0:
        return np.full(shape.shape, shape.constant, np.float32)
    limit = math.sqrt(6 / (shape.fan_in + shape.fan_out))
    return (limit * (2 * init.random(shape.shape, np.float32) - 1)).astype(np.float32)
