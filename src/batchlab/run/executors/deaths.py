"""How often a task may cost its worker the life."""

from __future__ import annotations

from collections import Counter

from batchlab.errors import TrialError
from batchlab.run.executors.executor import Lost, TaskKey

MOST_DEATHS = 3
"""In a row, without a checkpoint in between."""


class Deaths:
    """Counts, for each task, the workers that died at it since it last got on."""

    def __init__(self) -> None:
        self._counts: Counter[TaskKey] = Counter()
        self.has_any = False

    def add(self, lost: Lost, work: str, *, saves: bool) -> None:
        """Count one more; TrialError where it was the last that `work`, such as `training trial 3`, may cost.

        `saves` says whether that is work of which checkpoints are kept.
        """
        self.has_any = True
        self._counts[lost.key] += 1
        if self._counts[lost.key] == MOST_DEATHS:
            while_saving = " before a new checkpoint was kept" if saves else ""
            way = "" if lost.ended_itself else _way_out(saves)
            raise TrialError(f"The worker {work} died {MOST_DEATHS} times in a row{while_saving} ({lost.why}).{way}")

    def forget(self, key: TaskKey) -> None:
        """Take note that a task has got on."""
        self._counts.pop(key, None)


def _way_out(saves: bool) -> str:
    if not saves:
        return " Try again, with fewer workers if memory is short."
    return (
        " Run it again to go on, with fewer workers if memory is short, or with a smaller engine.checkpoint_seconds if "
        "workers are killed now and then."
    )
