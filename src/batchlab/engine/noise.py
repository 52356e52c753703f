"""What chance decides in one training step."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Noise:
    """Dropout masks and the cuts of images, [K, B, ...] each, or neither: drawn for the whole batch of each trial."""

    masks: Tensor | None = None
    cuts: Tensor | None = None

    def of(self, microbatch: slice) -> Noise:
        """Return the part that belongs to some examples of the batch."""
        if self.masks is None and self.cuts is None:
            return self
        return Noise(*(None if values is None else values[:, microbatch] for values in (self.masks, self.cuts)))
