"""A loop while it trains: are the gradients that it has left those of its whole batch? On one worker, or on many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from batchlab.doctor.batch import Padding, joined, num_examples, rows_of
from batchlab.doctor.bench import NOTHING, USUAL, Bench, Off, Way, gradient_of, move
from batchlab.doctor.causes import Cause, Finding, read_causes
from batchlab.doctor.conditions import scale_of, switched_off
from batchlab.doctor.cut import Cut
from batchlab.doctor.equivalence import check_whole, judged
from batchlab.doctor.gradient import Gradient, compare, distance
from batchlab.doctor.kept import Kept, kept
from batchlab.doctor.precision import coarsest, noted_precisions, tolerance_of
from batchlab.doctor.verdict import Equivalence, Row
from batchlab.errors import InputError
from batchlab.own.content import moved

Loss = Callable[[nn.Module, Any], Tensor]
"""loss(module, batch): the loss of a batch, however large, as one number."""


def check_gradients(
    model: nn.Module,
    loss: Loss,
    microbatches: Sequence[Any],
    *,
    padding: Padding | None = None,
    allow: Iterable[str] = (),
    tolerance: float | None = None,
) -> Equivalence:
    """Return whether the gradients that a loop has left in a model are those of the batch that it has seen.

    Call it in the loop when all backward passes are done, before clipping and before the optimizer's step, with the
    microbatches that they were of. `loss(module, batch)` is what is meant: the loss of a whole batch. Of a model in
    DistributedDataParallel every worker calls it with its own microbatches; they are gathered, and each worker returns
    the same verdict. `padding` says what fills up microbatches of different lengths. The model is left as it was.
    """
    if not microbatches:
        raise InputError("There are no microbatches: give those whose backward passes filled the gradients.")
    module = model.module if isinstance(model, DistributedDataParallel) else model
    return check_observed(module, gradient_of(module), loss, microbatches, padding, allow, tolerance)


def check_observed(
    module: nn.Module,
    observed: Gradient,
    loss: Loss,
    microbatches: Sequence[Any],
    padding: Padding | None,
    allow: Iterable[str],
    tolerance: float | None,
) -> Equivalence:
    """Return the verdict on a gradient that was observed; what was of other workers is gathered."""
    own = next(each for each in module.parameters() if each.requires_grad)
    allowed = read_causes(allow)
    shares = [[moved(each, own.device) for each in share] for share in _gathered(list(microbatches))]
    cut = Cut(tuple(tuple(num_examples(each) for each in share) for share in shares))
    batch = joined([each for share in shares for each in share], padding)
    first, apart = _of_first_worker(observed)
    with kept(module) as keeper:
        bench = LossBench(loss, batch, module, keeper, first)
        with noted_precisions(module) as precisions:
            check_whole(bench.alone(bench.whole))
        precision = coarsest({own.dtype, *precisions})
        limit = tolerance_of(precision) if tolerance is None else tolerance
        row = judged(bench, cut, limit) if apart <= limit else _not_exchanged(bench, cut, apart)
    return Equivalence(bench.num_examples, (row,), limit, str(precision).removeprefix("torch."), allowed)


class LossBench(Bench):
    """Has a gradient that was observed once, and a loss to compute others by."""

    can_repeat = False

    def __init__(self, loss: Loss, batch: Any, model: nn.Module, keeper: Kept, observed: Gradient) -> None:
        super().__init__(model, num_examples(batch))
        self._loss, self._batch, self._keeper, self._observed = loss, batch, keeper, observed

    def found(self, cut: Cut, off: Off = NOTHING, way: Way = USUAL) -> Gradient:
        """Return what was observed."""
        assert not off
        return self._observed

    def repeated(self, rows: range, off: Off, way: Way = USUAL) -> Gradient:
        """Return the gradient of the loss of some examples.

        Nothing is added to `.grad`, so that DistributedDataParallel has nothing to exchange.
        """
        self._keeper.begin(way.seed, is_double=False)
        move(self.model, way.moved)
        trained = {name: each for name, each in self.model.named_parameters() if each.requires_grad}
        with switched_off(self.model, off, way.small):
            value = self._loss(self.model, rows_of(self._batch, rows))
            found = torch.autograd.grad(value, list(trained.values()), allow_unused=True)
        filled = [
            torch.zeros_like(each) if part is None else part for part, each in zip(found, trained.values(), strict=True)
        ]
        gradient = Gradient.of(dict(zip(trained, filled, strict=True)))
        return gradient.with_values(gradient.values / scale_of(off, way.small))


def num_workers() -> int:
    """Return how many processes train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def _gathered(microbatches: list[Any]) -> list[list[Any]]:
    """Return the microbatches of every worker."""
    if num_workers() == 1:
        return [microbatches]
    shares: list[Any] = [None] * num_workers()
    dist.all_gather_object(shares, [moved(each, torch.device("cpu")) for each in microbatches])
    return shares


def _of_first_worker(observed: Gradient) -> tuple[Gradient, float]:
    """Return the gradient of worker 0, and how far another worker's lies from it at the most."""
    if num_workers() == 1:
        return observed, 0.0
    values = observed.values.clone()
    dist.broadcast(values, 0)
    first = observed.with_values(values)
    distances = [0.0] * num_workers()
    dist.all_gather_object(distances, distance(observed, first))
    return first, max(distances)


def _not_exchanged(bench: Bench, cut: Cut, apart: float) -> Row:
    told = f"the gradients of two workers lie {apart:.2g} apart, relative to their norm"
    comparison = compare(bench.found(cut), bench.alone(bench.whole))
    return Row(str(cut), cut.num_workers, comparison, is_equal=False, findings=(Finding(Cause.NOT_EXCHANGED, told),))
