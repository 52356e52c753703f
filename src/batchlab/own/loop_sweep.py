"""LoopSweep: a study of a training loop of one's own, a generator, in one expression."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from batchlab.errors import InputError
from batchlab.loops.generator import GeneratorTrainer, Loop
from batchlab.own.sweep import OwnSweep


class LoopSweep(OwnSweep):
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
        super().__init__(name, search_space, seed, engine, search, sys._getframe(1).f_globals.get("__file__"))
        if not callable(train):
            raise InputError("LoopSweep: `train` is no function: give one that yields step and metrics.")
        self._train = train

    def _workload(self) -> dict[str, Any]:
        return {"loop": getattr(self._train, "__name__", type(self._train).__name__)}

    @cached_property
    def trainer(self) -> GeneratorTrainer:
        """Who trains it in this process."""
        return GeneratorTrainer(self._train)
