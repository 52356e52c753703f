"""LoopSweep: a study of a training loop of one's own, a generator, in one expression."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer
from batchlab.errors import InputError
from batchlab.loops.generator import GeneratorTrainer, Loop
from batchlab.own.search_space import dimension_of
from batchlab.spec.load import with_settings


class LoopSweep:
    """A loop, and how it is searched; the keywords of `[sweep]` may all be given, but for `evaluate`.

    `train(batch_size, seed, **metaparameters)` trains one trial and yields `step, {"val/loss": x}` whenever it has
    measured something. It is closed once the race is over. Where it has a parameter `checkpoint`, that is a folder of
    the trial's own: what the loop has kept there, it finds there when it is called again after a stop. Where it has a
    parameter `max_steps`, that is where the trial ends at the latest. The workload goes by the name of the sweep.
    """

    def __init__(
        self,
        *,
        name: str,
        train: Loop,
        search_space: Mapping[str, Any],
        seed: int = 0,
        engine: Mapping[str, Any] | None = None,
        **search: Any,
    ) -> None:
        if not callable(train):
            raise InputError("LoopSweep: `train` is no function: give one that yields step and metrics.")
        self._name, self._train, self._search_space, self._seed = name, train, search_space, seed
        self._engine, self._search = dict(engine or {}), search
        self.settings: Sequence[str] = ()
        """What was changed of its spec, each written as `sweep.trials=8`."""

        place = sys._getframe(1).f_globals.get("__file__")
        self.file = None if place is None else Path(place)
        """Where it is made; None at a prompt or in a notebook, which no other process can import."""

    @cached_property
    def spec(self) -> Sweep:
        """What is searched, as data: what a lab stores."""
        data = {
            "name": self._name,
            "seed": self._seed,
            "workload": {"loop": getattr(self._train, "__name__", type(self._train).__name__)},
            "sweep": self._search,
            "search_space": {name: dimension_of(name, each) for name, each in self._search_space.items()},
            "engine": self._engine,
        }
        return Sweep.parse(with_settings(data, self.settings), f"LoopSweep {self._name}")

    def change(self, settings: Sequence[str]) -> None:
        """Change values of its spec, each written as `sweep.trials=8`; before anything is asked of it."""
        self.settings = (*self.settings, *settings)

    def make_trainer(self) -> Trainer:
        """Return who trains it: in worker processes, which import its file; without one, in this process."""
        from batchlab.own.python_file import FileTrainer

        return self.trainer if self.file is None else FileTrainer(self.file, self)

    @cached_property
    def trainer(self) -> GeneratorTrainer:
        """Who trains it in this process."""
        return GeneratorTrainer(self._train)
