"""The order in which a trial sees its examples."""

from __future__ import annotations

import numpy as np

from batchlab.core.seeds import Stream, generator


class ExampleOrder:
    """An endless stream of example numbers: every epoch a fresh permutation, epochs joined end to end.

    Batches are cut from the stream one after the other, so a batch may span two epochs and no example is
    ever dropped. The stream depends on the seed and the trial alone, not on the batch size.

    >>> ExampleOrder(4, seed=0, trial_id=0).take(0, 8)[:4].sum()
    np.int64(6)
    """

    def __init__(self, num_examples: int, seed: int, trial_id: int) -> None:
        self.num_examples, self.seed, self.trial_id = num_examples, seed, trial_id
        self._epoch, self._permutation = -1, np.empty(0, np.int64)

    def take(self, start: int, count: int) -> np.ndarray:
        """Return the example numbers at positions start to start + count of the stream."""
        parts = []
        while count > 0:
            epoch, offset = divmod(start, self.num_examples)
            part = self._epoch_order(epoch)[offset : offset + count]
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return np.concatenate(parts)

    def _epoch_order(self, epoch: int) -> np.ndarray:
        if epoch != self._epoch:
            self._epoch = epoch
            self._permutation = generator(self.seed, Stream.ORDER, self.trial_id, epoch).permutation(self.num_examples)
        return self._permutation
