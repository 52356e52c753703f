"""What a run and its workers say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from batchlab.errors import BatchlabError
from batchlab.run.standing import Standing


@dataclass(frozen=True)
class Progress:
    """How far a pack is, after an evaluation."""

    key: Any
    standing: Standing


@dataclass(frozen=True)
class Finished:
    """A task's result: a PackResult, or what an errand returned."""

    key: Any
    result: Any


@dataclass(frozen=True)
class Stopped:
    """A task that a stop signal ended; its checkpoint is written."""

    key: Any


@dataclass(frozen=True)
class Paused:
    """A pack that makes way for others; its checkpoint is written."""

    key: Any


@dataclass(frozen=True)
class Failed:
    """A task that raised: the error to raise in the parent."""

    key: Any
    error: BatchlabError


Event = Progress | Finished | Paused | Stopped | Failed
