"""What is handed to a worker process at its start and opened there, so that an error on the way can be reported."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from batchlab.engine.base import Trainer
from batchlab.errors import TrainerError
from batchlab.run.executors.noticeboard import Noticeboard

Content = tuple[Trainer, Noticeboard]


class Parcel:
    """A trainer and the noticeboard of a run on their way to a worker that is being started.

    Both may lie in shared memory, which can only be handed over then. The start of the process seals the parcel; its
    content is sent through a pipe once the process listens, because one that dies at its start would leave us writing
    for ever.
    """

    def __init__(self, content: Content | None = None) -> None:
        self._content, self._sealed = content, b""

    def take_sealed(self) -> bytes:
        """Return the content as it was sealed when the last process started."""
        sealed, self._sealed = self._sealed, b""
        return sealed

    def receive(self, sealed: bytes) -> None:
        """In the worker: take what was sent."""
        self._sealed = sealed

    @cached_property
    def content(self) -> Content:
        """The trainer and the noticeboard, made anew in the worker; TrainerError says where that fails."""
        try:
            content: Content = ForkingPickler.loads(self._sealed)
        except Exception as error:
            raise TrainerError(
                f"A worker process cannot make the trainer ({_told(error)}): define its class in a module file that "
                "workers can import, not in a notebook cell or at a prompt, and import it from there."
            ) from None
        return content

    def __reduce__(self) -> tuple[type[Parcel], tuple[()]]:
        try:
            self._sealed = bytes(ForkingPickler.dumps(self._content))
        except Exception as error:
            raise TrainerError(
                f"The trainer cannot be sent to worker processes ({_told(error)}): define its class at the top of a "
                "module, not inside a function, and keep lambdas, open files and locks out of it."
            ) from None
        return Parcel, ()


def _told(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class Descriptor:
    """An open file of this process that one which is being started inherits."""

    def __init__(self, number: int) -> None:
        self._number = number

    @property
    def path(self) -> str:
        """By which Linux lets this process open the file once more."""
        return f"/proc/self/fd/{self._number}"

    def become(self, number: int) -> None:
        """Take the place of another open file."""
        os.dup2(self._number, number)
        os.close(self._number)

    def __reduce__(self) -> tuple[Callable[[Any], Descriptor], tuple[Any]]:
        return _inherited, (DupFd(self._number),)


def _inherited(handle: Any) -> Descriptor:
    return Descriptor(handle.detach())
