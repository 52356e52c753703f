"""Whether a study asks for what its trainer can do: names, values, sizes. One sentence for each thing that is wrong."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from batchlab.core.clock import Clock, Clocks, Horizon, constant_examples
from batchlab.core.goal import Goal
from batchlab.core.limits import MOST_EVALUATIONS
from batchlab.core.space import Range, Values
from batchlab.core.study import Study
from batchlab.data.base import DatasetFacts
from batchlab.errors import SpecError, shown, spelled, unknown_name
from batchlab.models import registry as models
from batchlab.optim.batch_sizes import BatchSizes
from batchlab.optim.metaparameter import SHARE, Metaparameter
from batchlab.optim.registry import (
    given_metaparameters,
    load_schedule,
    optimizer_entry,
    schedule_entry,
    workload_metaparameters,
)
from batchlab.optim.unit_check import check_units

RANGES = {
    "classification_error": (0.0, 1.0),
    "average_precision": (0.0, 1.0),
    "cross_entropy_error": (0.0, math.inf),
    "risk": (0.0, math.inf),
}
"""What a metric of ours can be."""

LABEL_SMOOTHING = Metaparameter("label_smoothing", SHARE)
"""Of the loss, where each example has one class; may be left out."""


def check_training(study: Study, measured: Sequence[str], num_examples: int) -> None:
    """Check a study of a network that is not ours: its metaparameters, sizes and goal."""
    check_scheduled(study)
    check_units(study)
    _check_metaparameters(study)
    _check_batch_size(study, num_examples)
    check_schedule(study, num_examples)
    check_grid(study)
    check_goal(study.goal, measured)


def check_network(study: Study, facts: DatasetFacts) -> None:
    """Check a study of a network: its model, metaparameters and sizes against the facts of the dataset."""
    models.check_model(study.workload.model)
    _check_fit(study, facts)
    check_scheduled(study)
    _check_metaparameters(study, [LABEL_SMOOTHING] if facts.task == "classification" else [])
    _check_batch_size(study, facts.train_examples, f" of {facts.name}")
    if facts.train_examples is not None:
        check_schedule(study, facts.train_examples)
    check_grid(study)
    measured = [f"{split}/{metric}" for split in study.evaluation.splits for metric in facts.metrics]
    check_goal(study.goal, measured, [f"{split}/{metric}" for split in facts.splits for metric in facts.metrics])
    check_threshold(study.goal)


def check_goal(goal: Goal, measured: Sequence[str], measurable: Collection[str] = ()) -> None:
    """Check that the goal's metric is among those that are measured; of `measurable` ones the way to it is told."""
    if goal.metric in measured:
        return
    if goal.metric in measurable:
        split = goal.metric.partition("/")[0]
        raise SpecError(f'goal: "{goal.metric}" is not measured: add "{split}" to `sweep.evaluate.splits`.')
    raise SpecError(f"goal: {unknown_name('metric', goal.metric, measured)}")


def check_threshold(goal: Goal) -> None:
    """Check that some values of a metric of ours meet the goal, and others do not."""
    low, high = RANGES.get(goal.metric.partition("/")[2], (-math.inf, math.inf))
    met = [goal.is_met(low), goal.is_met(high)]
    if any(met) and not all(met):
        return
    what = "every value meets it" if all(met) else "no value meets it"
    within = f"from {low:g} to {high:g}" if math.isfinite(high) else f"at least {low:g}"
    raise SpecError(f"goal: {goal}: {what}, {goal.metric} is {within}.")


def check_grid(study: Study) -> None:
    """Check that the evaluated steps of a trial come to an end."""
    number = study.evaluation.count(study.max_steps)
    if number > MOST_EVALUATIONS:
        raise SpecError(
            f"sweep.evaluate: about {number:,.0f} evaluations of each trial of {study.max_steps:,} steps are more than"
            f" {MOST_EVALUATIONS:,}; give a larger `growth` or `every`."
        )


