"""One thread for torch, so that bits do not depend on the machine; parameters and sentences for the language models."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from batchlab.engine.parameters import ParameterMatrix
from batchlab.models.base import Model, initial_parameters, num_parameters


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def parameters_of() -> Callable[..., ParameterMatrix]:
    """Return a function that gives one trial's parameters; the noise keeps biases and scales off 0 and 1."""

    def make(model: Model, noise: float = 0.3, dtype: torch.dtype = torch.float64) -> ParameterMatrix:
        random = np.random.default_rng(0)
        row = initial_parameters(model, random) + noise * random.standard_normal(num_parameters(model))
        return ParameterMatrix(torch.from_numpy(row).to(dtype).unsqueeze(0), model.shapes)

    return make


@pytest.fixture
def losses_of() -> Callable[..., list[float]]:
    """Return a function that descends a loss for some steps and gives its values before each."""

    def descend(matrix: ParameterMatrix, loss_of: Callable[[], Tensor], rate: float, num_steps: int) -> list[float]:
        losses = []
        for _ in range(num_steps):
            loss = loss_of()
            matrix.differentiate(loss[None])
            matrix.values.sub_(matrix.gradients, alpha=rate)
            losses.append(loss.item())
        return losses

    return descend


@pytest.fixture
def sentences() -> Callable[..., Tensor]:
    """Return a function that gives sentences [1, count, num_tokens] of a vocabulary of 11."""

    def make(count: int = 3, num_tokens: int = 7) -> Tensor:
        return torch.from_numpy(np.random.default_rng(1).integers(2, 11, (1, count, num_tokens), np.int32))

    return make
