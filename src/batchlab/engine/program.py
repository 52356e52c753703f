"""The training program for K >= 1 trials of one network, in lockstep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from batchlab.core.seeds import Stream, generator
from batchlab.core.study import Study
from batchlab.data.order import ExampleOrder
from batchlab.engine.base import LOSS_BOUND, Point
from batchlab.engine.evaluate import cross_entropies, evaluate
from batchlab.engine.parameters import ParameterMatrix
from batchlab.models.base import Model, initial_parameters
from batchlab.optim.registry import load_optimizer, load_schedule

CHUNK_FLOPS = 1e10
"""Work after which `advance` returns, so that a stop signal waits for about a second."""

CHUNK_INDICES = 1 << 16
"""Example numbers drawn at once."""

Split = tuple[Tensor, Tensor]


class TorchProgram:
    """Trains the points of one study; see `engine.base.Program` for the contract.

    Each trial draws its own batches from its own order, has its own initial parameters and its own row in
    every matrix, and never notices the others: the pack is a way to compute, not part of the experiment.
    """

    def __init__(
        self,
        model: Model,
        study: Study,
        points: Sequence[Point],
        train: Split,
        evaluated: Mapping[str, Split],
        precision: str = "float32",
    ) -> None:
        self.step = 0
        self.trial_ids = np.array([point.trial_id for point in points], dtype=np.int64)
        self.diverged: dict[int, int] = {}
        self._model, self._study, self._train, self._evaluated = model, study, train, evaluated
        self._device = train[0].device
        self._autocast = torch.autocast(self._device.type, torch.bfloat16, enabled=precision == "bfloat16")
        self._optimizer = load_optimizer(study.workload.optimizer.name)
        self._schedule = load_schedule(study.workload.schedule.name)
        self._metaparameters = {
            name: torch.tensor([[point.metaparameters[name]] for point in points], device=self._device)
            for name in points[0].metaparameters
        }
        self._orders = [ExampleOrder(len(train[1]), study.seed, trial_id) for trial_id in self.trial_ids.tolist()]
        inits = [generator(study.seed, Stream.INIT, trial_id) for trial_id in self.trial_ids.tolist()]
        values = torch.from_numpy(np.stack([initial_parameters(model, init) for init in inits])).to(self._device)
        self._parameters = ParameterMatrix(values, model.shapes)
        self._state = self._optimizer.init(values)

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
        inputs = self._train[0].index_select(0, batch.flatten()).unflatten(0, batch.shape)
        labels = self._train[1][batch]
        with self._autocast:
            logits = self._model.logits(self._parameters.views, inputs, self._draw_masks())
        losses = cross_entropies(logits.float(), labels).mean(1)
        self._parameters.differentiate(losses)
        learning_rate = self._schedule(self._metaparameters, self.step)
        metaparameters = {**self._metaparameters, "learning_rate": learning_rate}
        with torch.no_grad():
            self._optimizer.update(self._parameters.values, self._parameters.gradients, self._state, metaparameters)
        return losses.detach()

    def evaluate(self) -> dict[str, np.ndarray]:
        """Return `split/metric` of the live trials."""
        metrics: dict[str, np.ndarray] = {}
        for split, (inputs, labels) in self._evaluated.items():
            with self._autocast:
                values = evaluate(self._model, self._parameters.views, inputs, labels)
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
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state that `state` returned for the same study and points."""
        self._keep(np.isin(self.trial_ids, state["trial_ids"]))
        self.step = int(state["step"])
        self.diverged = {int(trial_id): int(step) for trial_id, step in state["diverged"]}
        self._parameters.values.copy_(torch.from_numpy(state["parameters"]))
        for name, matrix in self._state.items():
            matrix.copy_(torch.from_numpy(state[f"optimizer.{name}"]))

    def _chunk_steps(self, target: int) -> int:
        examples = len(self.trial_ids) * self._study.batch_size
        work = 6 * self._parameters.values.shape[1] * examples
        return max(1, min(target - self.step, int(CHUNK_FLOPS / work), CHUNK_INDICES // examples))

    def _draw_batches(self, num_steps: int) -> Tensor:
        """Return the example numbers of the next steps: [num_steps, K, B]."""
        size = self._study.batch_size
        orders = [order.take(self.step * size, num_steps * size).reshape(num_steps, size) for order in self._orders]
        return torch.from_numpy(np.stack(orders, axis=1)).to(self._device)

    def _draw_masks(self) -> Tensor | None:
        if self._model.dropout == 0:
            return None
        noises = [
            generator(self._study.seed, Stream.NOISE, trial_id, self.step) for trial_id in self.trial_ids.tolist()
        ]
        masks = [self._model.draw_masks(noise, self._study.batch_size) for noise in noises]
        return torch.from_numpy(np.stack(masks)).to(self._device)

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
