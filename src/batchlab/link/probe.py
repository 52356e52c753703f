"""What a link is like, seen by plain sockets through it: the round trip and the throughput of TCP, one way."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from batchlab.errors import TrialError
from batchlab.link.hub_process import Joined
from batchlab.link.namespace import enter

ROUND_TRIPS = 21
SECONDS = 0.5
"""Of sending, about."""

_PATIENCE = 60.0
"""Seconds; a link is dead after that."""

_BEGINNING = 0.3
"""The share of the bytes that is not counted: TCP begins slowly."""

_END, _PIECE = b"e", bytes(1 << 16)
T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """What was measured."""

    round_trip: float
    """Seconds; the least of some, as whatever else the machine does only adds to it."""

    throughput: float
    """Bytes per second of one connection, without the headers of packets."""


def probe(joined: Joined) -> Seen:
    """Measure a link between its first two workers; TrialError where nothing comes through."""
    sender, receiver = joined.namespaces[:2]
    with ThreadPoolExecutor(2) as threads:  # a namespace is a thread's own
        listening: Future[socket.socket] = Future()
        rate = threads.submit(_inside, receiver, lambda: _receive(joined.addresses[1], listening))
        trips = threads.submit(_inside, sender, lambda: _send(listening.result(_PATIENCE)))
        try:
            return Seen(min(trips.result()), rate.result())
        except (OSError, TimeoutError) as error:
            raise TrialError(f"Nothing comes through the link between workers: {error}.") from error


def _inside(namespace: str, act: Callable[[], T]) -> T:
    enter(namespace)
    return act()


def _receive(address: str, listening: Future[socket.socket]) -> float:
    """Answer every byte until the last one, then count what comes; return its bytes per second."""
    with socket.create_server((address, 0)) as server:
        server.settimeout(_PATIENCE)
        listening.set_result(server)
        connection = _ready(server.accept()[0])
    with connection:
        while (byte := connection.recv(1)) != _END:
            connection.sendall(byte)
        marks, total = [], 0
        while piece := connection.recv(1 << 20):
            total += len(piece)
            marks.append((time.monotonic(), total))
    (last, _), (first, before) = marks[-1], next(mark for mark in marks if mark[1] >= _BEGINNING * total)
    return (total - before) / max(last - first, 1e-9)


def _send(server: socket.socket) -> list[float]:
    """Return the seconds of some round trips; then send for a while."""
    with _ready(socket.create_connection(server.getsockname(), timeout=_PATIENCE)) as connection:
        trips = [_round_trip(connection) for _ in range(ROUND_TRIPS)]
        connection.sendall(_END)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            connection.sendall(_PIECE)
    return trips


def _round_trip(connection: socket.socket) -> float:
    started = time.monotonic()
    connection.sendall(b"x")
    connection.recv(1)
    return time.monotonic() - started


def _ready(connection: socket.socket) -> socket.socket:
    connection.settimeout(_PATIENCE)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection
