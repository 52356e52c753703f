"""Optimizers and schedules by name, with their metaparameters; the code behind a name is imported when used."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from batchlab.errors import SpecError, unknown_name

if TYPE_CHECKING:
    from batchlab.optim.base import Optimizer
    from batchlab.optim.schedules import Schedule


@dataclass(frozen=True)
class Entry:
    """Where a name's code lives, and which metaparameters it reads."""

    module: str
    attribute: str
    metaparameters: tuple[str, ...]


OPTIMIZERS = {
    "sgd": Entry("batchlab.optim.sgd", "sgd", ("learning_rate",)),
    "momentum": Entry("batchlab.optim.momentum", "momentum", ("learning_rate", "momentum")),
    "nesterov_momentum": Entry("batchlab.optim.momentum", "nesterov_momentum", ("learning_rate", "momentum")),
}

SCHEDULES = {
    "constant": Entry("batchlab.optim.schedules", "constant", ()),
    "linear_decay": Entry(
        "batchlab.optim.schedules", "linear_decay", ("end_learning_rate_factor", "learning_rate_decay_steps")
    ),
}


@dataclass(frozen=True)
class Bounds:
    """The values a metaparameter may take: low <= value < high (or > low where `is_open_below`)."""

    low: float
    high: float = float("inf")
    is_open_below: bool = False

    def admits(self, value: float) -> bool:
        """Return whether `value` is allowed."""
        return self.low <= value < self.high and not (self.is_open_below and value == self.low)

    def __str__(self) -> str:
        upper = "" if self.high == float("inf") else f" and below {self.high:g}"
        return f"{'above' if self.is_open_below else 'at least'} {self.low:g}{upper}"


BOUNDS = {
    "learning_rate": Bounds(0, is_open_below=True),
    "momentum": Bounds(0, 1),
    "end_learning_rate_factor": Bounds(0),
    "learning_rate_decay_steps": Bounds(0, is_open_below=True),
    "label_smoothing": Bounds(0, 1),
    "ema_decay": Bounds(0, 1),
    "preconditioner_power": Bounds(0),
}


def optimizer_entry(name: str) -> Entry:
    """Return the facts about an optimizer; SpecError names the known ones if there is none."""
    if name not in OPTIMIZERS:
        raise SpecError(unknown_name("optimizer", name, OPTIMIZERS))
    return OPTIMIZERS[name]


def schedule_entry(name: str) -> Entry:
    """Return the facts about a schedule; SpecError names the known ones if there is none."""
    if name not in SCHEDULES:
        raise SpecError(unknown_name("schedule", name, SCHEDULES))
    return SCHEDULES[name]


def load_optimizer(name: str) -> Optimizer:
    """Return the optimizer's pair of functions."""
    entry = optimizer_entry(name)
    return getattr(import_module(entry.module), entry.attribute)  # type: ignore[no-any-return]


def load_schedule(name: str) -> Schedule:
    """Return the schedule's function."""
    entry = schedule_entry(name)
    return getattr(import_module(entry.module), entry.attribute)  # type: ignore[no-any-return]
