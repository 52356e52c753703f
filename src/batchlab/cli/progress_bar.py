"""How far a long reading is, on stderr: a bar on a terminal, elsewhere a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY_SECONDS = 2


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Give a function that takes in the share that is done, from 0 to 1, and shows it with the time left."""
    if not sys.stderr.isatty():
        yield _Lines(what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=1.0)
        yield lambda share: progress.update(task, completed=share)


class _Lines:
    """Prints how far something is and how long it may take, every few seconds."""

    def __init__(self, what: str) -> None:
        self._what, self._started = what, time.perf_counter()
        self._shown = self._started

    def __call__(self, share: float) -> None:
        now = time.perf_counter()
        if now - self._shown > EVERY_SECONDS and share > 0:
            from batchlab.core.duration import spell_seconds

            self._shown = now
            left = spell_seconds((now - self._started) * (1 - share) / share)
            print(f"{self._what}: {100 * share:.0f} % done, about {left} left", file=sys.stderr, flush=True)
