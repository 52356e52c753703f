"""How the logits of K trials are computed from their parameter matrix: three forms, one for each kind of network.

- `Single`: the module itself, whose parameters are views of the one row.
- `Packed`: K trials by the network's own hand-written form, where that is faster than anything else.
- `Vectorised`: K trials of any module that `torch.func` can vectorise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from batchlab.engine.gang.exchange import ALONE, Exchange
from batchlab.engine.global_random import fork_rng
from batchlab.engine.parameters import ParameterMatrix
from batchlab.errors import TrainerError
from batchlab.models.base import Network, Packable
from batchlab.models.ghost_norm import GhostNorm


def in_dtype(outputs: Tensor, dtype: torch.dtype) -> Tensor:
    """Return what a network gives in a precision; complex numbers, which losses may make real, as they are."""
    return outputs.to(dtype) if outputs.is_floating_point() else outputs


class Forward(ABC):
    """The forward pass of K trials, over their parameters."""

    def __init__(self, network: nn.Module, parameters: ParameterMatrix) -> None:
        self.network, self.parameters = network, parameters

    @abstractmethod
    def logits(self, inputs: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return [K, B, ...] for inputs [K, B, ...]; the dropout masks [K, B, ...] are given only while training."""

    def in_precision(self, inputs: Tensor) -> Tensor:
        """Return inputs as the network can take them: doubled, where it computes in float64."""
        is_double = self.parameters.values.dtype == torch.float64
        return inputs.double() if is_double and inputs.is_floating_point() else inputs

    @abstractmethod
    def keep(self, rows: Tensor) -> Forward:
        """Return the form for some of the trials."""

    @property
    def buffers(self) -> dict[str, Tensor]:
        """What the trials keep beside their trained parameters, [K, ...] each, by name."""
        return {}

    def train(self, is_training: bool) -> None:
        """Say whether what follows is training or evaluation."""
        if self.network.training != is_training:
            self.network.train(is_training)

    def begin_step(self) -> None:
        """Make ready for the microbatches of a training step."""
        self.train(True)

    def end_step(self, exchange: Exchange = ALONE) -> None:
        """Take in what the microbatches of a training step have told all workers; most networks learn nothing."""
        return

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Undo what passes within do to the buffers, and to PyTorch's generators: they are no part of the training."""
        before = self.copied_buffers()
        with fork_rng(self.parameters.values.device):
            yield
        self.begin_step()
        self.restore_buffers(before)

    def copied_buffers(self) -> dict[str, Tensor]:
        """Return the buffers as they are now."""
        return {name: buffer.clone() for name, buffer in self.buffers.items()}

    @torch.no_grad()
    def restore_buffers(self, copied: Mapping[str, Tensor]) -> None:
        """Let the buffers be as they were copied; those that were not stay."""
        for name, buffer in self.buffers.items():
            if name in copied:
                buffer.copy_(copied[name])


