"""One errand done, and waited for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from batchlab.run.errand import Errand
from batchlab.run.executors.deaths import Deaths
from batchlab.run.executors.executor import Executor, Failed, Finished, Lost, TaskKey


def do_errand(
    executor: Executor, errand: Errand, quiet_seconds: float | None = None, on_quiet: Callable[[], None] = lambda: None
) -> Any:
    """Return what an errand brings; `on_quiet()` is called after every so many seconds without news.

    Where its worker dies it is done again, a few times.
    """
    deaths, key = Deaths(), TaskKey(errand.study.batch_size)
    executor.submit(key, errand)
    while True:
        events = list(executor.events(quiet_seconds))
        for event in events:
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, Finished):
                return event.result
            if isinstance(event, Lost):
                deaths.add(event, f"{errand.doing} at batch size {key.batch_size}", saves=False)
                executor.submit(key, errand)
        if not events:
            on_quiet()
