"""The trainer of a network of the user's own."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from batchlab.core.study import Study
from batchlab.data.base import train_subset
from batchlab.engine.base import Point, UpTo, measured_pack_size
from batchlab.engine.checks.study import check_training
from batchlab.engine.device import find_device
from batchlab.engine.forward import make_forward
from batchlab.engine.gang.exchange import ALONE, Exchange
from batchlab.engine.gang.share import OBSERVED_BY_ONE
from batchlab.engine.gang.sharing import share_of
from batchlab.engine.global_random import fork_rng, state_outside_torch
from batchlab.engine.observer import Observer, observed_metrics
from batchlab.engine.parameters import trained_parameters
from batchlab.engine.problem import Problem
from batchlab.engine.program import TorchProgram
from batchlab.engine.source import Source, Split
from batchlab.errors import SpecError, TrainerError
from batchlab.own.content import moved
from batchlab.own.loaded import Loaded
from batchlab.own.objective import Measure, OwnObjective
from batchlab.own.stepped import EVALUATED_EXAMPLES, Stepped, TrainingStep, checked_loss

PACKED_EXAMPLES = 4
"""Examples on which a pack and single trials are compared."""

TOLERANCE = 1e-4
"""How far gradients of a trial may lie apart, alone and in a pack, relative to their size."""


class OwnTrainer:
    """Trains networks that a function makes, by an objective or by a training step of the user's own."""

    stays_here = True
    """It is not sent to other processes: functions that are written at a prompt cannot be."""

    def __init__(
        self,
        make_network: Callable[[], nn.Module],
        examples: Mapping[str, Split | Loaded],
        loss: Measure | None,
        training_step: TrainingStep | None,
        metrics: Mapping[str, Any],
        device: str,
        precision: str,
        microbatch_size: int | None,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._observers = tuple(observers)
        self._exchange: Exchange = ALONE
        self._make_network, self._loss, self._training_step, self._metrics = make_network, loss, training_step, metrics
        self._device_name, self._precision, self._microbatch_size = device, precision, microbatch_size
        self._examples, self._measured = dict(examples), dict[str, Source]()
        self._last: weakref.ref[nn.Module] | None = None

    def check(self, study: Study) -> None:
        """Raise SpecError where the study names something unknown or asks for the impossible."""
        check_training(study, self.metrics(study), len(self._examples["train"]))
        size = study.engine.get("pack_size", "auto")
        if size not in ("auto", 1) and self._trains_one_by_one:
            reason = "with a `training_step`" if self._training_step is not None else "on a Dataset that is read"
            raise SpecError(f'engine.pack_size = {size}: trials {reason} train one by one; use 1 or "auto".')
        if size not in ("auto", 1) and not self._is_vectorised:
            raise SpecError(
                f"engine.pack_size = {size}: trials of this network cannot be trained together, or not with the same "
                'result; use 1 or "auto".'
            )

    def check_shared(self, study: Study, num_workers: int) -> None:
        """Raise SpecError where the batch cannot be shared by so many workers."""
        if self._observers:
            raise SpecError(OBSERVED_BY_ONE)
        share = share_of(self.network(study.seed), 0, num_workers)
        share.check(study.batch_size, self._microbatch_size or study.batch_size)

    def join(self, exchange: Exchange) -> None:
        """Train what is asked for from now on as one of several workers."""
        self._exchange = exchange

    def pack_size(self, study: Study) -> int | UpTo:
        """Return 1 where trials cannot be vectorised, or not with the same result; else what may be measured."""
        return 1 if self._trains_one_by_one or not self._is_vectorised else measured_pack_size(study)

    @property
    def _trains_one_by_one(self) -> bool:
        return self._training_step is not None or isinstance(self._examples["train"], Loaded)

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return `split/metric` for every evaluated split that there is, and those of observers."""
        measured = [f"{split}/{name}" for split in study.evaluation.splits for name in ("loss", *self._metrics)]
        return observed_metrics(measured, self._observers)

    def program(
        self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None
    ) -> TorchProgram:
        """Return the program for these points, at step 0 or as `state` left it."""
        problem = replace(self._problem, evaluated={split: self._evaluated(split) for split in study.evaluation.splits})
        # A batch is trained whole unless its user says otherwise: a module may normalise over it, a loss couple it.
        microbatch_size = self._microbatch_size or len(problem.train)
        program = TorchProgram(
            problem, study, points, self._precision, microbatch_size, self._observers, self._exchange
        )
        if state is not None:
            program.restore(state)
        return program

    def network(self, seed: int) -> nn.Module:
        """Return the network of the first trial, at its start."""
        return self._problem.network(seed, 0)

    def first_batch(self, size: int) -> Any:
        """Return the first training examples as one batch: inputs and labels, or what a training step takes."""
        return moved(next(iter(self._examples["train"].chunks(size))), self._problem.device)

    def batch_loss(self, network: nn.Module, batch: Any) -> Tensor:
        """Return the loss of a batch that is not cut."""
        if self._training_step is not None:
            return checked_loss(self._training_step(network, batch))
        inputs, labels = batch
        return self._objective.loss_sums(network(inputs).unsqueeze(0), labels.unsqueeze(0))[0] / len(labels)

    @property
    def device_name(self) -> str:
        """The device that programs run on, as PyTorch spells it."""
        return str(self._problem.device)

    @cached_property
    def _problem(self) -> Problem | Stepped:
        device, train = find_device(self._device_name), self._examples["train"]
        if self._training_step is not None:
            size = self._microbatch_size or EVALUATED_EXAMPLES
            return Stepped(self._network, self._training_step, self._metrics, train, {}, device, size)
        if isinstance(train, Split):
            train = Split(train.inputs.to(device), train.labels.to(device))
        return Problem(self._network, self._objective, 0, train, {}, device)

    @cached_property
    def _objective(self) -> OwnObjective:
        assert self._loss is not None
        return OwnObjective(self._loss, self._metrics)

    def _network(self) -> nn.Module:
        network = self._make_network()
        if not isinstance(network, nn.Module):
            raise TrainerError(f"model() returned {type(network).__name__}, not a torch.nn.Module.")
        if self._last is not None and self._last() is network:
            raise TrainerError("model() returned the same network again: make a new one each time.")
        self._last = weakref.ref(network)
        if not trained_parameters(network):
            raise TrainerError(f"model() returned {type(network).__name__}, which has no parameters to train.")
        for name, parameter in trained_parameters(network).items():
            if is_lazy(parameter):
                raise TrainerError(f"{name} has no shape yet: let model() call the network once on an example.")
            if not parameter.is_floating_point():
                way_out = "keep it as real numbers, with torch.view_as_complex in forward"
                raise TrainerError(f"{name} is {str(parameter.dtype).removeprefix('torch.')}: {way_out}.")
        return network

    def _evaluated(self, split: str) -> Source:
        """Return the examples that a split is measured on; of training as many as validation has."""
        if split not in self._examples:
            raise TrainerError(f"sweep.evaluate.splits: there are no {split} examples: give `{split}`.")
        examples, size = self._examples[split], len(self._examples["val"])
        if split != "train" or size >= len(examples):
            return examples
        if split not in self._measured:  # and kept: what is read is held there
            self._measured[split] = examples.take(train_subset(len(examples), size))
        return self._measured[split]

    @cached_property
    def _is_vectorised(self) -> bool:
        """Whether `torch.func` vectorises the network, and two trials so train as each does alone."""
        problem, size = self._problem, min(PACKED_EXAMPLES, len(self._examples["train"]))
        sample = problem.train.first(size, 2, problem.device)
        inputs, labels = sample.inputs, sample.labels
        try:
            with fork_rng(problem.device):
                together = self._step([0, 1], inputs, labels)
                alone = [self._step([trial], inputs[:1], labels[:1]) for trial in (0, 1)]
        except Exception:  # whatever a module does that cannot be vectorised
            return False
        return all(
            torch.allclose(together[name][trial], alone[trial][name][0].to(together[name].dtype), TOLERANCE, 1e-6)
            for name in together
            for trial in (0, 1)
        )

    def _step(self, trials: list[int], inputs: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return what a training pass leaves and an evaluation tells; what is drawn at random differs between two.

        RuntimeError where it is NumPy's or Python's: PyTorch refuses to vectorise its own random numbers, and does not
        know of these.
        """
        forward = make_forward(self._problem.networks(0, trials))
        before = state_outside_torch()
        forward.parameters.start(num_microbatches=1)
        forward.begin_step()
        forward.parameters.differentiate(self._objective.loss_sums(forward.logits(inputs), labels))
        forward.end_step()
        forward.train(False)
        with torch.no_grad():
            evaluated = forward.logits(inputs)
        if state_outside_torch() != before:
            raise RuntimeError("random numbers that trials of a pack would share")
        return {"gradients": forward.parameters.gradients, "evaluated": evaluated, **forward.buffers}
