"""Problem: a network that is trained and judged on inputs and labels, as tensors on one device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from batchlab.core.seeds import Stream, generator
from batchlab.core.study import Study
from batchlab.data.base import ImageView
from batchlab.engine.evaluate import evaluate
from batchlab.engine.forward import Forward
from batchlab.engine.noise import Noise
from batchlab.engine.objectives import Classification, Objective, count_tokens
from batchlab.engine.source import Microbatch, Source
from batchlab.engine.trainable import Trainable, seed_modules
from batchlab.models.base import Network


@dataclass(frozen=True)
class Problem(Trainable):
    """What a program trains. Inputs that are kept as bytes are viewed when they are used."""

    make_network: Callable[[], nn.Module]
    objective: Objective
    num_classes: int
    train: Source
    evaluated: Mapping[str, Source]
    device: torch.device
    """Where it is computed; examples that are memory-mapped stay in the machine's memory until they are used."""

    image_view: ImageView | None = None

    def outputs(self, forward: Forward, microbatch: Microbatch, noise: Noise) -> Tensor:
        """Return the logits [K, B, ...]."""
        inputs = forward.in_precision(self.view(microbatch.inputs, noise.cuts))
        return forward.logits(inputs, noise.masks)

    def loss_sums(self, outputs: Tensor, microbatch: Microbatch) -> Tensor:
        """Return the sums [K] that the objective makes of logits and labels."""
        return self.objective.loss_sums(outputs, microbatch.labels)

    def smoothed_loss_sums(self, outputs: Tensor, microbatch: Microbatch, smoothing: Tensor) -> Tensor:
        """Return the sums [K] with labels smoothed by `smoothing` [K, 1], which are one class each."""
        assert isinstance(self.objective, Classification)
        return self.objective.smoothed_loss_sums(outputs, microbatch.labels, smoothing)

    def weight(self, microbatches: Sequence[Microbatch]) -> Tensor | int:
        """Return how many examples some microbatches have, or [K]: how many tokens."""
        if self.objective.is_per_token:
            return torch.stack([count_tokens(each.labels) for each in microbatches]).sum(0)
        return int(microbatches[-1].part.stop - microbatches[0].part.start)

    def evaluate(self, forward: Forward, split: Source) -> dict[str, np.ndarray]:
        """Return the objective's metrics on a split."""
        return evaluate(self, forward, split)

    def view(self, inputs: Tensor, cuts: Tensor | None = None) -> Tensor:
        """Return what the model sees of inputs [..., B, *]; images are cut at `cuts` [..., B, 3], or in the middle."""
        if self.image_view is None:
            return inputs
        flat_cuts = None if cuts is None else cuts.flatten(0, -2)
        viewed = view_images(inputs.flatten(0, -4), self.image_view, flat_cuts)
        return viewed.unflatten(0, inputs.shape[:-3])

    def draw_noise(
        self, network: nn.Module, study: Study, trial_ids: Sequence[int], step: int, batch_size: int
    ) -> Noise:
        """Return dropout masks of our networks and the cuts of images, for the whole batch of each trial."""
        if not isinstance(network, Network):
            seed_modules(study, trial_ids[0], step)
        dropping = network if isinstance(network, Network) and network.dropout > 0 else None
        if dropping is None and self.image_view is None:
            return Noise()
        noises = [generator(study.seed, Stream.NOISE, each, step) for each in trial_ids]
        masks = None if dropping is None else [dropping.draw_masks(noise, batch_size) for noise in noises]
        cuts = None if self.image_view is None else [self.draw_cuts(noise, batch_size) for noise in noises]
        return Noise(self._stacked(masks), self._stacked(cuts))

    def draw_cuts(self, noise: np.random.Generator, num_images: int) -> np.ndarray:
        """Return [num_images, 3]: the first row and column of each image's square, and whether it is flipped."""
        assert self.image_view is not None
        slack = np.array(self.train.shape[:2]) - self.image_view.size
        corners = noise.integers(0, slack + 1, (num_images, 2))
        return np.concatenate([corners, noise.integers(0, 2, (num_images, 1))], axis=1)

    def _stacked(self, arrays: list[np.ndarray] | None) -> Tensor | None:
        return None if arrays is None else torch.from_numpy(np.stack(arrays)).to(self.device)


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
