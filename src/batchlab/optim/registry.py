"""Optimizers and schedules by name, with their metaparameters and options; code is imported when it is used.

Metaparameters are numbers that a search may range over. Options are words that choose between codes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from batchlab.core.sweep import Sweep
from batchlab.core.workload import Named, Workload
from batchlab.errors import SpecError, shown, unknown_name
from batchlab.optim.metaparameter import (
    BETA_1,
    BETA_2,
    EPSILON,
    LEARNING_RATE,
    MOMENTUM,
    POSITIVE,
    WEIGHT_DECAY,
    Bounds,
    Metaparameter,
)

if TYPE_CHECKING:
    from batchlab.optim.base import Optimizer
    from batchlab.optim.layout import Layout
    from batchlab.optim.schedules import Schedule


@dataclass(frozen=True)
class Entry:
    """Where a name's code lives, which metaparameters it reads, and which words it takes as options."""

    module: str
    attribute: str
    metaparameters: tuple[Metaparameter, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The words that each option may be; the first is meant where a spec says nothing."""

    settled: Mapping[str, str] = field(default_factory=dict)
    """What its code is given beside the options, whatever a spec says."""

    def choices(self, named: Named) -> dict[str, str]:
        """Return the options that a spec gives; what else it gives are metaparameters."""
        return {name: value for name, value in named.options.items() if name in self.options}

    def defaults(self, given: Container[str]) -> dict[str, float]:
        """Return the values of metaparameters that are not given and need not be."""
        missing = (each for each in self.metaparameters if each.name not in given)
        return {each.name: each.default for each in missing if each.default is not None}

    def make(self, named: Named, *parts: object) -> Any:
        """Call the code with the options that a spec gives."""
        code: Callable[..., Any] = getattr(import_module(self.module), self.attribute)
        return code(*parts, **self.settled, **self.choices(named))


_ADAM = (LEARNING_RATE, BETA_1, BETA_2, EPSILON, WEIGHT_DECAY)

OPTIMIZERS = {
    "sgd": Entry("batchlab.optim.sgd", "sgd", (LEARNING_RATE,)),
    "momentum": Entry("batchlab.optim.momentum", "momentum", (LEARNING_RATE, MOMENTUM)),
    "nesterov_momentum": Entry("batchlab.optim.momentum", "nesterov_momentum", (LEARNING_RATE, MOMENTUM)),
    "adam": Entry("batchlab.optim.adam", "adam", _ADAM),
    "adamw": Entry("batchlab.optim.adam", "adamw", _ADAM),
}

SCHEDULES = {
    "constant": Entry("batchlab.optim.schedules", "constant"),
    "linear_decay": Entry(
        "batchlab.optim.schedules",
        "linear_decay",
        (
            Metaparameter("end_learning_rate_factor", Bounds(0)),
            Metaparameter("learning_rate_decay_steps", POSITIVE),
        ),
    ),
}


def optimizer_entry(optimizer: Named) -> Entry:
    """Return the facts about an optimizer; SpecError where it, or one of its options, is unknown."""
    if optimizer.name.startswith("torch.optim."):
        from batchlab.optim.from_torch import torch_metaparameters

        metaparameters = torch_metaparameters(optimizer.name)
        return Entry("batchlab.optim.from_torch", "torch_optimizer", metaparameters, settled={"name": optimizer.name})
    return _entry("optimizer", optimizer, OPTIMIZERS)


def schedule_entry(schedule: Named) -> Entry:
    """Return the facts about a schedule; SpecError where it, or one of its options, is unknown."""
    return _entry("schedule", schedule, SCHEDULES)


def load_optimizer(optimizer: Named, layout: Layout) -> Optimizer:
    """Return the optimizer for parameters that lie so."""
    made: Optimizer = optimizer_entry(optimizer).make(optimizer, layout)
    return made


def load_schedule(schedule: Named) -> Schedule:
    """Return the schedule."""
    made: Schedule = schedule_entry(schedule).make(schedule)
    return made


def workload_metaparameters(workload: Workload) -> dict[str, Metaparameter]:
    """Return the metaparameters of a workload's optimizer and schedule, by name."""
    entries = optimizer_entry(workload.optimizer), schedule_entry(workload.schedule)
    return {each.name: each for entry in entries for each in entry.metaparameters}


def given_metaparameters(workload: Workload) -> dict[str, Any]:
    """Return what a workload sets to one value, but for the options that choose code."""
    entries = optimizer_entry(workload.optimizer), schedule_entry(workload.schedule)
    options = {name for entry in entries for name in entry.options}
    return {name: value for name, value in workload.fixed_metaparameters.items() if name not in options}


def with_defaults(sweep: Sweep) -> Sweep:
    """Return a sweep in whose workload every metaparameter has a value that is neither fixed nor searched."""
    workload = sweep.workload
    if workload.is_own_loop:
        return sweep
    given = {*workload.fixed_metaparameters, *sweep.search_space.names}
    named = {"optimizer": workload.optimizer, "schedule": workload.schedule}
    entries = {"optimizer": optimizer_entry(workload.optimizer), "schedule": schedule_entry(workload.schedule)}
    completed = {
        kind: Named(**{**named[kind].options, **entries[kind].defaults(given), "name": named[kind].name})
        for kind in named
    }
    return sweep.model_copy(update={"workload": workload.model_copy(update=completed)})


def _entry(kind: str, named: Named, entries: Mapping[str, Entry]) -> Entry:
    if named.name not in entries:
        raise SpecError(unknown_name(kind, named.name, entries))
    entry = entries[named.name]
    for option, word in entry.choices(named).items():
        if word not in entry.options[option]:
            words = ", ".join(entry.options[option])
            raise SpecError(f"{option} = {shown(word)} of {kind} {named.name} must be one of {words}.")
    return entry
