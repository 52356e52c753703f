"""Does a training step give the gradient of the whole batch, however the batch is cut?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parameter import is_lazy

from batchlab.doctor.batch import Padding, check_padding, num_examples
from batchlab.doctor.bench import Bench, Step, StepBench, takes_worker
from batchlab.doctor.causes import read_causes
from batchlab.doctor.cut import Cut, read_cut, usual_cuts
from batchlab.doctor.diagnosis import Diagnosis
from batchlab.doctor.gradient import Gradient, compare, distance
from batchlab.doctor.kept import Kept, kept
from batchlab.doctor.precision import coarsest, noted_precisions, tolerance_of
from batchlab.doctor.verdict import Equivalence, Row
from batchlab.errors import InputError, shown

USUAL_WORKERS = (1, 2, 4)
"""Numbers of workers that are tried where a step takes a worker."""


def equivalence(
    step: Step,
    batch: Any,
    model: nn.Module,
    *,
    cuts: Iterable[Any] | None = None,
    workers: int | Sequence[int] | None = None,
    padding: Padding | None = None,
    allow: Iterable[str] = (),
    tolerance: float | None = None,
    seed: int = 0,
) -> Equivalence:
    """Return whether `step(model, microbatches)` leaves the gradient of the whole batch, however it is cut.

    `step` is what a loop does with a list of microbatches: all backward passes, and whatever follows. It is ended where
    the optimizer would change weights. A step with a third argument gets a `Worker`, and is run for several `workers`,
    whose gradients are averaged as DistributedDataParallel does. `cuts` are sizes of microbatches, such as (16, 48), or
    the sizes of each worker; left out, some that bring most mistakes to light. `padding` names the parts of a batch
    that are padded and with what, {"labels": -100}; then more and less of it is tried. Causes in `allow` are accepted.

    Every run begins at the same weights, buffers and random numbers, and afterwards all is as it was. Gradients are
    computed in float64 where the step can be run so.
    """
    number, allowed = num_examples(batch), read_causes(allow)
    _check(step, model, number, tolerance)
    if padding is not None:
        check_padding(batch, padding)
    wanted = _cuts(cuts, workers, number, is_parallel=takes_worker(step), is_padded=padding is not None)
    with kept(model) as keeper:
        bench, precision = _bench(step, batch, model, keeper, padding, seed)
        limit = tolerance_of(precision) if tolerance is None else tolerance
        rows = [judged(bench, cut, limit, is_asked=cuts is not None) for cut in wanted]
        if all(row.is_equal or row.failure for row in rows):
            _check_telling(bench, limit)
    return Equivalence(number, tuple(rows), limit, str(precision).removeprefix("torch."), allowed)


def assert_equivalent(step: Step, batch: Any, model: nn.Module, **keywords: Any) -> Equivalence:
    """Raise AssertionError with the verdict where `equivalence` finds a difference: a line for a test.

    It takes what `equivalence` takes, and returns the verdict.
    """
    verdict = equivalence(step, batch, model, **keywords)
    if not verdict.is_equivalent:
        raise AssertionError(str(verdict))
    return verdict


def judged(bench: Bench, cut: Cut, tolerance: float, *, is_asked: bool = True) -> Row:
    """Return how a cut compares to the whole batch; where one that nobody asked for cannot be run, that it cannot."""
    try:
        found = bench.found(cut)
    except InputError:
        raise
    except Exception as error:
        if is_asked:
            raise
        return Row(
            str(cut), cut.num_workers, None, is_equal=False, failure=f"{type(error).__name__}: {shown(str(error))}"
        )
    comparison = compare(found, bench.alone(bench.whole))
    if found.is_finite and comparison.relative_error <= tolerance:
        return Row(str(cut), cut.num_workers, comparison, is_equal=True)
    findings = Diagnosis(bench, cut, tolerance).findings()
    return Row(str(cut), cut.num_workers, comparison, is_equal=False, findings=tuple(findings))


def check_whole(whole: Gradient) -> None:
    """Raise InputError where the gradient of the whole batch is nothing to compare with."""
    if not whole.is_finite:
        raise InputError("The gradient of the whole batch is not finite: give other weights or another batch.")
    if not whole.norm:
        raise InputError("The gradient of the whole batch is zero: give other weights or another batch.")


def _check_telling(bench: Bench, tolerance: float) -> None:
    """Raise InputError where each half of the batch has the gradient of the whole: whatever was left out, or weighed
    wrongly, would not show.
    """
    middle = bench.num_examples // 2
    try:
        halves = [bench.alone(rows) for rows in (bench.whole[:middle], bench.whole[middle:])]
    except Exception:  # a step that cannot be run so
        return
    if all(distance(half, bench.alone(bench.whole)) <= tolerance for half in halves):
        raise InputError(
            "Each half of the batch has the gradient of the whole, so that no mistake can show: give a batch of "
            "different examples, and let the step train on the microbatches that it is given."
        )


def _bench(
    step: Step, batch: Any, model: nn.Module, keeper: Kept, padding: Padding | None, seed: int
) -> tuple[Bench, torch.dtype]:
    """Return a bench that works, in float64 if it can be, and its precision."""
    if not isinstance(model, DistributedDataParallel):
        with suppress(Exception):  # whatever cannot be done in float64 is told by the run that follows
            bench = StepBench(step, batch, model, keeper, padding, seed, is_double=True)
            whole = bench.alone(bench.whole)
            check_whole(whole)
            if whole.precision == torch.float64:
                return bench, torch.float64
    bench = StepBench(step, batch, model, keeper, padding, seed, is_double=False)
    with noted_precisions(model) as precisions:
        whole = bench.alone(bench.whole)
    check_whole(whole)
    return bench, coarsest({whole.precision, *precisions})


def _check(step: Step, model: nn.Module, number: int, tolerance: float | None) -> None:
    if not callable(step):
        raise InputError(f"step is {type(step).__name__}, no function: give step(model, microbatches).")
    if not isinstance(model, nn.Module):
        raise InputError(f"model is {type(model).__name__}, not a torch.nn.Module.")
    if not any(each.requires_grad for each in model.parameters()):
        raise InputError(f"The model ({type(model).__name__}) has no parameters to train.")
    if any(is_lazy(each) for each in (*model.parameters(), *model.buffers())):
        raise InputError("The model has layers whose shapes are not known yet: call it once with a batch before.")
    if number < 2:
        raise InputError(
            f"The batch has {number} example{'' if number == 1 else 's'}: give at least two, so that it can be cut."
        )
    if tolerance is not None and not (isinstance(tolerance, float) and 0 < tolerance < 1):
        raise InputError(f"tolerance = {shown(tolerance)}: give a number between 0 and 1, such as 1e-6.")


def _cuts(
    given: Iterable[Any] | None,
    workers: int | Sequence[int] | None,
    number: int,
    *,
    is_parallel: bool,
    is_padded: bool,
) -> list[Cut]:
    if given is not None:
        if workers is not None:
            raise InputError("Give `cuts`, with the sizes of each worker, or `workers`, not both.")
        return _read_cuts(given, number)
    usual = USUAL_WORKERS if is_parallel else (1,)
    counts = usual if workers is None else [workers] if isinstance(workers, int) else list(workers)
    for count in counts:
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count:
            raise InputError(f"workers: {shown(count)} is no number of workers, 1 or more.")
    if workers is not None and max(counts, default=0) > number:
        raise InputError(f"workers: {max(counts)} workers cannot share {number} examples: give each at least one.")
    return usual_cuts(number, [count for count in counts if count <= number], is_padded=is_padded)


def _read_cuts(given: Iterable[Any], number: int) -> list[Cut]:
    try:
        wanted = list(given)
    except TypeError:
        wanted = []
    if not wanted:
        raise InputError(f"cuts = {shown(given)}: give at least one in a list, such as [(16, 48)].")
    return [read_cut(each, number) for each in wanted]
