"""OwnSweep: what every study of one's own has, whoever trains it: a spec as data, settings on top, a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer
from batchlab.errors import InputError
from batchlab.optim.registry import with_defaults
from batchlab.own.search_space import dimension_of
from batchlab.spec.load import with_settings


class OwnSweep(ABC):
    """A sweep that is made by code. `place` is the file of that code; None at a prompt or in a notebook."""

    def __init__(
        self,
        name: str,
        search_space: Mapping[str, Any],
        seed: int,
        engine: Mapping[str, Any] | None,
        search: Mapping[str, Any],
        place: str | None,
    ) -> None:
        if not isinstance(search_space, Mapping):
            raise InputError(
                f"search_space is {type(search_space).__name__}: give a table, such as "
                '{"learning_rate": {"min": 1e-3, "max": 1.0, "scale": "log"}}.'
            )
        self._name, self._search_space, self._seed = name, search_space, seed
        self._engine, self._search = dict(engine or {}), dict(search)
        self.settings: Sequence[str] = ()
        """What was changed of its spec, each written as `sweep.trials=8`."""

        self.file = None if place is None else Path(place)
        """What worker processes import; where there is none, it is trained in this process."""

    @abstractmethod
    def _workload(self) -> dict[str, Any]:
        """Return the table `[workload]`."""

    def _limits(self) -> dict[str, Any]:
        """Return what ends a trial where nothing was said."""
        return {}

    @property
    @abstractmethod
    def trainer(self) -> Trainer:
        """Who trains it in this process."""

    @cached_property
    def spec(self) -> Sweep:
        """What is searched, as data: what a lab stores."""
        is_limited = {"max_steps", "max_examples"} & self._search.keys()
        data = {
            "name": self._name,
            "seed": self._seed,
            "workload": self._workload(),
            "sweep": self._search if is_limited else {**self._limits(), **self._search},
            "search_space": {name: dimension_of(name, each) for name, each in self._search_space.items()},
            "engine": self._engine,
        }
        source = f"{type(self).__name__} {self._name}"
        return with_defaults(Sweep.parse(with_settings(data, self.settings), source))

    def change(self, settings: Sequence[str]) -> None:
        """Change values of its spec, each written as `sweep.trials=8`; before anything is asked of it."""
        self.settings = (*self.settings, *settings)

    def make_trainer(self) -> Trainer:
        """Return who trains it: in worker processes, which import its file; without one, in this process."""
        from batchlab.own.python_file import FileTrainer

        return self.trainer if self.file is None else FileTrainer(self.file, self)
