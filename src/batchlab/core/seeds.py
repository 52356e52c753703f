"""How the sweep's seed becomes the separate random streams of a trial.

A stream depends on the sweep's seed and on what it is for, never on the batch size of a trial, the
number of processes or the pack it trains in. Trial 7 starts from the same weights and sees the examples
in the same order at every batch size.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a stream of random numbers is for. Stored results depend on the numbers: never change one."""

    DESIGN = 0
    """Points of the search space, for one batch size."""

    INIT = 1
    """Initial parameters, for one trial."""

    ORDER = 2
    """Order of the examples, for one trial and epoch."""

    NOISE = 3
    """Dropout and augmentation, for one trial and step."""

    SUBSET = 4
    """Which examples belong to a subset or a split of a dataset."""

    LOOP = 5
    """The seed that a loop of the user's own is given, for one trial."""


def generator(seed: int, stream: Stream, *key: int) -> np.random.Generator:
    """Return the stream for `key`: a batch size for DESIGN, a trial id (and epoch or step) for the others."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(stream, *key))))
