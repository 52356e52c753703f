"""Sweep: one spec file. A workload, its batch sizes, search space, budget and goals."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from batchlab.core.clock import constant_steps
from batchlab.core.confirmation import Confirm
from batchlab.core.evaluation import Evaluation
from batchlab.core.goal import Goal
from batchlab.core.limits import (
    MOST_BATCH_SIZE,
    MOST_BATCH_SIZES,
    MOST_EXAMPLES,
    MOST_GROWTH,
    MOST_POINTS,
    MOST_SEED,
    MOST_STEPS,
    MOST_TRIALS,
    MOST_WORKERS,
)
from batchlab.core.space import SearchSpace
from batchlab.core.study import Study
from batchlab.core.units import DECAY
from batchlab.core.value import Items, Value, doubled
from batchlab.core.workload import AnyWorkload
from batchlab.errors import shown

ATTEMPTS_PER_TRIAL = 5
"""Points drawn for each trial asked for: the paper attempted 500 to complete 100."""


DEFAULT_EVALUATION = Evaluation(growth=1.03)
ANY_STEP = Evaluation(every=1)
"""Of a loop of the user's own, which may report at every step and does at those that it likes."""


class SearchPlan(Value):
    """The table `[sweep]`: how each batch size is searched."""

    written: ClassVar[str] = "a table, such as {batch_sizes = [16, 64], trials = 8, max_steps = 500, goal = ...}"

    batch_sizes: Annotated[
        Items[Annotated[int, Field(ge=1, le=MOST_BATCH_SIZE)]], Field(min_length=1, max_length=MOST_BATCH_SIZES)
    ]
    """Examples per update, over all workers."""

    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS)]
    """Trials that must end without diverging, for each batch size."""

    max_steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    """Updates after which a trial ends."""

    max_examples: Annotated[int, Field(ge=1, le=MOST_EXAMPLES)] | None = None
    """Training examples after which a trial ends, repeats counted. The first limit reached ends it."""

    goal: Annotated[
        Items[Goal],
        Field(min_length=1),
        # A lone number is told to be no goal, rather than no list.
        BeforeValidator(lambda goal: goal if isinstance(goal, list | tuple | dict) else [goal]),
    ]
    """One goal, or a list of ever harder ones on one metric: the race is for the hardest."""

    protocol: Literal["race", "full"] = "race"
    race_factor: Annotated[float, Field(ge=1, le=MOST_GROWTH)] = 1.5
    """In a race the other trials train on to this multiple of the winner's steps."""

    max_attempts: Annotated[int, Field(ge=1, le=MOST_POINTS)] | None = None
    """Points tried at the most, diverged ones included; 5 for each trial where not set."""

    sampler: Literal["halton", "sobol", "random", "grid"] = "halton"
    sampler_version: Literal[1, 2, 3] = 3
    """The rule by which the sampler draws; 1 and 2 are those of older labs, see `search.samplers`."""

    evaluate: Evaluation = DEFAULT_EVALUATION
    confirm: Confirm | None = None
    """Train the best points of each batch size again, with fresh seeds; None trains nothing again."""

    @field_validator("batch_sizes")
    @classmethod
    def _distinct(cls, batch_sizes: tuple[int, ...]) -> tuple[int, ...]:
        repeated = doubled(batch_sizes)
        if repeated:
            raise ValueError(f"batch size {min(repeated)} is listed twice")
        return tuple(sorted(batch_sizes))

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_steps is None and self.max_examples is None:
            raise ValueError("a trial needs an end: give `max_steps`, `max_examples` or both")
        if self.max_examples is not None and self.max_examples < max(self.batch_sizes):
            raise ValueError(
                f"max_examples = {self.max_examples} ends before the first update at batch size {max(self.batch_sizes)}"
            )
        if self.max_attempts is not None and self.max_attempts < self.trials:
            raise ValueError(f"max_attempts = {self.max_attempts} cannot complete trials = {self.trials}")
        hardest = self.hardest_goal
        for goal in self.goal:
            if goal != hardest and not hardest.is_harder_than(goal):
                raise ValueError(f'goals "{goal}" and "{hardest}" cannot be ordered; use one metric and one direction')
        return self

    @property
    def hardest_goal(self) -> Goal:
        """The goal that implies all others."""
        hardest = self.goal[0]
        for goal in self.goal[1:]:
            if goal.is_harder_than(hardest):
                hardest = goal
        return hardest

    @property
    def attempts(self) -> int:
        """The stated cap on points tried for one batch size."""
        return self.max_attempts or ATTEMPTS_PER_TRIAL * self.trials


CHECKPOINT_SECONDS = 20.0
"""Between two checkpoints of a pack, where a spec does not say."""

