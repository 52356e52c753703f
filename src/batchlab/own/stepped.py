"""A network whose loss is a function of the user's own: `training_step(module, batch)`, whatever a batch is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from batchlab.core.study import Study
from batchlab.engine.forward import Forward
from batchlab.engine.global_random import fork_rng, seed_all
from batchlab.engine.noise import Noise
from batchlab.engine.source import Microbatch, Source
from batchlab.engine.trainable import Trainable, seed_modules
from batchlab.errors import TrainerError
from batchlab.own.content import copied, each_tensor, moved
from batchlab.own.loaded import LoadedMicrobatch
from batchlab.own.objective import number_of

TrainingStep = Callable[[nn.Module, Any], Tensor]
"""From a module and a batch to one number: the mean over the batch's examples.

It is given microbatches, and of each a worker's share where several train one trial. Their losses are weighted by their
numbers of examples, so that the sum is the loss of the batch: what is averaged otherwise, over tokens say, is not.
"""

EVALUATED_EXAMPLES = 32
"""Examples that are evaluated at once, where no microbatch size is given: few enough for a language model."""


@dataclass(frozen=True)
class Stepped(Trainable):
    """What a program trains, one trial at a time. Losses and metrics are means over examples, and are averaged so."""

    make_network: Callable[[], nn.Module]
    training_step: TrainingStep
    metrics: Mapping[str, TrainingStep]
    train: Source
    evaluated: Mapping[str, Source]
    device: torch.device
    evaluated_examples: int = EVALUATED_EXAMPLES

    def outputs(self, forward: Forward, microbatch: Microbatch, noise: Noise) -> Tensor:
        """Return the mean loss [1]."""
        assert isinstance(microbatch, LoadedMicrobatch)
        content = each_tensor(microbatch.content, forward.in_precision)
        return checked_loss(self.training_step(forward.network, content)).view(1)

    def loss_sums(self, outputs: Tensor, microbatch: Microbatch) -> Tensor:
        """Return the loss [1] times the number of examples."""
        return outputs * (microbatch.part.stop - microbatch.part.start)

    def weight(self, microbatches: Sequence[Microbatch]) -> Tensor | int:
        """Return how many examples some microbatches have."""
        return int(microbatches[-1].part.stop - microbatches[0].part.start)

    @torch.no_grad()
    def evaluate(self, forward: Forward, split: Source) -> dict[str, np.ndarray]:
        """Return loss and metrics as means over the examples; what they draw at random is the same each time."""
        forward.train(False)
        size, measures = self.evaluated_examples, {"loss": self.training_step, **self.metrics}
        sums = dict.fromkeys(measures, 0.0)
        with fork_rng(self.device):
            seed_all(0)
            for index, read in enumerate(split.chunks(size)):
                batch = each_tensor(moved(read, self.device), forward.in_precision)
                number = min(size, len(split) - index * size)
                for name, measure in measures.items():
                    sums[name] += number * number_of(name, measure(forward.network, copied(batch)))
        return {name: np.array([value / len(split)]) for name, value in sums.items()}

    def draw_noise(
        self, network: nn.Module, study: Study, trial_ids: Sequence[int], step: int, batch_size: int
    ) -> Noise:
        """Return nothing: the module draws for itself."""
        seed_modules(study, trial_ids[0], step)
        return Noise()


def checked_loss(loss: object) -> Tensor:
    """Return a loss that is one number and can be differentiated."""
    if not isinstance(loss, Tensor):
        hint = "return its `loss`" if hasattr(loss, "loss") else "return the loss of the batch"
        raise TrainerError(f"training_step returned {type(loss).__name__}, not a tensor: {hint}.")
    if loss.numel() != 1:
        raise TrainerError(
            f"The loss of a batch is a tensor of shape {tuple(loss.shape)}, not one number: let training_step take its "
            "mean over the examples."
        )
    if torch.is_grad_enabled() and not loss.requires_grad:
        raise TrainerError("training_step returned a loss without a gradient: compute it by the module's parameters.")
    return loss