def check_scheduled(study: Study) -> None:
    """Check that a schedule changes something that there is; the names of its metaparameters may hang on that."""
    of, entry = study.workload.schedule.options.get("of"), optimizer_entry(study.workload.optimizer)
    known = ["batch_size", *(each.name for each in entry.metaparameters)]
    if isinstance(of, str) and of not in known:
        raise SpecError(f"workload.schedule.of: {unknown_name('metaparameter', of, known)}")


def check_schedule(study: Study, num_examples: int | None) -> None:
    """Check that a schedule leads to no batch size, and to no value of a metaparameter, that cannot be.

    It is asked for its first and its last update, at the ends of the ranges of its metaparameters.
    """
    workload, pack_size = study.workload, study.engine.get("pack_size", "auto")
    if not workload.schedules_batch_size:
        _check_scheduled_values(study, num_examples)
        return
    if pack_size not in ("auto", 1):
        raise SpecError(
            f'engine.pack_size = {pack_size}: trials whose batch size is scheduled train one by one; use 1 or "auto".'
        )
    schedule, horizon = load_schedule(workload.schedule), Horizon(study.max_steps, study.batch_size, num_examples)
    last = _before_last_update(study, num_examples)
    for corner in _corners(study):
        sizes = BatchSizes(study, [corner], schedule, horizon)
        for clock in (Clock(), last):
            sizes.at(clock)


def _before_last_update(study: Study, num_examples: int | None) -> Clock:
    """Return the clock that the last update can find at the most, were all before it as large as the training set."""
    updates = study.max_steps - 1
    examples = constant_examples(updates, num_examples or study.batch_size)
    return Clock(updates, examples if study.max_examples is None else min(examples, study.max_examples - 1))


def knows_budget(study: Study) -> bool:
    """Return whether the schedule asks how many updates a trial has: with more of them it is another one."""
    is_asked = False

    class Watched(Horizon):
        def __getattribute__(self, name: str) -> object:
            nonlocal is_asked
            is_asked = is_asked or name == "max_steps"
            return super().__getattribute__(name)

    horizon = Watched(study.max_steps, study.batch_size, epoch_examples=study.batch_size)
    for _ in _scheduled_values(study, horizon, np.linspace(0, study.max_steps - 1, 5).astype(int)):
        pass
    return is_asked


def _check_scheduled_values(study: Study, num_examples: int | None) -> None:
    """Check what a schedule makes of a metaparameter; a decay may end at the lower bound itself."""
    known, horizon = workload_metaparameters(study.workload), Horizon(study.max_steps, study.batch_size, num_examples)
    for scheduled in _scheduled_values(study, horizon, np.array([0, study.max_steps - 1])):
        for name, found in scheduled.items():
            if name not in known:
                continue
            bounds = known[name].bounds
            wrong = [value for value in found.ravel().tolist() if not bounds.low <= value < bounds.high]
            if wrong:
                raise SpecError(f"workload.schedule leads to {name} = {wrong[-1]:g}, which must be {bounds}.")


def _scheduled_values(study: Study, horizon: Horizon, steps: np.ndarray) -> Iterator[Mapping[str, np.ndarray]]:
    """Yield what the schedule sets before these updates, at the ends of the ranges of its metaparameters."""
    known, schedule = workload_metaparameters(study.workload), load_schedule(study.workload.schedule)
    clocks = Clocks(steps, constant_examples(steps, study.batch_size))
    defaults = {name: each.default for name, each in known.items() if each.default is not None}
    for corner in _corners(study, str(study.workload.schedule.options.get("of"))):
        point = {**defaults, **corner, "batch_size": study.batch_size}
        yield schedule({name: np.array([value], dtype=float) for name, value in point.items()}, clocks, horizon)


def _corners(study: Study, also: str = "") -> Iterator[dict[str, float]]:
    """Yield points at which each metaparameter of the schedule, and one more, is at an end of its range.

    The others are anywhere.
    """
    space, scheduled = study.search_space, schedule_entry(study.workload.schedule)
    fixed = {**scheduled.defaults(()), **given_metaparameters(study.workload)}
    ends = {name: (min(values), max(values)) for name in space.names for values in [_values(space[name])]}
    varied = [name for name in (*(each.name for each in scheduled.metaparameters), also) if name in ends]
    for corner in product(*(ends[name] for name in varied)):
        yield {**fixed, **{name: low for name, (low, _) in ends.items()}, **dict(zip(varied, corner, strict=True))}


