"""The training program for K >= 1 trials of one network, in lockstep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from batchlab.core.seeds import Stream, generator
from batchlab.core.study import Study
from batchlab.data.order import ExampleOrder
from batchlab.engine.base import LOSS_BOUND, Point
from batchlab.engine.evaluate import evaluate
from batchlab.engine.microbatch import MicrobatchSize, halved, largest_microbatch
from batchlab.engine.objectives import OBJECTIVES, count_tokens
from batchlab.engine.parameters import ParameterMatrix
from batchlab.engine.problem import Problem
from batchlab.engine.state import check_state
from batchlab.models.averages import RunningAverages
from batchlab.models.base import initial_parameters
from batchlab.optim.registry import load_optimizer, load_schedule

CHUNK_FLOPS = 1e10
"""Work after which `advance` returns, so that a stop signal waits for about a second."""

CHUNK_INDICES = 1 << 16
"""Example numbers drawn at once."""


class TorchProgram:
    """Trains the points of one study; see `engine.base.Program` for the contract.

    Each trial draws its own batches from its own order, has its own initial parameters and its own row in
    every matrix, and never notices the others: the pack is a way to compute, not part of the experiment.
    """

    def __init__(
        self,
        problem: Problem,
        study: Study,
        points: Sequence[Point],
        precision: str = "float32",
        microbatch_size: MicrobatchSize = "auto",
    ) -> None:
        self.step = 0
        self.trial_ids = np.array([point.trial_id for point in points], dtype=np.int64)
        self.diverged: dict[int, int] = {}
        self._problem, self._model, self._study = problem, problem.model, study
        self._objective = OBJECTIVES[problem.task]
        self._device = problem.device
        self._autocast = torch.autocast(self._device.type, torch.bfloat16, enabled=precision == "bfloat16")
        self._optimizer = load_optimizer(study.workload.optimizer.name)
        self._schedule = load_schedule(study.workload.schedule.name)
        self._metaparameters = {
            name: torch.tensor([[point.metaparameters[name]] for point in points], device=self._device)
            for name in points[0].metaparameters
        }
        num_examples = len(problem.train.labels)
        self._orders = [ExampleOrder(num_examples, study.seed, trial_id) for trial_id in self.trial_ids.tolist()]
        inits = [generator(study.seed, Stream.INIT, trial_id) for trial_id in self.trial_ids.tolist()]
        values = torch.from_numpy(np.stack([initial_parameters(self._model, init) for init in inits])).to(self._device)
        self._parameters = ParameterMatrix(values, self._model.shapes)
        self._state = self._optimizer.init(values)
        layers = self._model.normalised
        self._averages = RunningAverages(layers, self._device) if layers else None
        self._microbatch_size = (
            largest_microbatch(problem, self._parameters, study.batch_size)
            if microbatch_size == "auto"
            else min(microbatch_size, study.batch_size)
        )

    def advance(self, target: int) -> None:
        """Train for some updates, not past `target`, and let the trials that diverged leave."""
        num_steps = self._chunk_steps(target)
        batches = self._draw_batches(num_steps)
        losses = torch.empty(num_steps, len(self.trial_ids), device=self._device)
        for index in range(num_steps):
            losses[index] = self._train_step(batches[index])
            self.step += 1
        self._drop_diverged(losses, is_evaluated=self.step == target)

    def _train_step(self, batch: Tensor) -> Tensor:
        """Make one update of every trial from the examples batch [K, B]; return the losses [K] before it."""
        losses = self._differentiate(batch)
        learning_rate = self._schedule(self._metaparameters, self.step)
        metaparameters = {**self._metaparameters, "learning_rate": learning_rate}
        with torch.no_grad():
            self._optimizer.update(self._parameters.values, self._parameters.gradients, self._state, metaparameters)
        return losses

    def _differentiate(self, batch: Tensor) -> Tensor:
        """Fill the gradients with those of the examples batch [K, B]; return the losses [K].

        Where a piece of the batch does not fit into the device's memory, it is halved and all is computed again.
        """
        while True:
            try:
                return self._differentiate_pieces(batch)
            except torch.OutOfMemoryError:
                self._microbatch_size = halved(self._microbatch_size, self._model.ghost_size)

    def _differentiate_pieces(self, batch: Tensor) -> Tensor:
        """Add up the gradients of the pieces of a batch.

        Every piece is weighted by its examples, or its tokens: the sum is the loss of the whole batch.
        """
        size, noise = self._microbatch_size, self._draw_noise()
        pieces = [slice(start, start + size) for start in range(0, batch.shape[1], size)]
        weights = self._weights([batch[:, piece] for piece in pieces])
        self._parameters.start(num_pieces=len(pieces))
        if self._averages is not None:
            self._averages.start()
        losses = []
        for piece in pieces:
            losses.append(self._loss_sums(batch[:, piece], noise.piece(piece)) / weights)
            self._parameters.differentiate(losses[-1])
            losses[-1] = losses[-1].detach()
        if self._averages is not None:
            self._averages.commit()
        return losses[0] if len(losses) == 1 else torch.stack(losses).sum(0)

    def _weights(self, pieces: Sequence[Tensor]) -> Tensor | int:
        """Return over how many examples the loss of a batch is averaged, or [K]: over how many tokens."""
        if not self._objective.is_per_token:
            return self._study.batch_size
        labels = self._problem.train.labels
        return torch.stack([count_tokens(self._problem.gather(labels, piece)) for piece in pieces]).sum(0)

    def _loss_sums(self, batch: Tensor, noise: _Noise) -> Tensor:
        """Return the sums [K] of the losses of the examples batch [K, B], with the graph to differentiate them."""
        labels = self._problem.gather(self._problem.train.labels, batch)
        inputs = self._problem.view(self._problem.gather(self._problem.train.inputs, batch), noise.cuts)
        with self._autocast:
            logits = self._model.logits(self._parameters.views, inputs, noise.masks, self._averages)
        logits = logits.to(self._parameters.values.dtype)
        return self._objective.loss_sums(logits, labels, self._metaparameters.get("label_smoothing"))

    def evaluate(self) -> dict[str, np.ndarray]:
        """Return `split/metric` of the live trials."""
        metrics: dict[str, np.ndarray] = {}
        for split, examples in self._problem.evaluated.items():
            with self._autocast:
                values = evaluate(self._problem, self._parameters.views, examples, self._averages)
            metrics |= {f"{split}/{name}": value for name, value in values.items()}
        return metrics

    def state(self) -> dict[str, np.ndarray]:
        """Return parameters, optimizer state and counters; the orders follow from the seeds and the step."""
        return {
            "step": np.array(self.step),
            "trial_ids": self.trial_ids,
            "diverged": np.array(list(self.diverged.items()), dtype=np.int64).reshape(-1, 2),
            "parameters": self._parameters.values.cpu().numpy().copy(),
            **{f"optimizer.{name}": matrix.cpu().numpy().copy() for name, matrix in self._state.items()},
            **({} if self._averages is None else self._averages.state()),
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state that `state` returned for the same study and points."""
        self._keep(np.isin(self.trial_ids, state["trial_ids"]))
        check_state(state, self.state())
        self.step = int(state["step"])
        self.diverged = {int(trial_id): int(step) for trial_id, step in state["diverged"]}
        self._parameters.values.copy_(torch.from_numpy(state["parameters"]))
        for name, matrix in self._state.items():
            matrix.copy_(torch.from_numpy(state[f"optimizer.{name}"]))
        if self._averages is not None:
            self._averages.restore(state)

    def _chunk_steps(self, target: int) -> int:
        examples = len(self.trial_ids) * self._study.batch_size
        work = 6 * self._model.multiplications * examples
        return max(1, min(target - self.step, int(CHUNK_FLOPS / work), CHUNK_INDICES // examples))

    def _draw_batches(self, num_steps: int) -> Tensor:
        """Return the example numbers of the next steps: [num_steps, K, B]."""
        size = self._study.batch_size
        orders = [order.take(self.step * size, num_steps * size).reshape(num_steps, size) for order in self._orders]
        return torch.from_numpy(np.stack(orders, axis=1)).to(self._device)

    def _draw_noise(self) -> _Noise:
        """Return what chance decides in this step, for the whole batch of each trial."""
        is_dropped, is_cut = self._model.dropout > 0, self._problem.image_view is not None
        if not (is_dropped or is_cut):
            return _Noise()
        size = self._study.batch_size
        noises = [
            generator(self._study.seed, Stream.NOISE, trial_id, self.step) for trial_id in self.trial_ids.tolist()
        ]
        masks = [self._model.draw_masks(noise, size) for noise in noises] if is_dropped else None
        cuts = [self._problem.draw_cuts(noise, size) for noise in noises] if is_cut else None
        return _Noise(self._stacked(masks), self._stacked(cuts))

    def _stacked(self, arrays: list[np.ndarray] | None) -> Tensor | None:
        return None if arrays is None else torch.from_numpy(np.stack(arrays)).to(self._device)

    def _drop_diverged(self, losses: Tensor, is_evaluated: bool) -> None:
        """Let the trials leave whose loss [num_steps, K] went wrong: one look for many steps.

        Where an evaluation follows, parameters that are not finite count too; elsewhere they show in the next
        loss. So the step of a divergence does not depend on where a chunk ends, nor on the pack.
        """
        bad = ~(losses <= LOSS_BOUND)  # NaN compares false, so it is bad
        if is_evaluated:
            bad[-1] |= ~self._parameters.values.sum(1).isfinite()  # a sum with NaN or infinity is not finite
        if not bool(bad.any()):
            return
        is_bad = bad.cpu().numpy()
        first_step = self.step - len(is_bad) + 1
        has_diverged = np.any(is_bad, axis=0)  # [K]
        for trial in np.flatnonzero(has_diverged):
            self.diverged[int(self.trial_ids[trial])] = first_step + int(is_bad[:, trial].argmax())
        self._keep(np.logical_not(has_diverged))

    def _keep(self, live: np.ndarray) -> None:
        """Go on with the rows where `live` [K] is true."""
        if live.all():
            return
        rows = torch.from_numpy(np.flatnonzero(live)).to(self._device)
        self.trial_ids = self.trial_ids[live]
        self._orders = [order for order, is_live in zip(self._orders, live, strict=True) if is_live]
        self._metaparameters = {name: column[rows] for name, column in self._metaparameters.items()}
        self._parameters = ParameterMatrix(self._parameters.values[rows], self._model.shapes)
        self._state = {name: matrix[rows] for name, matrix in self._state.items()}


@dataclass(frozen=True)
class _Noise:
    """What chance decides in one step: dropout masks and the cuts of images, [K, B, ...] each, or neither."""

    masks: Tensor | None = None
    cuts: Tensor | None = None

    def piece(self, rows: slice) -> _Noise:
        """Return the part that belongs to some examples of the batch."""
        if self.masks is None and self.cuts is None:
            return self
        return _Noise(*(None if values is None else values[:, rows] for values in (self.masks, self.cuts)))
