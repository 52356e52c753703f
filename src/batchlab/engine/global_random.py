"""PyTorch's own random numbers, for modules that are none of ours: set from our streams, given back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from batchlab.core.seeds import Stream, generator

TORCH = 1
"""The last key of a stream whose one number seeds PyTorch's generator. Stored results depend on it: never change it."""


def torch_seed(seed: int, stream: Stream, *key: int) -> int:
    """Return the seed of PyTorch's generator for a stream: what a module draws there depends on nothing else."""
    return int(generator(seed, stream, *key, TORCH).integers(1 << 63))


def seed_torch(seed: int) -> None:
    """Let PyTorch's generators begin at a seed, on the processor and on the devices in use.

    `torch.manual_seed` does so too, but writes down the call stack for each kind of device that is not in use: 0.2 to
    1 ms, which a step of a small network does not take.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


@contextmanager
def fork_rng(device: torch.device) -> Iterator[None]:
    """Leave the state of PyTorch's generators, on the processor and on a device, as it was before."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        yield
