"""The global random numbers of PyTorch, NumPy and Python, from which modules that are none of ours draw: set from our
streams, given back afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from batchlab.core.seeds import Stream, generator

TORCH = 1
"""The last key of a stream whose one number seeds the generators. Stored results depend on it: never change it."""


def torch_seed(seed: int, stream: Stream, *key: int) -> int:
    """Return the seed of the generators for a stream: what a module draws there depends on nothing else."""
    return int(generator(seed, stream, *key, TORCH).integers(1 << 63))


def seed_torch(seed: int) -> None:
    """Let PyTorch's generators begin at a seed, on the processor and on the devices in use.

    `torch.manual_seed` does so too, but writes down the call stack for each kind of device that is not in use: 0.2 to
    1 ms, which a step of a small network does not take.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def seed_all(seed: int) -> None:
    """Let the generators of PyTorch, on the processor and on the devices in use, NumPy and Python begin at a seed."""
    seed_torch(seed)
    seed_processor(seed)


def seed_processor(seed: int) -> None:
    """Let the generators of PyTorch on the processor, NumPy and Python begin at a seed."""
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed % (1 << 32))  # noqa: NPY002 - it is what modules and augmentations draw from
    random.seed(seed)


def state_outside_torch() -> tuple[object, ...]:
    """Return where the generators of NumPy and Python are: another after anything was drawn."""
    _, keys, place, has_gauss, gauss = np.random.get_state(legacy=True)  # noqa: NPY002
    return random.getstate(), np.asarray(keys).tobytes(), place, has_gauss, gauss


@contextmanager
def fork_rng(device: torch.device) -> Iterator[None]:
    """Leave the state of all generators, PyTorch's on the processor and on a device, as it was before."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