def _values(dimension: Range | Values) -> Sequence[float]:
    """Return what a metaparameter may be: all its values, or the ends of its range."""
    return dimension.ends if isinstance(dimension, Range) else dimension.values


def check_values(study: Study, known: Mapping[str, Metaparameter]) -> None:
    """Check every value that a metaparameter may take against those that it admits."""
    for name, value in _all_values(study):
        _check_value(known[name], value)


def _all_values(study: Study) -> Iterator[tuple[str, float]]:
    """Yield what a study gives its metaparameters, and the ends of what it searches."""
    yield from given_metaparameters(study.workload).items()
    for name in study.search_space.names:
        yield from ((name, value) for value in _values(study.search_space[name]))


def _check_value(metaparameter: Metaparameter, value: float) -> None:
    if not is_number(value) or not metaparameter.bounds.admits(value):
        raise SpecError(f"{metaparameter.name} = {shown(spelled(value))} must be {metaparameter.bounds}.")


def check_given(study: Study, needed: Iterable[Metaparameter]) -> None:
    """Check that every metaparameter without a default has a value."""
    workload, given = study.workload, {*study.workload.fixed_metaparameters, *study.search_space.names}
    for each in needed:
        if each.name not in given and each.default is None:
            raise SpecError(f"metaparameter `{each.name}` of {workload.name} has no value: add it to [search_space].")


def is_number(value: object) -> bool:
    """Return whether a value from outside is a number that a float can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _check_fit(study: Study, facts: DatasetFacts) -> None:
    """Check that the model reads what the dataset holds, and trains in such packs and microbatches as are asked for."""
    model, pack_size = study.workload.model, study.engine.get("pack_size", "auto")
    reads_tokens = models.is_language_model(model)
    if reads_tokens != (facts.task == "language_model"):
        reads, holds = ("tokens", "images") if reads_tokens else ("images", "tokens")
        raise SpecError(f"model {model.name} reads {reads}, but dataset {facts.name} holds {holds}: change one.")
    if pack_size != "auto" and pack_size > 1 and not models.is_packable(model):
        raise SpecError(f'engine.pack_size = {pack_size}: trials of {model.name} train one by one; use 1 or "auto".')
    size, ghost = study.engine.get("microbatch_size"), models.ghost_size(model)
    is_cut = study.workload.schedules_batch_size or (isinstance(size, int) and size < study.batch_size)
    if isinstance(size, int) and size % ghost != 0 and is_cut:
        raise SpecError(
            f"engine.microbatch_size = {size}: {model.name} normalises {ghost} examples together;"
            f' give a multiple of {ghost}, or "auto".'
        )


def _check_metaparameters(study: Study, optional: Iterable[Metaparameter] = ()) -> None:
    """Check that all that the optimizer and the schedule need have values, and no others but optional ones."""
    needed = workload_metaparameters(study.workload)
    possible = {**needed, **{each.name: each for each in optional}}
    for name in (*given_metaparameters(study.workload), *study.search_space.names):
        if name not in possible:
            raise SpecError(unknown_name(f"metaparameter of {study.workload.name}", name, possible))
    check_given(study, needed.values())
    check_values(study, possible)
    for name, value in _all_values(study):
        rounded, bounds = ctypes.c_float(value).value, possible[name].bounds
        if not bounds.admits(rounded):
            raise SpecError(f"{name} = {value!r} becomes {rounded:g} in float32, and must be {bounds}.")


def _check_batch_size(study: Study, num_examples: int | None, of: str = "") -> None:
    """Check that the batch is not larger than the training set, where its size is known."""
    if num_examples is not None and study.batch_size > num_examples:
        raise SpecError(
            f"batch size {study.batch_size} is larger than the training set{of} "
            f"({num_examples} examples); that is the largest possible batch."
        )
