"""Optimizers and schedules by name, with their metaparameters and options; code is imported when it is used.

Metaparameters are numbers that a search may range over. Options are words that choose between codes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from batchlab.core.entry import AnyEntry, Entry, Option, add_entry, by_name, find_entry, one_of
from batchlab.core.sweep import Sweep
from batchlab.core.workload import Named, Workload
from batchlab.errors import InputError
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
    import torch

    from batchlab.optim.base import Optimizer
    from batchlab.optim.layout import Layout
    from batchlab.optim.schedules import Schedule


@dataclass(frozen=True)
class OptimizerEntry(Entry):
    """An optimizer, or with `ScheduleEntry` a schedule: its code returns one, and these are the numbers that it reads.

    The code of an optimizer is called with a `Layout`, and with its options by name; that of a schedule with those.
    """

    metaparameters: tuple[Metaparameter, ...] = ()

    def defaults(self, given: Container[str]) -> dict[str, float]:
        """Return the values of metaparameters that are not given and need not be."""
        missing = (each for each in self.metaparameters if each.name not in given)
        return {each.name: each.default for each in missing if each.default is not None}


class ScheduleEntry(OptimizerEntry):
    """A schedule. `{of}` in the names of its metaparameters stands for what it schedules, by its option `of`."""

    def naming(self, of: str) -> ScheduleEntry:
        """Return the entry as it is where `of` is scheduled."""
        named = (replace(each, name=each.name.replace("{of}", of)) for each in self.metaparameters)
        return replace(self, metaparameters=tuple(named))


_OF = {"of": Option("the name of a metaparameter, or batch_size", lambda value: isinstance(value, str))}
_TORCH_MODULE = "batchlab.optim.from_torch"
_ADAM = (LEARNING_RATE, BETA_1, BETA_2, EPSILON, WEIGHT_DECAY)

OPTIMIZERS = by_name(
    OptimizerEntry("sgd", "batchlab.optim.sgd", "sgd", (LEARNING_RATE,)),
    OptimizerEntry("momentum", "batchlab.optim.momentum", "momentum", (LEARNING_RATE, MOMENTUM)),
    OptimizerEntry("nesterov_momentum", "batchlab.optim.momentum", "nesterov_momentum", (LEARNING_RATE, MOMENTUM)),
    OptimizerEntry("adam", "batchlab.optim.adam", "adam", _ADAM),
    OptimizerEntry("adamw", "batchlab.optim.adam", "adamw", _ADAM),
)

SCHEDULES = by_name(
    ScheduleEntry("constant", "batchlab.optim.schedules", "constant"),
    ScheduleEntry(
        "linear_decay",
        "batchlab.optim.schedules",
        "linear_decay",
        (
            Metaparameter("end_{of}_factor", Bounds(0)),
            Metaparameter("{of}_decay_steps", POSITIVE),
        ),
        options=_OF,
    ),
    ScheduleEntry(
        "staircase",
        "batchlab.optim.schedules",
        "staircase",
        (
            Metaparameter("stage_factor", POSITIVE),
            Metaparameter("stage_length", POSITIVE),
            Metaparameter("stage_limit", POSITIVE),
        ),
        options={**_OF, "unit": one_of("examples", "epochs", "steps")},
    ),
)


def optimizer_entry(optimizer: Named) -> OptimizerEntry:
    """Return the facts about an optimizer; SpecError where it, or one of its options, is unknown."""
    if optimizer.name.startswith("torch.optim."):
        from batchlab.optim.from_torch import torch_class

        return _torch_entry(optimizer.name, torch_class(optimizer.name))
    return _checked("optimizer", optimizer, OPTIMIZERS)


def schedule_entry(schedule: Named) -> ScheduleEntry:
    """Return the facts about a schedule; SpecError where it, or one of its options, is unknown."""
    entry = _checked("schedule", schedule, SCHEDULES)
    return entry.naming(str(entry.given(schedule).get("of", LEARNING_RATE.name)))


def load_optimizer(optimizer: Named, layout: Layout) -> Optimizer:
    """Return the optimizer for parameters that lie so."""
    entry = optimizer_entry(optimizer)
    made: Optimizer = entry.make(entry.given(optimizer), layout)
    return made


def load_schedule(schedule: Named) -> Schedule:
    """Return the schedule."""
    entry = schedule_entry(schedule)
    made: Schedule = entry.make(entry.given(schedule))
    return made


def register(entry: OptimizerEntry) -> None:
    """Add an optimizer or a schedule from outside; InputError where its name is taken."""
    if isinstance(entry, ScheduleEntry):
        add_entry("schedule", entry, SCHEDULES)
    else:
        add_entry("optimizer", entry, OPTIMIZERS)


def register_class(kind: type[torch.optim.Optimizer]) -> str:
    """Add a class of the user's own in PyTorch's form, in the place of one of that name; return its name."""
    entry, known = _torch_entry(kind.__name__, kind), OPTIMIZERS.get(kind.__name__)
    if known is not None and known.module != entry.module:
        raise InputError(f"There is already an optimizer {kind.__name__}: give your class another name.")
    OPTIMIZERS[entry.name] = entry
    return entry.name


def _torch_entry(name: str, kind: type[torch.optim.Optimizer]) -> OptimizerEntry:
    from batchlab.optim.from_torch import torch_metaparameters

    numbers = torch_metaparameters(kind)
    return OptimizerEntry(name, _TORCH_MODULE, "torch_optimizer", numbers, settled={"kind": kind})


def workload_metaparameters(workload: Workload) -> dict[str, Metaparameter]:
    """Return the metaparameters of a workload's optimizer and schedule, by name."""
    entries = optimizer_entry(workload.optimizer), schedule_entry(workload.schedule)
    return {each.name: each for entry in entries for each in entry.metaparameters}


def known_metaparameters(workload: Workload) -> set[str]:
    """Return the metaparameters of a workload whose meaning is known here, and not to code from outside alone.

    Those are all of our optimizers and schedules; of an optimizer in PyTorch's form, those that go by a name of ours.
    """
    return _known_names(optimizer_entry(workload.optimizer)) | _known_names(schedule_entry(workload.schedule))


def _known_names(entry: OptimizerEntry) -> set[str]:
    names = {each.name for each in entry.metaparameters}
    if entry.module == _TORCH_MODULE:
        return names & {each.name for each in (*_ADAM, MOMENTUM)}
    return names if entry.module.startswith("batchlab.") else set()


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


def _checked(kind: str, named: Named, entries: Mapping[str, AnyEntry]) -> AnyEntry:
    entry = find_entry(kind, named.name, entries, lambda: list(entries))
    entry.check(kind, entry.given(named))
    return entry
