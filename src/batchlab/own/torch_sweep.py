"""TorchSweep: a study of one's own network and data, in one expression."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batchlab.core.sweep import Sweep
from batchlab.engine.base import Trainer
from batchlab.errors import InputError
from batchlab.optim.registry import register_class, with_defaults
from batchlab.own.search_space import dimension_of
from batchlab.spec.load import with_settings

if TYPE_CHECKING:
    from torch import nn

    from batchlab.own.objective import Measure
    from batchlab.own.trainer import OwnTrainer

EPOCHS = 100
"""How often the training set is seen at the most, where nothing else ends a trial."""


class TorchSweep:
    """A network, its data, loss and metrics, and how it is searched; the keywords of `[sweep]` may all be given.

    `model()` returns a new network, an `nn.Module`. `train`, `val` and `test` are pairs of tensors, inputs and labels,
    or Datasets. `loss(outputs, labels)` is the mean over a batch; so is each of `metrics`, over a whole split.
    The workload is called NAME/CLASS/OPTIMIZER.
    """

    def __init__(
        self,
        *,
        name: str,
        model: Callable[[], nn.Module],
        train: Any,
        val: Any,
        loss: Measure,
        search_space: Mapping[str, Any],
        test: Any = None,
        metrics: Mapping[str, Measure] | None = None,
        optimizer: str | type | Mapping[str, Any] = "sgd",
        schedule: str | Mapping[str, Any] = "constant",
        seed: int = 0,
        engine: Mapping[str, Any] | None = None,
        **search: Any,
    ) -> None:
        self._model, self._loss, self._metrics = model, loss, dict(metrics or {})
        self._examples = {"train": train, "val": val, "test": test}
        self._name, self._optimizer, self._schedule, self._seed = name, _by_name(optimizer), schedule, seed
        self._search_space, self._engine, self._search = search_space, dict(engine or {}), search
        self.settings: Sequence[str] = ()
        """What was changed of its spec, each written as `sweep.trials=8`."""

        place = sys._getframe(1).f_globals.get("__file__")
        self.file = None if place is None else Path(place)
        """Where it is made; None at a prompt or in a notebook, which no other process can import."""

        for keyword in ("model", "loss"):
            if not callable(getattr(self, f"_{keyword}")):
                raise InputError(f"TorchSweep: `{keyword}` is no function: give one, such as {_EXAMPLES[keyword]}.")

    @cached_property
    def spec(self) -> Sweep:
        """What is searched, as data: what a lab stores."""
        from batchlab.own.data import split_of

        search = dict(self._search)
        if not {"max_steps", "max_examples"} & search.keys():
            search["max_examples"] = EPOCHS * len(split_of("train", self._examples["train"]).labels)
        data = {
            "name": self._name,
            "seed": self._seed,
            "workload": {
                "dataset": self._name,
                "model": type(self._model()).__name__,
                "optimizer": self._optimizer,
                "schedule": self._schedule,
            },
            "sweep": search,
            "search_space": {name: dimension_of(name, each) for name, each in self._search_space.items()},
            "engine": self._engine,
        }
        return with_defaults(Sweep.parse(with_settings(data, self.settings), f"TorchSweep {self._name}"))

    def change(self, settings: Sequence[str]) -> None:
        """Change values of its spec, each written as `sweep.trials=8`; before anything is asked of it."""
        self.settings = (*self.settings, *settings)

    def make_trainer(self) -> Trainer:
        """Return who trains it: in worker processes, which import its file; without one, in this process."""
        from batchlab.own.python_file import FileTrainer

        return self.trainer if self.file is None else FileTrainer(self.file, self)

    @cached_property
    def trainer(self) -> OwnTrainer:
        """Who trains it in this process."""
        from batchlab.own.trainer import OwnTrainer

        engine = self.spec.engine
        return OwnTrainer(
            self._model,
            self._examples,
            self._loss,
            self._metrics,
            engine.device,
            engine.precision,
            engine.microbatch_size,
        )


def _by_name(optimizer: Any) -> Any:
    """Return an optimizer as a spec has it: a class of the user's own goes by its name."""
    if isinstance(optimizer, Mapping):
        return {**optimizer, "name": _by_name(optimizer.get("name"))}
    if not isinstance(optimizer, type):
        return optimizer
    import torch

    if not issubclass(optimizer, torch.optim.Optimizer):
        raise InputError(f"TorchSweep: {optimizer.__name__} is no torch.optim.Optimizer: extend that, or give a name.")
    return register_class(optimizer)


_EXAMPLES = {"model": "`lambda: Net()`", "loss": "torch.nn.functional.cross_entropy"}
