"""Joining a group of processes that train one trial together, by `torch.distributed`."""

from __future__ import annotations

import atexit
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any
from uuid import uuid4

import torch
import torch.distributed as dist
from torch.distributed.rendezvous import rendezvous

from batchlab.engine.gang.exchange import Distributed
from batchlab.errors import InputError, LostOthersError, shown

BACKENDS = {"cuda": "cpu:gloo,cuda:nccl"}
"""By the device of a trial; elsewhere gloo."""

NEVER_SECONDS = 30 * 86_400.0
"""When PyTorch gives up waiting, where nobody is to give up: a month."""

JOIN_SECONDS = 600.0
"""How long processes that were started together may wait for each other."""

LATER_SECONDS = 60.0
"""By how much longer the others wait than the first process, which can say who is silent."""

MEET_SECONDS = 0.05
"""Between two looks for those who are to come."""

BEAT_SECONDS = 1.0


def meet(place: str, rank: int, size: int, device: str, begun: Callable[[], None]) -> Distributed:
    """Join the processes of this machine that share a file: no port has to be agreed on.

    Each of them calls this with a rank of its own, from 0, and it returns once all have. `begun` is called where an
    exchange begins: whoever started them looks after those that stall.
    """
    _stay_on_this_machine()
    store = dist.FileStore(place, size)  # type: ignore[attr-defined]
    never = timedelta(seconds=NEVER_SECONDS)
    dist.init_process_group(_backend(device), store=store, rank=rank, world_size=size, timeout=never)
    return Distributed(begun=begun)


def _backend(device: str) -> str:
    return BACKENDS.get(device.partition(":")[0], "gloo")


def _stay_on_this_machine() -> None:
    """Let gloo talk over the loopback interface, unless the user has named another."""
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


def _told(error: RuntimeError) -> str:
    """Return what PyTorch says, in one line."""
    return " ".join(str(error).split())[:200]


def _rendezvous() -> tuple[Any, int, int]:
    """Return what torchrun's processes share, and the rank of this one among how many."""
    try:
        store, rank, size = next(rendezvous("env://", timeout=timedelta(seconds=JOIN_SECONDS)))
        return fresh_part(store, rank, size), rank, size
    except ValueError as error:  # a variable that is missing, or no number
        raise InputError(f"The environment is not as torchrun leaves it: {shown(str(error))}.") from error
    except RuntimeError as error:
        raise LostOthersError(
            f"The processes of torchrun cannot meet at {os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}: "
            f"{_told(error)}. Is the port in use, or the first machine not to be reached?"
        ) from error


def fresh_part(store: Any, rank: int, size: int) -> Any:
    """Return a part of a store for those alone who call this now, with a rank each from 0 to below `size`.

    torchrun keeps its store when it starts processes again, and in it the addresses of those that have died. The first
    process tells whom it has seen until all others have seen themselves among them; everybody's name is new each time.
    """
    own, deadline = uuid4().hex, time.monotonic() + JOIN_SECONDS
    store.set(f"here/{rank}", own)
    while time.monotonic() < deadline:
        if rank == 0:
            store.set("all", ",".join(store.get(f"here/{each}").decode() for each in range(size)))
            if store.check([f"seen/{own}/{each}" for each in range(1, size)]):
                return dist.PrefixStore(own, store)  # type: ignore[attr-defined]
        elif own in (names := store.get("all").decode().split(",")):
            store.set(f"seen/{names[0]}/{rank}", "")
            return dist.PrefixStore(names[0], store)  # type: ignore[attr-defined]
        time.sleep(MEET_SECONDS)
    raise RuntimeError(f"not all {size} came within {JOIN_SECONDS:g} s")


class Assembly:
    """The processes that torchrun has started, seen from one of them. Orders go apart from the exchange.

    An exchange, or an order that is to be heard, may take so many `seconds` before the first process gives the others
    up. They wait for an order for ever, because it may evaluate for long.
    """

    def __init__(self, device: str, seconds: float) -> None:
        if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
            _stay_on_this_machine()
        store, rank, size = _rendezvous()
        self._rank, self._size = rank, size
        never, patience = timedelta(seconds=NEVER_SECONDS), timedelta(seconds=seconds)
        later = patience + timedelta(seconds=LATER_SECONDS) if rank else patience
        with self._or_lost():
            dist.init_process_group(_backend(device), store=store, rank=rank, world_size=size, timeout=later)
            self._orders = dist.new_group(backend="gloo", timeout=never if rank else patience)
            self._turns = dist.new_group(backend="gloo", timeout=never)
        self._store = dist.PrefixStore("batchlab", store)  # type: ignore[attr-defined]
        self._store.set(f"name/{rank}", f"rank {rank} of {size} (process {os.getpid()} on {socket.gethostname()})")
        self._is_over = threading.Event()
        self._beating = threading.Thread(target=self._keep_beating, daemon=True)
        self._beating.start()
        self.exchange = Distributed()
        self.wait_for_all()

    def tell(self, order: Any) -> None:
        """Tell all others something, as the first."""
        with self._or_lost():
            dist.broadcast_object_list([order], src=0, group=self._orders, device=torch.device("cpu"))

    def hear(self) -> Any:
        """Return what the first tells."""
        heard: list[Any] = [None]
        with self._or_lost():
            dist.broadcast_object_list(heard, src=0, group=self._orders, device=torch.device("cpu"))
        return heard[0]

    def wait_for_all(self) -> None:
        """Return once all have called this."""
        with self._or_lost():
            dist.barrier(group=self._turns)

    def silent(self) -> list[str]:
        """Return who shows no sign of life: the others, by rank, process and machine."""
        before = self._beats()
        time.sleep(3 * BEAT_SECONDS)
        after = self._beats()
        return [self._store.get(f"name/{rank}").decode() for rank in before if before[rank] == after[rank]]

    def _beats(self) -> dict[int, bytes]:
        return {rank: self._store.get(f"beat/{rank}") for rank in range(self._size) if rank != self._rank}

    def _keep_beating(self) -> None:
        number = 0
        with suppress(RuntimeError):  # whoever keeps the numbers has ended
            while number == 0 or not self._is_over.wait(BEAT_SECONDS):
                number += 1
                self._store.set(f"beat/{self._rank}", str(number))

    def close(self, *, is_in_step: bool) -> None:
        """Show no more signs of life, and leave the others when this process ends, by which they notice.

        A thread that is at work while Python ends would bring it down: ours, and those of PyTorch, which let go of
        what was exchanged a moment after it has arrived. Where processes are not in step an exchange may be under way,
        and nobody waits for it.
        """
        self._is_over.set()
        self._beating.join()
        if is_in_step:
            atexit.register(dist.destroy_process_group)

    @contextmanager
    def _or_lost(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise LostOthersError(f"Rank {self._rank} of {self._size} has lost the others: {_told(error)}") from error
