"""Trainable: what a program trains, whatever a batch of it looks like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from batchlab.core.seeds import Stream, generator
from batchlab.core.study import Study
from batchlab.engine.forward import Forward, has_own_form
from batchlab.engine.global_random import fork_rng, seed_all, torch_seed
from batchlab.engine.noise import Noise
from batchlab.engine.source import Microbatch, Source
from batchlab.models.base import Network


class Trainable(ABC):
    """A network, its examples, and how a loss comes of them.

    `engine.problem` has inputs and labels, `own.stepped` whatever a function of the user's own makes of a batch.
    """

    make_network: Callable[[], nn.Module]
    train: Source
    evaluated: Mapping[str, Source]
    device: torch.device

    def network(self, seed: int, trial_id: int) -> nn.Module:
        """Return a trial's network at its start: one of ours by NumPy, any other as PyTorch's generator has it."""
        with fork_rng(self.device):
            seed_all(torch_seed(seed, Stream.INIT, trial_id))
            network = self.make_network()
        return _started(network, seed, trial_id).to(self.device)

    def networks(self, seed: int, trial_ids: Sequence[int]) -> Iterator[nn.Module]:
        """Yield the trials' networks at their start: of ours, where it can be, one module that starts anew each time.

        To make a small network takes longer than some steps of it.
        """
        first, *others = trial_ids
        network = self.network(seed, first)
        yield network
        is_same = isinstance(network, Network) and has_own_form(network) and network.starts_all
        for trial_id in others:
            yield _started(network, seed, trial_id) if is_same else self.network(seed, trial_id)

    @abstractmethod
    def outputs(self, forward: Forward, microbatch: Microbatch, noise: Noise) -> Tensor:
        """Return what the networks say of some examples: [K, ...]."""

    @abstractmethod
    def loss_sums(self, outputs: Tensor, microbatch: Microbatch) -> Tensor:
        """Return [K]: the sums of the losses."""

    @abstractmethod
    def weight(self, microbatches: Sequence[Microbatch]) -> Tensor | int:
        """Return over how many examples the loss of consecutive microbatches is averaged, or [K]: how many tokens."""

    @abstractmethod
    def evaluate(self, forward: Forward, split: Source) -> dict[str, np.ndarray]:
        """Return the metrics on a split: name -> [K] float64."""

    @abstractmethod
    def draw_noise(
        self, network: nn.Module, study: Study, trial_ids: Sequence[int], step: int, batch_size: int
    ) -> Noise:
        """Return what chance decides in a step, for the whole batch of each trial; what a module draws is seeded."""


def _started(network: nn.Module, seed: int, trial_id: int) -> nn.Module:
    if isinstance(network, Network):
        network.start(generator(seed, Stream.INIT, trial_id))
    return network


def seed_modules(study: Study, trial_id: int, step: int) -> None:
    """Set the generators from which modules that are none of ours draw, by trial and step."""
    seed_all(torch_seed(study.seed, Stream.NOISE, trial_id, step))