WORKER_TIMEOUT_SECONDS = 600.0
"""How long a worker of several that train one trial may stall, where a spec does not say."""

COSTS_ONLY = frozenset({"keep_states", "checkpoint_seconds", "workers_per_trial", "worker_timeout_seconds"})
"""What of `[engine]` decides what a run costs, and nothing of its results but rounding: a stored sweep may be run with
another."""


class Engine(Value):
    """The table `[engine]`: how trials are computed. Results agree to rounding whatever is chosen."""

    written: ClassVar[str] = 'a table, such as {device = "cpu"}'

    device: str = "auto"
    """`auto` takes CUDA where there is one; or a name that PyTorch knows: `cpu`, `cuda:1`."""

    precision: Literal["float32", "bfloat16", "float64"] = "float32"
    """`bfloat16` runs the matrix products in it; parameters and updates stay float32. `float64` computes all
    in double precision: slow, for comparisons."""

    microbatch_size: Annotated[
        Annotated[int, Field(ge=1, le=MOST_BATCH_SIZE)] | None,
        BeforeValidator(lambda size: None if size == "auto" else size),
    ] = None
    """Examples of a batch computed at once; the gradient is that of the whole batch. `auto`, the default, takes as many
    as fit."""

    pack_size: Annotated[int, Field(ge=1, le=MOST_TRIALS)] | Literal["auto"] = "auto"
    """Trials trained together in one program; `auto` measures a few sizes and takes the fastest."""

    cpus_per_trial: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Threads of each trial of a loop of one's own; 1 where not set."""

    gpus_per_trial: Annotated[int, Field(ge=0, le=1000)] | None = None
    """GPUs that each trial of a loop of one's own sees; all of them where not set."""

    workers_per_trial: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 1
    """Processes that train one trial together, each a share of every batch."""

    worker_timeout_seconds: Annotated[float, Field(ge=1, le=86_400)] = WORKER_TIMEOUT_SECONDS
    """How long one of them may stall before it is given up, and the trial goes on from its last checkpoint."""

    keep_states: bool = False
    """Keep the last state of every pack, so that a study that grows need not train its trials from the start."""

    checkpoint_seconds: Annotated[float, Field(ge=0.01, le=86_400)] = CHECKPOINT_SECONDS
    """How often a pack in training is saved, at the most: a worker that dies costs no more time than that."""


class Changes(Value):
    """A table `[at.BATCH_SIZE]`: what is different at one batch size."""

    written: ClassVar[str] = "a table, such as {max_steps = 500}"

    max_steps: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    max_examples: Annotated[int, Field(ge=1, le=MOST_EXAMPLES)] | None = None
    evaluate: Evaluation | None = None
    search_space: SearchSpace = SearchSpace({})
    """Ranges that take the place of those of the same name."""


def _written_plainly(key: Any) -> Any:
    """Return the batch size that a key of `[at.BATCH_SIZE]` writes; none can be written in two ways."""
    if not isinstance(key, str):
        return key
    if not re.fullmatch("[1-9][0-9]{0,18}", key):
        raise ValueError(f'"{shown(key)}" is no batch size: write it with digits alone, as in `sweep.batch_sizes`')
    return int(key)


