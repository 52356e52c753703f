"""What the workers of a trial tell each other, counted and timed: sums of some bytes with nothing beside them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlab.core.study import Study
from batchlab.engine.base import Point, Program, Trainer

if TYPE_CHECKING:  # making a trainer imports no torch: the workers do that
    from torch import Tensor

    from batchlab.engine.gang.exchange import Exchange, Sum

SUM_BYTES = "sum_bytes"
"""The one metaparameter of a point whose steps are sums of so many bytes."""


class ExchangingTrainer:
    """A trainer whose programs know how many bytes each sum of a step had; others of its programs only sum.

    Whatever else is asked of it, the trainer answers that it was made of.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._exchange: _Counted | None = None

    def join(self, exchange: Exchange) -> None:
        """Train from now on as one of several workers."""
        self._exchange = _Counted(exchange)
        join = getattr(self._trainer, "join", None)
        if join is not None:
            join(self._exchange)

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return what the trainer says."""
        return self._trainer.metrics(study)

    def program(self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None) -> Any:
        """Return the program of some points; of one that asks for sums, steps that sum."""
        assert self._exchange is not None
        num_bytes = points[0].metaparameters.get(SUM_BYTES)
        if num_bytes is not None:
            return _SumProgram(self._exchange, int(num_bytes), getattr(self._trainer, "device_name", "cpu"))
        return _CountedProgram(self._trainer.program(study, points, state), self._exchange)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_trainer" not in self.__dict__:  # while it is unpickled
            raise AttributeError(name)
        return getattr(self._trainer, name)


class _Counted:
    """An exchange that remembers the bytes of its sums."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange, self.payloads = exchange, list[int]()
        self.rank, self.size = exchange.rank, exchange.size

    def sum(self, tensor: Tensor) -> Tensor:
        self.payloads.append(tensor.nbytes)
        return self._exchange.sum(tensor)

    def begin(self, tensor: Tensor) -> Sum:
        self.payloads.append(tensor.nbytes)
        return self._exchange.begin(tensor)

    def agree(self, numbers: list[int]) -> list[int]:
        return self._exchange.agree(numbers)


class _CountedProgram:
    """A program that knows what its last steps have summed."""

    def __init__(self, program: Program, exchange: _Counted) -> None:
        self._program, self._exchange = program, exchange
        self.payloads: tuple[int, ...] = ()
        """Bytes of each sum of a step."""

    def advance(self, target: int) -> None:
        self._exchange.payloads.clear()
        before = self._program.step
        self._program.advance(target)
        found, steps = self._exchange.payloads, self._program.step - before
        self.payloads = tuple(found[: len(found) // max(1, steps)])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)


class _SumProgram:
    """Steps that sum some bytes over all workers, and remember how long each took."""

    def __init__(self, exchange: Exchange, num_bytes: int, device: str) -> None:
        import torch

        self._exchange, self._tensor = exchange, torch.zeros(max(1, num_bytes // 4), device=device)
        self.step, self.seconds = 0, list[float]()

    def advance(self, target: int) -> None:
        while self.step < target:
            started = time.perf_counter()
            self._exchange.sum(self._tensor)
            self._tensor[0].item()  # a GPU has done it by then
            self.seconds.append(time.perf_counter() - started)
            self.step += 1
