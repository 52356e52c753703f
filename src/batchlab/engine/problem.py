"""Problem: a network and the data it is trained and judged on, as tensors on one device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from batchlab.core.seeds import Stream, generator
from batchlab.data.base import ImageView
from batchlab.engine.objectives import Objective
from batchlab.engine.torch_random import fork_rng, torch_seed
from batchlab.models.base import Network


@dataclass(frozen=True)
class Split:
    """Examples as tensors, which may be memory maps; only those in `rows` where they are given."""

    inputs: Tensor
    labels: Tensor
    rows: Tensor | None = None

    def chunks(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and labels of `size` examples after another; the last ones may be fewer."""
        for start in range(0, len(self.labels if self.rows is None else self.rows), size):
            chunk = slice(start, start + size)
            part = chunk if self.rows is None else self.rows[chunk].to(self.labels.device)
            yield self.inputs[part], self.labels[part]


@dataclass(frozen=True)
class Problem:
    """What a program trains. Inputs that are kept as bytes are viewed when they are used."""

    make_network: Callable[[], nn.Module]
    objective: Objective
    num_classes: int
    train: Split
    evaluated: Mapping[str, Split]
    device: torch.device
    """Where it is computed; examples that are memory-mapped stay in the machine's memory until they are used."""

    image_view: ImageView | None = None

    def network(self, seed: int, trial_id: int) -> nn.Module:
        """Return a trial's network at its start: one of ours by NumPy, any other as PyTorch's generator has it."""
        with fork_rng(self.device):
            torch.manual_seed(torch_seed(seed, Stream.INIT, trial_id))
            network = self.make_network()
        if isinstance(network, Network):
            network.start(generator(seed, Stream.INIT, trial_id))
        return network.to(self.device)

    def gather(self, values: Tensor, batch: Tensor) -> Tensor:
        """Return the rows batch [K, B] of values, as [K, B, ...]."""
        if values.device == batch.device:
            return values.index_select(0, batch.flatten()).unflatten(0, batch.shape)
        return self.gather(values, batch.to(values.device)).to(batch.device)

    def view(self, inputs: Tensor, cuts: Tensor | None = None) -> Tensor:
        """Return what the model sees of inputs [..., B, *]; images are cut at `cuts` [..., B, 3], or in the middle."""
        if self.image_view is None:
            return inputs
        flat_cuts = None if cuts is None else cuts.flatten(0, -2)
        viewed = view_images(inputs.flatten(0, -4), self.image_view, flat_cuts)
        return viewed.unflatten(0, inputs.shape[:-3])

    def draw_cuts(self, noise: np.random.Generator, num_images: int) -> np.ndarray:
        """Return [num_images, 3]: the first row and column of each image's square, and whether it is flipped."""
        assert self.image_view is not None
        slack = np.array(self.train.inputs.shape[1:3]) - self.image_view.size
        corners = noise.integers(0, slack + 1, (num_images, 2))
        return np.concatenate([corners, noise.integers(0, 2, (num_images, 1))], axis=1)


def view_images(images: Tensor, view: ImageView, cuts: Tensor | None = None) -> Tensor:
    """Return bytes [N, H, W, C] as [N, C, size, size]: cut at `cuts` [N, 3], or in the middle, and scaled."""
    num_images, height, width, _ = images.shape
    if cuts is None:
        middle = torch.tensor([(height - view.size) // 2, (width - view.size) // 2, 0], device=images.device)
        cuts = middle.expand(num_images, 3)
    top, left, flip = cuts.T
    within = torch.arange(view.size, device=images.device)
    columns = torch.where(flip[:, None] == 1, view.size - 1 - within, within) + left[:, None]
    rows = top[:, None] + within
    number = torch.arange(num_images, device=images.device)[:, None, None]
    cut = images[number, rows[:, :, None], columns[:, None, :]].float()
    mean = torch.tensor(view.mean, device=images.device) * 255
    std = torch.tensor(view.std, device=images.device) * 255
    return ((cut - mean) / std).permute(0, 3, 1, 2)
