"""The bench: a step is run on any part of a batch, always from the same weights, buffers and random numbers."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.amp import GradScaler
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from batchlab.doctor.batch import Padding, in_double_precision, lengthened, num_examples, rows_of, shortened
from batchlab.doctor.conditions import SMALL, Condition, scale_of, switched_off
from batchlab.doctor.cut import MORE_COLUMNS, Cut
from batchlab.doctor.draws import CountedDraws
from batchlab.doctor.gradient import Gradient
from batchlab.doctor.kept import Kept
from batchlab.doctor.worker import Worker, run_workers
from batchlab.errors import InputError

Step = Callable[..., Any]
"""step(model, microbatches) or step(model, microbatches, worker): what a loop does up to the optimizer's step."""

Off = frozenset[Condition]
NOTHING: Off = frozenset()


@dataclass(frozen=True)
class Way:
    """How a run differs from the usual one."""

    seed: int = 0
    small: float = SMALL
    moved: float = 0.0
    """By which share weights are moved, at random."""


USUAL = Way()


class _Stopped(BaseException):
    """Ends a step where its optimizer would change the weights."""


class Bench(ABC):
    """Gradients of any part of a batch, by what is switched off in the model; each is computed once."""

    can_repeat: bool
    """Whether a cut can be found again with something switched off; what a loop did while it trained cannot."""

    def __init__(self, model: nn.Module, num_examples: int) -> None:
        self.model, self.num_examples = model, num_examples
        self._known: dict[Hashable, Gradient] = {}

    @property
    def whole(self) -> range:
        """The places of all examples."""
        return range(self.num_examples)

    def alone(self, rows: range, off: Off = NOTHING, way: Way = USUAL) -> Gradient:
        """Return the gradient of some examples as one microbatch of one worker."""
        return self._once((rows, off, way), lambda: self.repeated(rows, off, way))

    @abstractmethod
    def found(self, cut: Cut, off: Off = NOTHING, way: Way = USUAL) -> Gradient:
        """Return the gradient that the loop makes of a cut."""

    @abstractmethod
    def repeated(self, rows: range, off: Off, way: Way = USUAL) -> Gradient:
        """Return what `alone` does, computed anew."""

    def num_draws(self, off: Off) -> int:
        """Return how often a pass over all examples draws random numbers."""
        with CountedDraws() as draws:
            self.repeated(self.whole, off)
        return draws.number

    def _once(self, key: Hashable, compute: Callable[[], Gradient]) -> Gradient:
        if key not in self._known:
            self._known[key] = compute()
        return self._known[key]


class StepBench(Bench):
    """Runs a step, which can be repeated."""

    can_repeat = True

    def __init__(
        self,
        step: Step,
        batch: Any,
        model: nn.Module,
        keeper: Kept,
        padding: Padding | None,
        seed: int,
        is_double: bool,
    ) -> None:
        super().__init__(model, num_examples(batch))
        self._step, self._takes_worker = step, takes_worker(step)
        self._batch = in_double_precision(batch) if is_double else batch
        self._keeper, self._padding, self._seed, self._is_double = keeper, padding, seed, is_double

    def found(self, cut: Cut, off: Off = NOTHING, way: Way = USUAL) -> Gradient:
        """Return the gradient that the step makes of a cut."""
        return self._once((cut, off, way), lambda: self._run(cut.rows, cut.padding, off, way))

    def repeated(self, rows: range, off: Off, way: Way = USUAL) -> Gradient:
        """Return the gradient of one microbatch."""
        return self._run([[rows]], "as it is", off, way)

    def _run(self, shares: Sequence[Sequence[range]], padding: str, off: Off, way: Way) -> Gradient:
        def run(worker: Worker) -> Gradient:
            microbatches = [self._cut(rows, padding) for rows in shares[worker.rank]]
            self._keeper.begin(self._seed + way.seed, is_double=self._is_double)
            move(self.model, way.moved)
            with switched_off(self.model, off, way.small), _stopped_at_update(self.model):
                self._call(microbatches, worker)
            found = gradient_of(self.model)
            return found.with_values(found.values / scale_of(off, way.small))

        return run_workers(run, len(shares))

    def _call(self, microbatches: list[Any], worker: Worker) -> None:
        if self._takes_worker:
            self._step(self.model, microbatches, worker)
        else:
            self._step(self.model, microbatches)

    def _cut(self, rows: range, padding: str) -> Any:
        microbatch = rows_of(self._batch, rows)
        if padding == "as it is" or self._padding is None:
            return microbatch
        if padding == "longer":
            return lengthened(microbatch, self._padding, MORE_COLUMNS)
        return shortened(microbatch, self._padding)


def takes_worker(step: Step) -> bool:
    """Return whether a step takes a third argument, its worker."""
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):  # a builtin
        return False
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    return len([each for each in positional if each.default is each.empty]) >= 3


def gradient_of(model: nn.Module) -> Gradient:
    """Return the gradients that the parameters of a model have now; zeros where one has none."""
    trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
    if all(each.grad is None for each in trained.values()):
        raise InputError(
            "The step left no gradients in the model that was given: let it call backward() on a loss of that model, "
            "and zero_grad() at its start, not at its end."
        )
    return Gradient.of(
        {name: torch.zeros_like(each) if each.grad is None else each.grad for name, each in trained.items()}
    )


@torch.no_grad()
def move(model: nn.Module, share: float) -> None:
    """Change every weight by a random share of its size."""
    if not share:
        return
    random = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        noise = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
        parameter.mul_(1 + share * noise.to(parameter))


@contextmanager
def _stopped_at_update(model: nn.Module) -> Iterator[None]:
    """End what is within where an optimizer of the model's parameters is asked to change them."""
    ours = {id(each) for each in model.parameters()}

    def stop(optimizer: Optimizer, arguments: Any, keywords: Any) -> None:
        if any(id(each) in ours for group in optimizer.param_groups for each in group["params"]):
            raise _Stopped

    handle = register_optimizer_step_pre_hook(stop)
    try:
        with _forgetful_scalers():
            yield
    except _Stopped:
        pass
    finally:
        handle.remove()


@contextmanager
def _forgetful_scalers() -> Iterator[None]:
    """Let a GradScaler whose step was ended forget that it has unscaled the gradients: the next run's are scaled."""
    before = GradScaler.step

    def step(scaler: GradScaler, optimizer: Optimizer, *arguments: Any, **keywords: Any) -> Any:
        try:
            return before(scaler, optimizer, *arguments, **keywords)
        except _Stopped:
            scaler._per_optimizer_states.pop(id(optimizer), None)
            raise

    setattr(GradScaler, "step", step)  # noqa: B010 - mypy lets no method be assigned
    try:
        yield
    finally:
        setattr(GradScaler, "step", before)  # noqa: B010