class Sweep(Value):
    """Everything that decides what is trained and stored; the same sweep gives the same results."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] = 0
    workload: AnyWorkload
    search: Annotated[SearchPlan, Field(alias="sweep")]
    search_space: SearchSpace
    engine: Engine = Engine()
    at: dict[Annotated[int, BeforeValidator(_written_plainly)], Changes] | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_loop(cls, data: Any) -> Any:
        """Let a loop of the user's own go by the name of the sweep."""
        workload = data.get("workload") if isinstance(data, dict) else None
        if isinstance(workload, dict) and {"command", "loop"} & workload.keys() and "name" in data:
            return {**data, "workload": {"alias": data["name"], **workload}}
        return data

    @model_validator(mode="after")
    def _check(self) -> Self:
        for batch_size, changes in (self.at or {}).items():
            self._check_changes(batch_size, changes)
        self._check_loop()
        if self.engine.workers_per_trial > 1 and self.workload.is_closed_form:
            raise ValueError(
                f"`engine.workers_per_trial` = {self.engine.workers_per_trial}: {self.workload.name} is computed by "
                "formulas, which one worker has; leave it out"
            )
        self._check_units("search_space", self.search_space)
        for batch_size, changes in (self.at or {}).items():
            self._check_units(f"at.{batch_size}.search_space", changes.search_space)
        twice = set(self.workload.fixed_metaparameters) & set(self.search_space.names)
        if twice:
            raise ValueError(f"`{shown(min(twice))}` is both fixed in the workload and in the search space; drop one")
        return self

    def _check_units(self, place: str, space: SearchSpace) -> None:
        """Raise ValueError for ranges that cannot be read at a batch size."""
        for name, each in space.root.items():
            if getattr(each, "batch_size", None) is not None:
                raise ValueError(f"`{place}.{shown(name)}.batch_size` is that of each study; leave it out")
            if getattr(each, "unit", None) == DECAY and "learning_rate" not in self.search_space.names:
                raise ValueError(f"`{place}.{shown(name)}.unit` = {DECAY} needs a learning_rate in [search_space]")

    def _check_loop(self) -> None:
        """Raise ValueError for what only a loop of one's own can be asked, or cannot."""
        if not self.workload.is_own_loop:
            for name in ("cpus_per_trial", "gpus_per_trial"):
                if getattr(self.engine, name) is not None:
                    raise ValueError(f"`engine.{name}` is for a command or a loop of your own; leave it out")
            return
        for name in ("device", "precision", "microbatch_size", "pack_size", *sorted(COSTS_ONLY)):
            if getattr(self.engine, name) != Engine.model_fields[name].default:
                raise ValueError(
                    f"`engine.{name}` is not for a loop of your own, which trains as it likes; leave it out"
                )
        evaluations = [self.search.evaluate, *(each.evaluate for each in (self.at or {}).values())]
        if any(each not in (None, DEFAULT_EVALUATION) for each in evaluations):
            raise ValueError("`sweep.evaluate`: a loop of your own evaluates when it likes; leave it out")

    def _check_changes(self, batch_size: int, changes: Changes) -> None:
        if batch_size not in self.search.batch_sizes:
            raise ValueError(f"`at.{batch_size}`: {batch_size} is not among `sweep.batch_sizes`")
        unknown = set(changes.search_space.names) - set(self.search_space.names)
        if unknown:
            name = shown(min(unknown))
            raise ValueError(f"`at.{batch_size}.search_space`: `{name}` is not in [search_space]; add it there")
        if changes.max_examples is not None and changes.max_examples < batch_size:
            raise ValueError(f"`at.{batch_size}`: max_examples = {changes.max_examples} ends before the first update")

    def studies(self) -> list[Study]:
        """Return one study for each batch size, in ascending order."""
        return [self.study(batch_size) for batch_size in self.search.batch_sizes]

    def study(self, batch_size: int) -> Study:
        """Return the study of one batch size."""
        plan, changes = self.search, (self.at or {}).get(batch_size, Changes())
        max_examples = changes.max_examples or plan.max_examples
        max_steps = changes.max_steps or plan.max_steps
        is_scheduled = self.workload.schedules_batch_size  # then the clock of a trial tells when its examples are used
        implied = None if max_examples is None else constant_steps(max_examples, batch_size)
        limits = [max_steps] if is_scheduled and max_steps else [max_steps, implied]
        return Study(
            workload=self.workload,
            batch_size=batch_size,
            seed=self.seed,
            trials=plan.trials,
            attempts=plan.attempts,
            max_steps=min(limit for limit in limits if limit is not None),
            max_examples=max_examples if is_scheduled else None,
            goal=plan.hardest_goal,
            race_factor=plan.race_factor if plan.protocol == "race" else None,
            sampler=plan.sampler,
            sampler_version=plan.sampler_version,
            evaluation=ANY_STEP if self.workload.is_own_loop else changes.evaluate or plan.evaluate,
            search_space=SearchSpace({**self.search_space.root, **changes.search_space.root}).read_at(batch_size),
            engine={name: value for name, value in self.engine.plain().items() if name not in COSTS_ONLY},
            confirm=plan.confirm,
            confirm_within=plan.race_factor,
        )


def spec_key(name: str) -> str | None:
    """Return where in a spec a value of this name stands, or None where there is no such value.

    >>> spec_key("trials"), spec_key("pack_size"), spec_key("seed"), spec_key("colour")
    ('sweep.trials', 'engine.pack_size', 'seed', None)
    """
    tables = {"sweep.": SearchPlan.model_fields, "engine.": Engine.model_fields, "": ("name", "seed")}
    return next((f"{table}{name}" for table, names in tables.items() if name in names), None)


def differences(old: dict[str, Any], new: dict[str, Any], place: str = "") -> list[str]:
    """Return one line for each value that differs between two resolved specs.

    >>> differences({"sweep": {"trials": 32}}, {"sweep": {"trials": 8}})
    ['sweep.trials: 32 -> 8']
    """
    lines = []
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            lines += differences(before, after, f"{place}{key}.")
        elif before != after:
            was, becomes = ("(not set)" if value is None else shown(value) for value in (before, after))
            lines.append(f"{place}{shown(key)}: {was} -> {becomes}")
    return lines
