"""The contract of an executor: whoever has tasks done, wherever that is.

A run gives tasks to an executor and gets events of what becomes of them. It does not ask where they are done.

- **Tasks travel by value.** A task is picklable and names no place in the lab: it carries the checkpoint that it goes
  on from. `submit` takes one while `num_idle` is above 0, and its key comes back with every event of it.
- **Each task has one end**, an event after which its worker is idle: `Finished`, `Paused`, `Stopped`, `Lost` or
  `Failed`. Before it come any number of `Progress` and `Saved`, in the order in which things happened.
- **Checkpoints leave a worker as they are saved**, and lie on the task's shelf, which only the side that holds the lab
  has, once `Saved` comes. `Paused` and `Stopped` mean that the last one is there.
- **A worker that dies** (killed, out of memory, its machine gone) is `Lost` with its task: what came after the last
  checkpoint. Another takes its place. The ends of races that it had told others stay known: training is the same
  again bit for bit, so they are still true. One that cannot even start is `Failed`: no other would.
- **Packs of one study share the end of its race** while they train: the sooner one hears of it, the less it trains in
  vain. What is stored does not depend on when.
- `stop` asks all packs to save and end, also those that are submitted afterwards. `close` ends everything at once, and
  may be called at any time, twice as well.

In this folder `local` has processes of this machine, `gang` gangs of such processes, each of which is one worker here,
`here` a thread of this process, `ray` actors of a cluster.
`tests/contracts` holds every executor to this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from batchlab.errors import BatchlabError
from batchlab.run.errand import Errand
from batchlab.run.pack import PackTask
from batchlab.run.shelf import Shelf
from batchlab.run.standing import Standing


@dataclass(frozen=True)
class TaskKey:
    """Which task an event is of: a pack of a study, or an errand about the study."""

    batch_size: int
    pack: str | None = None
    """Its name in the study; None of an errand."""


@dataclass(frozen=True)
class Progress:
    """How far a pack is, after an evaluation."""

    key: TaskKey
    standing: Standing


@dataclass(frozen=True)
class Saved:
    """A pack whose checkpoint was just stored."""

    key: TaskKey


@dataclass(frozen=True)
class Finished:
    """A task's result: a PackResult, or what an errand returned."""

    key: TaskKey
    result: Any


@dataclass(frozen=True)
class Stopped:
    """A task that was asked to stop; its checkpoint is stored."""

    key: TaskKey


@dataclass(frozen=True)
class Paused:
    """A pack that makes way for others; its checkpoint is stored."""

    key: TaskKey


@dataclass(frozen=True)
class Lost:
    """A task whose worker died."""

    key: TaskKey
    why: str
    """How it ended, such as `exit code -9: it was killed`."""

    ended_itself: bool = False
    """Whether that is the doing of the training code, so that no other setting of the run would help."""


@dataclass(frozen=True)
class Failed:
    """A task that raised: the error to raise in the parent."""

    key: TaskKey | None
    """None of a worker that had none yet, and could not even start."""

    error: BatchlabError


Task = PackTask | Errand
Event = Progress | Saved | Finished | Paused | Stopped | Lost | Failed
Passing = Progress | Saved
"""Events after which their task goes on."""


class Executor(Protocol):
    """Has tasks done: see the top of this file."""

    @property
    def num_workers(self) -> int:
        """How many workers there are, or will be once there is room for them."""
        ...

    @property
    def num_idle(self) -> int:
        """How many workers wait for a task."""
        ...

    def submit(self, key: TaskKey, task: Task, shelf: Shelf | None = None) -> None:
        """Give a task to an idle worker; a pack comes with the shelf on which its checkpoints are kept."""
        ...

    def events(self, timeout: float | None) -> Iterator[Event]:
        """Yield what has happened, waiting for up to `timeout` seconds; None waits for the first."""
        ...

    def stop(self) -> None:
        """Ask every pack to save and end."""
        ...

    def close(self) -> None:
        """End the workers at once; packs that still run lose what came after their last checkpoint."""
        ...