class Single(Forward):
    """One trial: the module itself."""

    def __init__(self, network: nn.Module, parameters: ParameterMatrix) -> None:
        super().__init__(network, parameters)
        parameters.adopt(network)
        self._stepping = _stepping(network)

    def logits(self, inputs: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return [1, B, ...]."""
        if isinstance(self.network, Network):
            self.network.masks = None if masks is None else masks.squeeze(0)
        logits = self.network(inputs.squeeze(0))
        if not isinstance(logits, Tensor):
            raise TrainerError(
                f"{type(self.network).__name__} returned {type(logits).__name__}, not a tensor: return one, or give a "
                "`training_step` that computes the loss."
            )
        return logits.unsqueeze(0)

    @property
    def buffers(self) -> dict[str, Tensor]:
        """The module's own."""
        return {name: buffer.unsqueeze(0) for name, buffer in _untrained(self.network).items()}

    def keep(self, rows: Tensor) -> Forward:
        """Return itself; where its trial leaves, a form without any."""
        return self if len(rows) else Vectorised(self.network, self.parameters.keep(rows), {})

    def begin_step(self) -> None:
        """Make the module ready."""
        super().begin_step()
        for part in self._stepping:
            part.begin_step()

    def end_step(self, exchange: Exchange = ALONE) -> None:
        """Let the module update its running averages."""
        if exchange.size > 1:
            self._add_up(exchange)
        for part in self._stepping:
            part.end_step()

    @torch.no_grad()
    def _add_up(self, exchange: Exchange) -> None:
        """Let every ghost norm know the ghosts of all workers."""
        norms = [each for each in self.network.modules() if isinstance(each, GhostNorm)]
        if norms:
            told = [each.told for each in norms]
            sums = exchange.sum(torch.cat(told))
            for norm, each in zip(norms, sums.split([len(each) for each in told]), strict=True):
                norm.told = each


class Packed(Forward):
    """Any number of trials of a network that has a form of its own for them."""

    def __init__(self, network: nn.Module, parameters: ParameterMatrix) -> None:
        super().__init__(network, parameters)
        assert isinstance(network, Packable)  # looked at here: a step of a small network is quicker than ten looks
        self._packed_logits = network.packed_logits

    def logits(self, inputs: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return [K, B, ...]."""
        return self._packed_logits(self.parameters.views, inputs, masks)

    def keep(self, rows: Tensor) -> Forward:
        """Return the form for some of the trials."""
        return Packed(self.network, self.parameters.keep(rows))


class Vectorised(Forward):
    """Several trials of any module."""

    def __init__(self, network: nn.Module, parameters: ParameterMatrix, buffers: Mapping[str, Tensor]) -> None:
        super().__init__(network, parameters)
        self._buffers = dict(buffers)

    def logits(self, inputs: Tensor, masks: Tensor | None = None) -> Tensor:
        """Return [K, B, ...]."""
        if isinstance(self.network, Network) and masks is not None:
            return vmap(self._masked_logits_of_one)(self.parameters.views, self._buffers, inputs, masks)
        return vmap(self._logits_of_one)(self.parameters.views, self._buffers, inputs)

    def _logits_of_one(self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], inputs: Tensor) -> Any:
        return functional_call(self.network, {**parameters, **buffers}, (inputs,))

    def _masked_logits_of_one(
        self, parameters: dict[str, Tensor], buffers: dict[str, Tensor], inputs: Tensor, masks: Tensor
    ) -> Any:
        assert isinstance(self.network, Network)
        self.network.masks = masks
        try:
            return self._logits_of_one(parameters, buffers, inputs)
        finally:
            self.network.masks = None

    @property
    def buffers(self) -> dict[str, Tensor]:
        """Those of all trials, stacked."""
        return self._buffers

    def keep(self, rows: Tensor) -> Forward:
        """Return the form for some of the trials."""
        buffers = {name: buffer[rows] for name, buffer in self._buffers.items()}
        return Vectorised(self.network, self.parameters.keep(rows), buffers)


def make_forward(networks: Iterable[nn.Module], dtype: torch.dtype = torch.float32) -> Forward:
    """Return the form in which some networks of one kind, each with its initial parameters, train.

    Of those that have a form of their own each is read before the next is asked for, which may be the same module.
    """
    if dtype == torch.float64:
        networks = (each.double() for each in networks)
    networks = iter(networks)
    network = next(networks)
    if has_own_form(network):
        return Packed(network, ParameterMatrix.of(chain([network], networks), dtype=dtype, is_written=True))
    all_networks = [network, *networks]
    parameters = ParameterMatrix.of(all_networks, dtype=dtype)
    if len(all_networks) == 1:
        return Single(network, parameters)
    named = [_untrained(each) for each in all_networks]
    buffers = {name: torch.stack([each[name] for each in named]) for name in named[0]}
    return Vectorised(network, parameters, buffers)


def has_own_form(network: nn.Module) -> bool:
    """Return whether trials of a network train in its own form for several: all that they have are parameters."""
    return isinstance(network, Packable) and not _untrained(network)


def _stepping(network: nn.Module) -> list[Network | GhostNorm]:
    """Return who is told where a training step begins and ends: a network of ours, or what there is of ours in it."""
    if isinstance(network, Network):
        return [network]
    return [each for each in network.modules() if isinstance(each, Network | GhostNorm)]


def _untrained(network: nn.Module) -> dict[str, Tensor]:
    """Return the buffers of a network and the parameters that it has frozen, by name."""
    frozen = {name: each.detach() for name, each in network.named_parameters() if not each.requires_grad}
    return {**frozen, **dict(network.named_buffers())}
