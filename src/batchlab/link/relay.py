"""The delaying relay: packets of TUN devices reach the worker that they are for after a while, in their order.

It takes packets from the system as large as TCP makes them (segmentation offload), so that one process moves gigabits.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
import time
from collections import deque
from collections.abc import Mapping

_DEVICE = "/dev/net/tun"
_SET_DEVICE, _SET_OFFLOAD = 0x400454CA, 0x400454D0
_TUN, _NO_INFORMATION, _OFFLOAD_HEADER = 0x0001, 0x1000, 0x4000
_CHECKSUMS, _SEGMENTS = 0x1, 0x2
_HEADER_BYTES = 10
"""Of the offload header: it says where checksums are missing and how long segments are, and is passed on."""

_MOST_BYTES = _HEADER_BYTES + 65536
_AT_ONCE = 64
"""Packets read before those that are due are looked at."""

_LEARNING, _LATEST = 0.1, 0.3e-3
"""How fast we learn by how much the system wakes us late, and the most that is believed, in seconds."""

_DESTINATION = slice(_HEADER_BYTES + 16, _HEADER_BYTES + 20)


def open_tun(name: str) -> int:
    """Return an open TUN device of a name in the namespace of this thread; it is gone once that is closed."""
    number = os.open(_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = _TUN | _NO_INFORMATION | _OFFLOAD_HEADER
    fcntl.ioctl(number, _SET_DEVICE, struct.pack("16sH22x", name.encode(), kind))
    fcntl.ioctl(number, _SET_OFFLOAD, _CHECKSUMS | _SEGMENTS)
    return number


def relay(devices: Mapping[bytes, int], delay: float, until: int) -> None:
    """Pass packets on after a delay in seconds, until there is something to read from `until`, its end too.

    `devices` are open TUN devices by the four bytes of their address; what is for nobody is dropped.
    """
    waiting: deque[tuple[float, int, bytes]] = deque()
    lateness = 0.0
    while True:
        now = time.monotonic()
        wakes = waiting[0][0] - lateness if waiting else None
        ready, _, _ = select.select(
            [*devices.values(), until], [], [], None if wakes is None else max(0.0, wakes - now)
        )
        if until in ready:
            return
        for number in ready:
            _read(number, devices, delay, waiting)
        now = time.monotonic()
        if wakes is not None and not ready:
            lateness += _LEARNING * (min(max(0.0, now - wakes), _LATEST) - lateness)
        while waiting and waiting[0][0] - lateness <= now:
            _, number, packet = waiting.popleft()
            _write(number, packet)


def _read(number: int, devices: Mapping[bytes, int], delay: float, waiting: deque[tuple[float, int, bytes]]) -> None:
    """Take what a device has sent, each packet with the time when it is due."""
    for _ in range(_AT_ONCE):
        try:
            packet = os.read(number, _MOST_BYTES)
        except BlockingIOError:
            return
        target = devices.get(packet[_DESTINATION])
        if target is not None:
            waiting.append((time.monotonic() + delay, target, packet))


def _write(number: int, packet: bytes) -> None:
    try:
        os.write(number, packet)
    except OSError:  # the device is down: so would a cable lose it
        return
