"""The training program for K >= 1 trials of one network, in lockstep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from batchlab.core.study import Study
from batchlab.engine.arrays import as_bits, as_numbers, from_bits
from batchlab.engine.base import LOSS_BOUND, Point
from batchlab.engine.forward import in_dtype, make_forward
from batchlab.engine.gang.exchange import ALONE, Exchange
from batchlab.engine.gang.sharing import share_trials
from batchlab.engine.global_random import fork_rng
from batchlab.engine.lockstep import Lockstep
from batchlab.engine.microbatch import MicrobatchSize, first_microbatch, may_run_out
from batchlab.engine.noise import Noise
from batchlab.engine.observer import Observer
from batchlab.engine.observing import Observing
from batchlab.engine.parameters import ParameterMatrix
from batchlab.engine.problem import Problem
from batchlab.engine.source import Batch, Microbatch
from batchlab.engine.timetable import Timetable
from batchlab.engine.trainable import Trainable
from batchlab.engine.updating import Updating
from batchlab.engine.work import count_multiplications
from batchlab.models.base import Network
from batchlab.optim.registry import load_optimizer

CHUNK_FLOPS = 1e10
"""Work after which `advance` returns, so that a stop signal waits for about a second."""

CHUNK_INDICES = 1 << 16
"""Example numbers drawn at once."""


class TorchProgram(Lockstep):
    """Trains the points of one study; see `engine.base.Program` for the contract.

    Each trial draws its own batches from its own order, has its own initial parameters and its own row in
    every matrix, and never notices the others: the pack is a way to compute, not part of the experiment.
    """

    def __init__(
        self,
        problem: Trainable,
        study: Study,
        points: Sequence[Point],
        precision: str = "float32",
        microbatch_size: MicrobatchSize = "auto",
        observers: Sequence[Observer] = (),
        exchange: Exchange = ALONE,
    ) -> None:
        timetable = Timetable(study, points, len(problem.train), problem.device)
        super().__init__(study, points, timetable.batch_sizes)
        self._problem, self._timetable, self._device = problem, timetable, problem.device
        self._autocast = torch.autocast(self._device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()
        ids = self.trial_ids.tolist()
        self._batches = problem.train.batches(study, ids, self._device)
        dtype = torch.float64 if precision == "float64" else torch.get_default_dtype()
        self._forward = make_forward(problem.networks(study.seed, ids), dtype)
        self._updating = Updating(load_optimizer(study.workload.optimizer, self._parameters.layout), self._parameters)
        self._observing = Observing(observers, self._parameters)
        if self._updating.takes_parts and not observers and exchange.size == 1:
            self._parameters.scatter_if_large()
        self._multiplications = count_multiplications(problem, self._forward)
        size = first_microbatch(problem, self._forward, study, microbatch_size)
        self._sharing, self._microbatch_size = share_trials(
            exchange,
            self._forward,
            study.batch_size,
            size,
            is_measured=microbatch_size == "auto",
            is_observed=bool(observers),
        )

    @property
    def _parameters(self) -> ParameterMatrix:
        return self._forward.parameters

    def advance(self, target: int) -> None:
        """Train for some updates, not past `target`, and let the trials that diverged leave."""
        ahead = self._timetable.ahead(self._clock, target - self.step, self._chunk_examples())
        batches = self._batches.ahead(self._clock, ahead.batch_sizes)
        losses = torch.empty(len(batches), len(self.trial_ids), device=self._device)
        # Networks of ours draw from generators of their own.
        with nullcontext() if isinstance(self._forward.network, Network) else fork_rng(self._device):
            for index, batch in enumerate(batches):
                losses[index] = self._differentiate(batch)
                self._updating.update(self._parameters, ahead, index)
                self._clock = self._clock.after(ahead.batch_sizes[index])
        self._drop_diverged(self._sharing.exchange.sum(losses), is_evaluated=self.step == target)

    def _differentiate(self, batch: Batch) -> Tensor:
        """Fill the gradients with those of a batch; return the losses [K].

        Where a microbatch does not fit into the device's memory, it is halved and all is computed again.
        """
        before, seen = {}, {}
        if may_run_out(self._device):
            before, seen = self._forward.copied_buffers(), self._observing.copied()
        while True:
            try:
                microbatches = batch.cut(self._microbatch_size, self._sharing.share)
                return self._differentiate_microbatches(microbatches, batch.batch_size)
            except torch.OutOfMemoryError:
                self._microbatch_size = self._sharing.smaller(self._microbatch_size, self._forward.network)
                self._forward.restore_buffers(before)
                self._observing.restore(seen)

    def _differentiate_microbatches(self, microbatches: Sequence[Microbatch], batch_size: int) -> Tensor:
        """Add up the gradients of the microbatches, and of other workers; return the losses of the microbatches.

        Each is weighted by its examples, or its tokens: the sum is the loss of the whole batch. Observers see them
        one by one, then the sum.
        """
        observing, number = self._observing, self.step + 1
        trial_ids = self.trial_ids.tolist()
        noise = self._problem.draw_noise(self._forward.network, self._study, trial_ids, self.step, batch_size)
        weight = self._weight(microbatches, batch_size)
        self._parameters.start(len(microbatches), are_seen=bool(observing))
        self._forward.begin_step()
        losses = []
        for microbatch in microbatches:
            with self._sharing.beside(microbatch.part, batch_size):
                loss = self._loss_sums(microbatch, noise.of(microbatch.part)) / weight
                self._parameters.differentiate(loss)
            losses.append(loss.detach())
            if observing:
                part = self._problem.weight([microbatch])
                observing.see_microbatch(number, self._parameters, losses[-1], part, weight)
        self._parameters.finish()
        self._forward.end_step(self._sharing.exchange)
        total = losses[0] if len(losses) == 1 else torch.stack(losses).sum(0)
        if observing:
            observing.see_batch(number, self._parameters, total, weight)
        return total

    def _weight(self, microbatches: Sequence[Microbatch], batch_size: int) -> Tensor | int:
        """Return how many examples a batch has, or [K]: how many tokens, which each worker counts in its share."""
        weight = self._problem.weight(microbatches)
        return self._sharing.exchange.sum(weight) if isinstance(weight, Tensor) else batch_size

    def _loss_sums(self, microbatch: Microbatch, noise: Noise) -> Tensor:
        """Return the sums [K] of the losses of some examples, with the graph to differentiate them."""
        with self._autocast:
            outputs = self._problem.outputs(self._forward, microbatch, noise)
        outputs = in_dtype(outputs, self._parameters.values.dtype)
        smoothing = self._timetable.columns.get("label_smoothing")
        if smoothing is None:
            return self._problem.loss_sums(outputs, microbatch)
        assert isinstance(self._problem, Problem)  # of classification: checks/study.py
        return self._problem.smoothed_loss_sums(outputs, microbatch, smoothing)

    def evaluate(self) -> dict[str, np.ndarray]:
        """Return `split/metric` of the live trials, and what observers report."""
        metrics: dict[str, np.ndarray] = {}
        for split, examples in self._problem.evaluated.items():
            with self._autocast:
                values = self._problem.evaluate(self._forward, examples)
            metrics |= {f"{split}/{name}": value for name, value in values.items()}
        return metrics | self._observing.report(len(self.trial_ids))

    def weights(self, trial_id: int) -> dict[str, np.ndarray]:
        """Return the parameters of a trial in training and what it keeps beside them, by their names in its network."""
        (row,) = np.flatnonzero(self.trial_ids == trial_id)
        parameters = self._parameters.layout.segments(self._parameters.values[row : row + 1])
        tensors = {**parameters, **{name: each[row : row + 1] for name, each in self._forward.buffers.items()}}
        return {name: as_numbers(tensor[0]) for name, tensor in tensors.items()}

    def state(self) -> dict[str, np.ndarray]:
        """Return parameters, buffers, all that optimizer and observers remember, and counters.

        The orders of examples follow from the seeds and the clock.
        """
        tensors = {
            "parameters": self._parameters.values,
            **{f"optimizer.{name}": tensor for name, tensor in self._updating.state.items()},
            **{f"buffer.{name}": tensor for name, tensor in self._forward.buffers.items()},
            **{f"observer.{name}": tensor for name, tensor in self._observing.tensors.items()},
        }
        return {
            **self._counters(),
            **{name: as_bits(tensor) for name, tensor in tensors.items()},
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state that `state` returned for the same study and points."""
        self._restore_counters(state)
        self._parameters.values.copy_(torch.from_numpy(state["parameters"]))
        for name, tensor in self._updating.state.items():
            tensor.copy_(from_bits(state[f"optimizer.{name}"], tensor.dtype))
        for name, tensor in self._forward.buffers.items():
            tensor.copy_(from_bits(state[f"buffer.{name}"], tensor.dtype))
        seen = {name: torch.from_numpy(state[f"observer.{name}"]) for name in self._observing.tensors}
        self._observing.restore(seen)

    def _chunk_examples(self) -> int:
        """Return how many examples of each trial are trained on before `advance` returns."""
        most = min(CHUNK_FLOPS / (6 * self._multiplications), CHUNK_INDICES)
        return int(most / len(self.trial_ids))

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
        self._batches.keep(live)
        self._timetable.keep(live)
        self._forward = self._forward.keep(rows)
        self._updating.keep(rows)
        self._observing.keep(rows)
