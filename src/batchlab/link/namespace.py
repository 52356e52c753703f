"""Network namespaces by their files: made, entered, left."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_OWN = "/proc/thread-self/ns/net"
_CLONE_NEWNET = 0x40000000


def enter(namespace: str) -> None:
    """Let this thread, and what it starts from now on, live in a network namespace, given by the path of its file."""
    number = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("setns", number, _CLONE_NEWNET)
    finally:
        os.close(number)


def make_namespace() -> int:
    """Return an open file of a new network namespace, which lasts while that is open or a process lives in it."""
    with _returning():
        _call("unshare", _CLONE_NEWNET)
        return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)


@contextmanager
def inside(number: int) -> Iterator[None]:
    """Live in the namespace of an open file meanwhile."""
    with _returning():
        _call("setns", number, _CLONE_NEWNET)
        yield


@contextmanager
def _returning() -> Iterator[None]:
    before = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        _call("setns", before, _CLONE_NEWNET)
        os.close(before)


def _call(name: str, *arguments: int) -> None:
    """Call a function of the C library; Python has `os.setns` and `os.unshare` from 3.12 on."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
