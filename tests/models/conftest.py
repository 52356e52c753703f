"""One thread for torch, so that bits do not depend on the machine; networks away from where they start, sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from batchlab.models.base import Network


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None: ...


@pytest.fixture
def started() -> Callable[..., Network]:
    """Return a function that starts a network; the noise keeps biases and scales off 0 and 1."""

    def start(network: Network, noise: float = 0.3, dtype: torch.dtype = torch.float64) -> Network:
        random = np.random.default_rng(0)
        network.start(random)
        network.to(dtype)
        for parameter in network.parameters():
            parameter.data += torch.from_numpy(noise * random.standard_normal(parameter.shape)).to(dtype)
        return network

    return start


@pytest.fixture
def row_of() -> Callable[[nn.Module], dict[str, Tensor]]:
    """Return a function that copies the parameters of a network, by name."""

    def copy(network: nn.Module) -> dict[str, Tensor]:
        return {name: each.detach().clone().requires_grad_() for name, each in network.named_parameters()}

    return copy


@pytest.fixture
def losses_of() -> Callable[..., list[float]]:
    """Return a function that descends a loss for some steps and gives its values before each."""

    def descend(network: nn.Module, loss_of: Callable[[], Tensor], rate: float, num_steps: int) -> list[float]:
        losses, optimizer = [], torch.optim.SGD(network.parameters(), lr=rate)
        for _ in range(num_steps):
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    return descend


@pytest.fixture
def sentences() -> Callable[..., Tensor]:
    """Return a function that gives sentences [count, num_tokens] of a vocabulary of 11."""

    def make(count: int = 3, num_tokens: int = 7) -> Tensor:
        return torch.from_numpy(np.random.default_rng(1).integers(2, 11, (count, num_tokens), np.int32))

    return make
