"""A loop that is a generator of Python: `def train(batch_size, seed, learning_rate): ... yield step, metrics`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from batchlab.core.study import Study
from batchlab.engine.base import Point
from batchlab.errors import SpecError, TrainerError, shown
from batchlab.loops.base import RESERVED, LoopTrainer, Started, given_names, name_of, told, untold
from batchlab.loops.report import Report, make_report
from batchlab.loops.resources import use_here

Loop = Callable[..., Iterator[tuple[int, dict[str, float]]]]


class GeneratorTrainer(LoopTrainer):
    """Trains by a function that yields; it is given those of `RESERVED` that it has parameters for."""

    stays_here = True
    """It is not sent to other processes: functions that are written at a prompt cannot be."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        parameters = inspect.signature(loop).parameters.values()
        self._takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        self._names = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
        self._needed = [each.name for each in parameters if each.default is each.empty and each.name in self._names]
        self.resumes = "checkpoint" in self._names

    def check(self, study: Study) -> None:
        """Raise SpecError where the function takes something else than the study has."""
        given = given_names(study)
        for name in ("batch_size", "seed", *given):
            if name not in self._names and not self._takes_all:
                raise SpecError(f"{self._title} has no parameter `{shown(name)}`: every trial is given one; add it.")
        for name in self._needed:
            if name not in given and name not in RESERVED:
                raise SpecError(f"{self._title} needs `{name}`, which is not in the search space: add it there.")

    def reports(
        self, study: Study, point: Point, place: Path, worker: int, start: int, started: Started = untold
    ) -> Generator[Report | None]:
        """Yield what the function yields; it is closed where the race is over."""
        use_here(study.engine, worker)
        given = {name: value for name, value in told(study, point, place).items() if self._is_taken(name)}
        loop = self._loop(**given)
        if not hasattr(loop, "__next__"):
            raise TrainerError(f"{self._title} returned {type(loop).__name__}: let it `yield step, metrics`.")
        try:
            for said in loop:
                yield self._read(study, point, said)
        finally:
            if hasattr(loop, "close"):
                loop.close()

    def _is_taken(self, name: str) -> bool:
        return name in self._names or (self._takes_all and name not in ("max_steps", "checkpoint"))

    def _read(self, study: Study, point: Point, said: object) -> Report:
        if not isinstance(said, tuple | list) or len(said) != 2:
            raise TrainerError(f'{self._title} yields {shown(said)}: let it `yield step, {{"val/loss": loss}}`.')
        try:
            return make_report(_plain(said[0]), said[1])
        except TrainerError as error:
            raise TrainerError(f"{name_of(study, point.trial_id)}: {self._title} yields {error}") from None

    @property
    def _title(self) -> str:
        return f"{getattr(self._loop, '__name__', type(self._loop).__name__)}()"


def _plain(value: Any) -> Any:
    """Return a number of NumPy or PyTorch as one of Python."""
    return value.item() if hasattr(value, "item") else value
