"""Signals of the system, handled otherwise for a while."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def handled_by(handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> Iterator[None]:
    """Have signals of these numbers handled by `handler` for a while."""
    heard = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]  # as nohup has it
    try:
        before = {number: signal.signal(number, handler) for number in heard}
    except ValueError:  # not in the main thread: whoever called us handles signals
        before = {}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
