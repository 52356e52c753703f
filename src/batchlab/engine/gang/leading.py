"""How the workers of one trial keep in step: the first of them leads, the others follow.

Whoever drives a program, a race say, drives that of the first worker. What all have to do together, making a program
and training it, is told to the others just before; the rest the first does alone: evaluations, checkpoints, and every
decision. The weights are the same in all of them, so that nobody else needs to be asked, and one short message for each
call of `advance` is all that it costs.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from batchlab.core.study import Study
from batchlab.engine.base import Point, Program, Trainer, check_study


@dataclass(frozen=True)
class Make:
    """Make a program, known by a number from now on."""

    number: int
    study: Study
    points: Sequence[Point]
    state: Mapping[str, np.ndarray] | None


@dataclass(frozen=True)
class Advance:
    """Train a program towards a step."""

    number: int
    target: int


@dataclass(frozen=True)
class Forget:
    """A program that is no longer needed."""

    number: int


Order = Make | Advance | Forget


class LeadingTrainer:
    """A trainer of the first worker: what its programs train, those of the others train with them.

    `tell` sends an order to all others. `together` is told where something begins that all do, and where it has ended.
    """

    def __init__(
        self, trainer: Trainer, tell: Callable[[Order], None], together: Callable[[bool], None] = lambda is_begun: None
    ) -> None:
        self._trainer, self._tell, self._together = trainer, tell, together
        self._num_made, self._left = 0, list[int]()
        self.is_in_step = True
        """False once something that all do together has failed here: nobody knows where the others are."""

    def check(self, study: Study) -> None:
        """Let the trainer check a study."""
        check_study(self._trainer, study)

    def pack_size(self, study: Study) -> int:
        """Return 1: several workers for a trial are for those that are slow by themselves."""
        return 1

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return what the trainer says."""
        return self._trainer.metrics(study)

    @property
    def device_name(self) -> str:
        """The device of the first worker, as the trainer spells it."""
        return str(getattr(self._trainer, "device_name", "cpu"))

    def program(self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None) -> Program:
        """Return the program of these points, which all have now."""
        number, self._num_made = self._num_made, self._num_made + 1
        with self.order(Make(number, study, points, state)):
            program = _LeadingProgram(self._trainer.program(study, points, state), number, self)
        weakref.finalize(program, self._left.append, number)
        return cast("Program", program)

    @contextmanager
    def order(self, order: Order) -> Iterator[None]:
        """Tell the others to do what is done here meanwhile."""
        self._together(True)
        try:
            while self._left:
                self._tell(Forget(self._left.pop()))
            self._tell(order)
            yield
        except BaseException:
            self.is_in_step = False
            raise
        finally:
            self._together(False)


class _LeadingProgram:
    """A program that trains in all workers; whatever else is asked of it, the first answers."""

    def __init__(self, program: Program, number: int, leader: LeadingTrainer) -> None:
        self._program, self._number, self._leader = program, number, leader

    def advance(self, target: int) -> None:
        with self._leader.order(Advance(self._number, target)):
            self._program.advance(target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)


def follow(trainer: Trainer, orders: Iterable[Order], announce: Callable[[Exception], None]) -> None:
    """Do what the first worker orders, as one of the others, until no more orders come.

    A program that cannot be made is announced. As a rule the first worker cannot make it either, and it is never
    trained; where it is, the error is raised.
    """
    programs: dict[int, Program | Exception] = {}
    for order in orders:
        if isinstance(order, Make):
            try:
                programs[order.number] = trainer.program(order.study, order.points, order.state)
            except Exception as error:
                programs[order.number] = error
                announce(error)
        elif isinstance(order, Forget):
            del programs[order.number]
        else:
            program = programs[order.number]
            if isinstance(program, Exception):
                raise program
            program.advance(order.target)
