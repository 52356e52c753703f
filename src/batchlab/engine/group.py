"""Joining a group of processes that train one trial together, by `torch.distributed`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta

import torch.distributed as dist

from batchlab.engine.exchange import Distributed

BACKENDS = {"cuda": "cpu:gloo,cuda:nccl"}
"""By the device of a trial; elsewhere gloo."""


def meet(place: str, rank: int, size: int, device: str, seconds: float, begun: Callable[[], None]) -> Distributed:
    """Join the processes of this machine that share a file: no port has to be agreed on.

    Each of them calls this with a rank of its own, from 0, and it returns once all have. An exchange may take so many
    `seconds`; `begun` is called where one begins.
    """
    if sys.platform == "linux":  # what they have to say to each other is nobody else's business
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    store = dist.FileStore(place, size)  # type: ignore[attr-defined]
    dist.init_process_group(_backend(device), store=store, rank=rank, world_size=size, timeout=timedelta(0, seconds))
    return Distributed(begun=begun)


def _backend(device: str) -> str:
    return BACKENDS.get(device.partition(":")[0], "gloo")
