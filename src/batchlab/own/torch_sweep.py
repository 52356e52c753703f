"""TorchSweep: a study of one's own network and data, in one expression."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from batchlab.engine.observer import Observer, observed_metrics
from batchlab.errors import InputError, shown, spelled
from batchlab.optim.registry import register_class
from batchlab.own.raised import raised
from batchlab.own.sweep import OwnSweep

if TYPE_CHECKING:
    from torch import nn

    from batchlab.engine.source import Split
    from batchlab.own.loaded import Loaded
    from batchlab.own.objective import Measure
    from batchlab.own.reader import Collate
    from batchlab.own.stepped import TrainingStep
    from batchlab.own.trainer import OwnTrainer

EPOCHS = 100
"""How often the training set is seen at the most, where nothing else ends a trial."""

LOADERS = 1
"""Processes that read a Dataset for each process that trains, where nothing is said."""


class TorchSweep(OwnSweep):
    """A network, its data, loss and metrics, and how it is searched; the keywords of `[sweep]` may all be given.

    `model()` returns a new network, an `nn.Module`. `train`, `val` and `test` are pairs of tensors, inputs and labels,
    or Datasets, which `loaders` processes read and `collate` makes batches of. `loss(outputs, labels)` is the mean over
    a batch; so is each of `metrics`, over a whole split. For models with several inputs `training_step(module, batch)`
    returns the loss instead, and so do metrics. `observers` look at the gradient of each microbatch. The workload is
    called NAME/CLASS/OPTIMIZER.
    """

    def __init__(
        self,
        *,
        name: str,
        model: Callable[[], nn.Module],
        train: Any,
        val: Any,
        search_space: Mapping[str, Any],
        loss: Measure | None = None,
        training_step: TrainingStep | None = None,
        test: Any = None,
        metrics: Mapping[str, Measure | TrainingStep] | None = None,
        collate: Collate | None = None,
        loaders: int = LOADERS,
        observers: Sequence[Observer] = (),
        optimizer: str | type | Mapping[str, Any] = "sgd",
        schedule: str | Mapping[str, Any] = "constant",
        seed: int = 0,
        engine: Mapping[str, Any] | None = None,
        **search: Any,
    ) -> None:
        super().__init__(name, search_space, seed, engine, search, sys._getframe(1).f_globals.get("__file__"))
        self._model, self._loss, self._training_step, self._metrics = model, loss, training_step, _checked(metrics)
        self._given, self._collate, self._loaders = {"train": train, "val": val, "test": test}, collate, loaders
        self._optimizer, self._schedule, self._observers = _by_name(optimizer), schedule, observers
        self._check()

    def _check(self) -> None:
        if not isinstance(self._model, type) and hasattr(self._model, "named_parameters"):
            raise InputError(
                "TorchSweep: `model` is a network, and every trial begins with a new one: give a function that makes "
                f"it, such as {_EXAMPLES['model']}."
            )
        if (self._loss is None) == (self._training_step is None):
            raise InputError(
                "TorchSweep: give either `loss`, of outputs and labels, or `training_step`, of a module and a batch."
            )
        for keyword in ("model", "loss", "training_step", "collate"):
            given = getattr(self, f"_{keyword}")
            if not callable(given) and (given is not None or keyword == "model"):
                raise InputError(f"TorchSweep: `{keyword}` is no function: give one, such as {_EXAMPLES[keyword]}.")
        if any(each.requires_grad for each in getattr(self._loss, "parameters", list)()):
            raise InputError(
                "TorchSweep: `loss` has parameters, which would not be trained: make them a part of the model, and "
                "give a `training_step`."
            )
        if not isinstance(self._loaders, int) or isinstance(self._loaders, bool) or self._loaders < 0:
            raise InputError(f"TorchSweep: loaders = {shown(self._loaders)}: give a number of processes, 0 or more.")
        observed_metrics([], self._observers)

    @cached_property
    def _examples(self) -> dict[str, Split | Loaded]:
        """The splits as they are trained on."""
        from batchlab.own.data import source_of, tensors_of

        given = {name: each for name, each in self._given.items() if each is not None}
        if self._collate is not None and all(tensors_of(each) is not None for each in given.values()):
            raise InputError("TorchSweep: `collate` makes batches of a Dataset's items, and there are only tensors.")
        is_stepped = self._training_step is not None
        return {
            name: source_of(name, each, is_stepped=is_stepped, collate=self._collate, loaders=self._loaders)
            for name, each in given.items()
        }

    def _network(self) -> Any:
        """Return a network to look at; what it draws at random is drawn by nobody else."""
        import torch

        from batchlab.engine.global_random import fork_rng

        try:
            with fork_rng(torch.device("cpu")):
                return self._model()
        except Exception as error:
            raise InputError(f"TorchSweep: model() fails: {raised(error)}") from error

    def _workload(self) -> dict[str, Any]:
        return {
            "dataset": self._name,
            "model": type(self._network()).__name__,
            "optimizer": self._optimizer,
            "schedule": self._schedule,
        }

    def _limits(self) -> dict[str, Any]:
        return {"max_examples": EPOCHS * len(self._examples["train"])}

    @cached_property
    def trainer(self) -> OwnTrainer:
        """Who trains it in this process."""
        from batchlab.own.trainer import OwnTrainer

        engine = self.spec.engine
        return OwnTrainer(
            self._model,
            self._examples,
            self._loss,
            self._training_step,
            self._metrics,
            engine.device,
            engine.precision,
            engine.microbatch_size,
            self._observers,
        )


def _checked(metrics: Any) -> dict[str, Any]:
    """Return metrics by name; InputError where they are none, or one would take the place of the loss."""
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping):
        kind = type(metrics).__name__
        raise InputError(f'TorchSweep: `metrics` is a {kind}: give functions by name, {{"error": error}}.')
    for name, metric in metrics.items():
        if name == "loss":
            raise InputError("TorchSweep: metrics: `loss` is always measured, and is the loss: choose another name.")
        if not isinstance(name, str) or not name.isprintable() or name.split() != [name]:
            raise InputError(f"TorchSweep: metrics: {shown(spelled(name))} is no name: give a word, such as error.")
        if not callable(metric):
            raise InputError(f"TorchSweep: metrics: {name} is no function: give one that returns one number.")
    return dict(metrics)


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


_EXAMPLES = {
    "model": "`lambda: Net()`",
    "loss": "torch.nn.functional.cross_entropy",
    "training_step": "`lambda module, batch: module(**batch).loss`",
    "collate": "torch.utils.data.default_collate",
}
