"""What makes gradients of one batch differ, in words: what it is and how it is mended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from batchlab.errors import InputError, shown, unknown_name


class Cause(StrEnum):
    """Why a cut batch gives another gradient than the whole one. Programs read these names: add, never change one."""

    MEAN_OF_MEANS = "mean of means"
    FACTOR = "factor"
    CLIPPING = "clipping"
    BATCH_NORM = "batch normalisation"
    DROPOUT = "dropout"
    DROPPED = "dropped examples"
    COUPLED = "coupled examples"
    PADDING = "padding"
    NOT_EXCHANGED = "not exchanged"
    RANDOMNESS = "randomness"
    WEIGHTS = "weights"
    NOT_FINITE = "not finite"


@dataclass(frozen=True)
class Finding:
    """A cause and what shows it."""

    cause: Cause
    evidence: str

    @property
    def remedy(self) -> str:
        """How it is mended."""
        return REMEDIES[self.cause]


REMEDIES = {
    Cause.MEAN_OF_MEANS: (
        "add up the losses of a microbatch (reduction='sum') and divide by the number of tokens, or examples, of all "
        "microbatches of all workers"
    ),
    Cause.FACTOR: (
        "divide once: by the tokens or examples of the whole batch, or by the number of microbatches where all are "
        "equal; DistributedDataParallel takes the mean over workers itself"
    ),
    Cause.CLIPPING: "clip once, when all microbatches are added up and the workers' gradients are exchanged",
    Cause.BATCH_NORM: (
        "it is no mistake of the loop: use group or layer normalisation, keep the number of examples that are "
        "normalised together (ghost batches), or accept it with allow=['batch normalisation']"
    ),
    Cause.DROPOUT: (
        "masks that depend on the cut or the worker are no mistake where each is drawn anew: accept them with "
        "allow=['dropout'], or draw them for the whole batch and cut them; never seed all workers alike"
    ),
    Cause.DROPPED: "train on the last, smaller microbatch too, weighted by its examples or tokens",
    Cause.COUPLED: (
        "examples that a loss or a layer compares must be in one microbatch: gather their embeddings over microbatches "
        "and workers before the loss, or call the number of examples that are compared a part of the experiment"
    ),
    Cause.PADDING: "leave padding out of the loss (labels of -100) and out of attention (an attention mask)",
    Cause.NOT_EXCHANGED: (
        "call the DistributedDataParallel module itself, not its `.module`, and leave `no_sync()` before the backward "
        "pass of the last microbatch"
    ),
    Cause.RANDOMNESS: "draw what is random by a seed of its own for each example, or leave it out of the check",
    Cause.NOT_FINITE: (
        "a mean over no tokens, of a microbatch that is all padding, is 0 / 0: add up losses and divide by the tokens "
        "of the whole batch"
    ),
    Cause.WEIGHTS: "weigh each microbatch by its share of the batch's tokens or examples",
}


def read_causes(names: Iterable[str]) -> frozenset[Cause]:
    """Return causes by their names; InputError for one that there is not."""
    if isinstance(names, str):
        raise InputError(f'allow = "{shown(names)}": give a list of causes, such as ["dropout"].')
    known = {str(each) for each in Cause}
    for name in names:
        if name not in known:
            raise InputError(f"allow: {unknown_name('cause', str(name), known)}")
    return frozenset(Cause(name) for name in names)
