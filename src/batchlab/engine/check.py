"""Whether a study asks for what its trainer can do: names, values, sizes. One sentence for each thing that is wrong."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from batchlab.core.goal import Goal
from batchlab.core.limits import MOST_EVALUATIONS
from batchlab.core.space import Range
from batchlab.core.study import Study
from batchlab.data.base import DatasetFacts
from batchlab.errors import SpecError, shown, spelled, unknown_name
from batchlab.models import registry as models
from batchlab.optim.registry import BOUNDS, optimizer_entry, schedule_entry


def check_network(study: Study, facts: DatasetFacts) -> None:
    """Check a study of a network: its model, metaparameters and sizes against the facts of the dataset."""
    models.check_model(study.workload.model)
    _check_fit(study, facts)
    _check_names(study, facts)
    check_values(study)
    _check_batch_size(study, facts)
    check_grid(study)
    measured = [f"{split}/{metric}" for split in study.evaluation.splits for metric in facts.metrics]
    check_goal(study.goal, measured, [f"{split}/{metric}" for split in facts.splits for metric in facts.metrics])


def check_goal(goal: Goal, measured: Sequence[str], measurable: Collection[str] = ()) -> None:
    """Check that the goal's metric is among those that are measured; of `measurable` ones the way to it is told."""
    if goal.metric in measured:
        return
    if goal.metric in measurable:
        split = goal.metric.partition("/")[0]
        raise SpecError(f'goal: "{goal.metric}" is not measured: add "{split}" to `sweep.evaluate.splits`.')
    raise SpecError(f"goal: {unknown_name('metric', goal.metric, measured)}")


def check_grid(study: Study) -> None:
    """Check that the evaluated steps of a trial come to an end."""
    number = study.evaluation.count(study.max_steps)
    if number > MOST_EVALUATIONS:
        raise SpecError(
            f"sweep.evaluate: about {number:,.0f} evaluations of each trial of {study.max_steps:,} steps are more than"
            f" {MOST_EVALUATIONS:,}; give a larger `growth` or `every`."
        )


def check_values(study: Study) -> None:
    """Check every value that a metaparameter may take against those that it admits."""
    for name, value in study.workload.fixed_metaparameters.items():
        _check_value(name, value)
    for name in study.search_space.names:
        dimension = study.search_space[name]
        for value in (dimension.min, dimension.max) if isinstance(dimension, Range) else dimension.values:
            _check_value(name, value)


def _check_value(name: str, value: float) -> None:
    if not is_number(value) or not BOUNDS[name].admits(value):
        raise SpecError(f"{name} = {shown(spelled(value))} must be {BOUNDS[name]}.")


def is_number(value: object) -> bool:
    """Return whether a value from outside is a number that a float can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        return False


def _check_fit(study: Study, facts: DatasetFacts) -> None:
    """Check that the model reads what the dataset holds, and trains in such packs and pieces as are asked for."""
    model, pack_size = study.workload.model, study.engine.get("pack_size", "auto")
    reads_tokens = models.is_language_model(model)
    if reads_tokens != (facts.task == "language_model"):
        reads, holds = ("tokens", "images") if reads_tokens else ("images", "tokens")
        raise SpecError(f"model {model.name} reads {reads}, but dataset {facts.name} holds {holds}: change one.")
    if pack_size != "auto" and pack_size > 1 and not models.is_packable(model):
        raise SpecError(f'engine.pack_size = {pack_size}: trials of {model.name} train one by one; use 1 or "auto".')
    piece, ghost = study.engine.get("microbatch_size"), models.ghost_size(model)
    if isinstance(piece, int) and piece % ghost != 0 and piece < study.batch_size:
        raise SpecError(
            f"engine.microbatch_size = {piece}: {model.name} normalises {ghost} examples together;"
            f' give a multiple of {ghost}, or "auto".'
        )


def _check_names(study: Study, facts: DatasetFacts) -> None:
    """Check that every metaparameter that is needed has a value, and no other has."""
    workload, given = study.workload, [*study.workload.fixed_metaparameters, *study.search_space.names]
    needed = [
        *optimizer_entry(workload.optimizer.name).metaparameters,
        *schedule_entry(workload.schedule.name).metaparameters,
    ]
    possible = [*needed, *(["label_smoothing"] if facts.task == "classification" else [])]
    for name in given:
        if name not in possible:
            raise SpecError(unknown_name(f"metaparameter of {workload.name}", name, possible))
    for name in needed:
        if name not in given:
            raise SpecError(f"metaparameter `{name}` of {workload.name} has no value: add it to [search_space].")


def _check_batch_size(study: Study, facts: DatasetFacts) -> None:
    """Check that the batch is not larger than the training set, where its size is known."""
    if facts.train_examples is not None and study.batch_size > facts.train_examples:
        raise SpecError(
            f"batch size {study.batch_size} is larger than the training set of {facts.name} "
            f"({facts.train_examples} examples); that is the largest possible batch."
        )
