"""Whether a sweep names what there is and asks for what can be done: checked before anything is run."""

from __future__ import annotations

from batchlab.core.space import Range
from batchlab.core.sweep import Sweep
from batchlab.core.workload import Workload
from batchlab.data import registry as data
from batchlab.data.base import DatasetFacts
from batchlab.engine import quadratic
from batchlab.errors import SpecError, unknown_name
from batchlab.models import registry as models
from batchlab.models.registry import check_model, is_packable
from batchlab.optim.registry import BOUNDS, optimizer_entry, schedule_entry
from batchlab.search.samplers import draw_points


def measured_metrics(sweep: Sweep) -> list[str]:
    """Return every metric that the sweep's trials will measure."""
    facts = data.facts(sweep.workload.dataset)
    return [f"{split}/{metric}" for split in sweep.search.evaluate.splits for metric in facts.metrics]


def check_sweep(sweep: Sweep) -> None:
    """Raise SpecError where the sweep names something unknown or asks for the impossible."""
    facts = data.facts(sweep.workload.dataset)
    if quadratic.is_quadratic(sweep.workload):
        quadratic.check_workload(sweep.studies()[0])
    else:
        check_model(sweep.workload.model)
        _check_fit(sweep, facts)
        _check_names(sweep)
    _check_values(sweep)
    if sweep.search.sampler == "grid":
        for study in sweep.studies():
            draw_points(study)
    if facts.train_examples is not None:
        check_largest(sweep, facts.train_examples)
    for split in sweep.search.evaluate.splits:
        if split not in facts.splits:
            raise SpecError(unknown_name(f"split of {sweep.workload.dataset.name}", split, facts.splits))
    _check_goal(sweep, facts)


def _check_goal(sweep: Sweep, facts: DatasetFacts) -> None:
    """Check that the goal's metric is among those that are measured."""
    goal_metric, measured = sweep.search.hardest_goal.metric, measured_metrics(sweep)
    if goal_metric in measured:
        return
    split, _, metric = goal_metric.partition("/")
    if split in facts.splits and split not in sweep.search.evaluate.splits and metric in facts.metrics:
        raise SpecError(f'goal: "{goal_metric}" is not measured: add "{split}" to `sweep.evaluate.splits`.')
    raise SpecError(f"goal: {unknown_name('metric', goal_metric, measured)}")


def check_largest(sweep: Sweep, train_examples: int) -> None:
    """Check that no batch is larger than the training set: by its facts, and once it is read, by what is there."""
    largest = max(sweep.search.batch_sizes)
    if largest > train_examples:
        raise SpecError(
            f"batch size {largest} is larger than the training set of {sweep.workload.dataset.name} "
            f"({train_examples} examples); that is the largest possible batch."
        )


def _check_fit(sweep: Sweep, facts: DatasetFacts) -> None:
    """Check that the model reads what the dataset holds, and trains in such packs and pieces as are asked for."""
    model, pack_size = sweep.workload.model, sweep.engine.pack_size
    reads_tokens = models.is_language_model(model)
    if reads_tokens != (facts.task == "language_model"):
        reads, holds = ("tokens", "images") if reads_tokens else ("images", "tokens")
        raise SpecError(f"model {model.name} reads {reads}, but dataset {facts.name} holds {holds}: change one.")
    if pack_size != "auto" and pack_size > 1 and not is_packable(model):
        raise SpecError(f'engine.pack_size = {pack_size}: trials of {model.name} train one by one; use 1 or "auto".')
    piece, ghost = sweep.engine.microbatch_size, models.ghost_size(model)
    if isinstance(piece, int) and piece % ghost != 0 and piece < max(sweep.search.batch_sizes):
        raise SpecError(
            f"engine.microbatch_size = {piece}: {model.name} normalises {ghost} examples together;"
            f' give a multiple of {ghost}, or "auto".'
        )


def _check_names(sweep: Sweep) -> None:
    """Check that every metaparameter that is needed has a value, and no other has."""
    workload, given = sweep.workload, [*sweep.workload.fixed_metaparameters, *sweep.search_space.names]
    needed = [
        *optimizer_entry(workload.optimizer.name).metaparameters,
        *schedule_entry(workload.schedule.name).metaparameters,
    ]
    possible = [*needed, *_optional_metaparameters(workload)]
    for name in given:
        if name not in possible:
            raise SpecError(unknown_name(f"metaparameter of {workload.name}", name, possible))
    for name in needed:
        if name not in given:
            raise SpecError(f"metaparameter `{name}` of {workload.name} has no value: add it to [search_space].")


def _optional_metaparameters(workload: Workload) -> list[str]:
    return ["label_smoothing"] if data.facts(workload.dataset).task == "classification" else []


def _check_values(sweep: Sweep) -> None:
    for name, value in sweep.workload.fixed_metaparameters.items():
        _check_value(name, value)
    for space in (sweep.search_space, *(changes.search_space for changes in (sweep.at or {}).values())):
        for name in space.names:
            dimension = space[name]
            for value in (dimension.min, dimension.max) if isinstance(dimension, Range) else dimension.values:
                _check_value(name, value)


def _check_value(name: str, value: float) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not BOUNDS[name].admits(value):
        raise SpecError(f"{name} = {value!r} must be {BOUNDS[name]}.")
