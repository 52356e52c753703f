"""A check in a file of Python: what `batchlab check FILE` looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from batchlab.doctor.batch import num_examples
from batchlab.doctor.bench import Step
from batchlab.doctor.equivalence import equivalence
from batchlab.doctor.verdict import Equivalence
from batchlab.engine.source import cut_places
from batchlab.errors import InputError
from batchlab.own.python_file import imported, named
from batchlab.own.sweep import OwnSweep
from batchlab.own.torch_sweep import TorchSweep
from batchlab.own.trainer import OwnTrainer

MOST_EXAMPLES = 64
"""Examples of the batch that a sweep is checked on."""


def check_file(path: Path) -> Equivalence:
    """Execute a file of Python and return the one verdict that it makes, or that on the one sweep that it makes."""
    module = imported(path)
    verdicts: list[Equivalence] = named(module, Equivalence)
    sweeps: list[OwnSweep] = named(module, OwnSweep)
    if len(verdicts) == 1:
        return verdicts[0]
    if not verdicts and len(sweeps) == 1:
        return check_sweep(sweeps[0])
    found = f"{len(verdicts)} checks and {len(sweeps)} sweeps" if verdicts or sweeps else "neither"
    raise InputError(
        f"{path} must make one check, `check = batchlab.equivalence(step, batch, model)`, or one batchlab.TorchSweep, "
        f"and give it a name at its top level; it has {found}."
    )


def check_sweep(sweep: OwnSweep) -> Equivalence:
    """Return whether the trials of a sweep train alike however their batches are cut into microbatches."""
    if not isinstance(sweep, TorchSweep):
        raise InputError(
            f"A {type(sweep).__name__} has a loop that nobody else can look into: check it by "
            "`batchlab.equivalence(step, batch, model)`, step being what it does with a list of microbatches."
        )
    trainer, spec = sweep.trainer, sweep.spec
    batch = trainer.first_batch(min(MOST_EXAMPLES, max(spec.search.batch_sizes)))
    number, size = num_examples(batch), spec.engine.microbatch_size
    cuts = None if size is None or size >= number else [[len(range(number)[part]) for part in cut_places(number, size)]]
    return equivalence(make_step(trainer), batch, trainer.network(spec.seed), cuts=cuts)


def make_step(trainer: OwnTrainer) -> Step:
    """Return what `engine.program` does with microbatches: their mean losses are weighted by their examples."""

    def step(network: nn.Module, microbatches: list[Any]) -> None:
        network.train()
        sizes = [num_examples(each) for each in microbatches]
        for microbatch, size in zip(microbatches, sizes, strict=True):
            (trainer.batch_loss(network, microbatch) * (size / sum(sizes))).backward()

    return step
