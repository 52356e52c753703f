"""Observers look at the gradient of every microbatch while a network trains; what they report becomes metrics.

An observer is a few functions over a state, as an optimizer is: `start` returns tensors by name, one trial in each
entry of their first axis, and the others read and change them. The program owns the state: it lets trials leave, and
keeps it in checkpoints, so that a resumed run reports the same bits. One object so serves all packs of a process.

No observer changes the training: gradients are looked at before they are added up, and the sum is that of a run
without observers, to the bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from batchlab.errors import InputError, shown

if TYPE_CHECKING:
    from torch import Tensor

    from batchlab.optim.base import State
    from batchlab.optim.layout import Layout

PREFIX = "train/"
"""What is seen while training is a metric of the training examples."""


@dataclass(frozen=True)
class Seen:
    """The gradients of K trials on some examples of a batch: a microbatch, or all of it. Nobody may change them.

    The loss of a batch is a mean over its examples (over its tokens, for a language model; w is their number, padding
    aside). A microbatch's part of it is the sum of its own losses, divided by the w of the whole batch: so the parts
    of all microbatches add up to the loss of the batch, and their gradients to its gradient. Divided by `share`, the
    gradient is that of the mean loss of the microbatch alone.
    """

    step: int
    """The update that they are for, from 1."""

    gradients: Tensor
    """[K, P]: of the part, before the optimizer's weight decay, momentum and the like."""

    losses: Tensor
    """[K]: the part."""

    weight: Tensor
    """[K]: w, the number of examples, or tokens, of the part."""

    share: Tensor
    """[K]: `weight` over that of the batch; 1 for a whole batch, 0 for a microbatch of nothing but padding."""

    layout: Layout
    """Where the parameters of the network lie in a row."""

    @property
    def by_parameter(self) -> dict[str, Tensor]:
        """The gradients by the names of the network's parameters: views [K, *shape]."""
        return self.layout.segments(self.gradients)


class Observer(ABC):
    """What looks at gradients. Extend it; rows of different trials are never mixed."""

    metrics: ClassVar[Sequence[str]]
    """The names of what it reports, such as `train/gradient_norm`."""

    def start(self, parameters: Tensor) -> State:
        """Return what it remembers before the first update of trials with these parameters [K, P]: [K, ...] each."""
        return {}

    def see_microbatch(self, state: State, microbatch: Seen) -> None:
        """Look at a microbatch, once its gradients are there and before they are added to the others."""
        return

    def see_batch(self, state: State, batch: Seen) -> None:
        """Look at the whole batch, once in each step, before the update."""
        return

    @abstractmethod
    def report(self, state: State) -> Mapping[str, Tensor]:
        """Return metrics by name, [K] each, as of now: asked at every evaluated step, of a copy of the state.

        What is left out, or NaN, was not measured at that step.
        """


def observed_metrics(measured: Sequence[str], observers: Sequence[Observer]) -> tuple[str, ...]:
    """Return the metrics that are measured, and those of observers; InputError where one is no observer's to name."""
    names = list(measured)
    for observer in observers:
        kind = type(observer).__name__
        if not isinstance(observer, Observer):
            is_class = isinstance(observer, type) and issubclass(observer, Observer)
            way = f"give an object, {shown(observer.__name__)}()" if is_class else "extend batchlab.Observer"
            raise InputError(f"observers: {shown(observer)} is no observer: {way}.")
        for name in _names_of(observer):
            if not isinstance(name, str) or not name.startswith(PREFIX) or name == PREFIX or not name.isprintable():
                raise InputError(f"{kind}.metrics: {shown(name)} is no name for what is seen: call it {PREFIX}NAME.")
            if name in names:
                raise InputError(f"{kind}.metrics: {shown(name)} is measured already: choose another name.")
            names.append(name)
    return tuple(names)


def _names_of(observer: Observer) -> Sequence[str]:
    names = getattr(observer, "metrics", None)
    if not isinstance(names, tuple | list) or not names:
        kind = type(observer).__name__
        raise InputError(f'{kind}.metrics is {shown(names)}: name what it reports, metrics = ("{PREFIX}NAME",).')
    return names
