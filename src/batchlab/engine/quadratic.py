"""The noisy quadratic model: a trainer whose curves are exact expectations, computed without sampling.

Zhang et al. 2019. The loss is L(theta) = 1/2 sum_i h_i theta_i^2 with h_i = 1/i, and a batch of B examples
gives the gradient h_i theta_i + e_i with independent noise e_i ~ N(0, c_i/B), c_i = h_i. Every coordinate is a
small linear system on its own: with the state s = theta (sgd), (theta, u) (momentum), and one more entry z for
the average of the iterates where `ema_decay` is a metaparameter, an update is

    s <- A s + n e,    hence    M <- A M A^T + (c/B) n n^T    for the second moments M = E s s^T.

The risk 1/2 sum_i h_i E x_i^2, where x is z if there is one and theta otherwise, is all that is measured.

With the preconditioner H^-p (`preconditioner_power`: 0 is plain, 1/2 like Adam, 1 like Newton) the update
sees the curvature h^(1-p) and the noise c h^(-2p).

Letters: K trials, d coordinates, m entries of the state.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from batchlab.core.clock import Clock, Clocks, Horizon, constant_examples
from batchlab.core.limits import MOST_EXAMPLES
from batchlab.core.study import Study
from batchlab.engine.base import LOSS_BOUND, Point
from batchlab.engine.checks.study import (
    check_given,
    check_goal,
    check_grid,
    check_schedule,
    check_scheduled,
    check_threshold,
    check_values,
)
from batchlab.engine.lockstep import Lockstep
from batchlab.engine.memory import machine_bytes, spell_bytes
from batchlab.errors import SpecError, shown, spelled, unknown_name
from batchlab.optim.batch_sizes import BatchSizes
from batchlab.optim.metaparameter import SHARE, Bounds, Metaparameter
from batchlab.optim.registry import given_metaparameters, load_schedule, workload_metaparameters

Floats = NDArray[np.float64]

DEFAULT_DIMENSION = 100
COPIES = 8
"""Arrays as large as the moments that are in memory while these advance."""

LONGEST_ADVANCE = 4096
"""Updates after which `advance` returns, so that a stop signal does not wait for a long walk."""

OPTIMIZERS = ("sgd", "momentum")
OPTIONAL = {
    "ema_decay": Metaparameter("ema_decay", SHARE),
    "preconditioner_power": Metaparameter("preconditioner_power", Bounds(0)),
}


class QuadraticTrainer:
    """Trains the workload `nqm/quadratic/sgd` or `nqm/quadratic/momentum`; the dataset's option is `dimension`."""

    def check(self, study: Study) -> None:
        """Raise SpecError where the model cannot be computed as the study asks for it."""
        _check_workload(study)
        check_values(study, {**workload_metaparameters(study.workload), **OPTIONAL})
        check_schedule(study, None)
        check_grid(study)
        _check_engine(study)
        check_goal(study.goal, self.metrics(study))
        check_threshold(study.goal)
        if study.confirm is not None:
            raise SpecError("sweep.confirm: the noisy quadratic model is exact and has no seeds: leave `confirm` out.")

    def pack_size(self, study: Study) -> int:
        """Return the number of trials: all of them together."""
        return study.trials

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return `split/risk` for every evaluated split: the risk is an expectation, the same on all of them."""
        return tuple(f"{split}/risk" for split in study.evaluation.splits)

    def program(
        self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None
    ) -> QuadraticProgram:
        """Return the program for these points, at step 0 or as `state` left it."""
        program = QuadraticProgram(study, points, self.metrics(study))
        if state is not None:
            program.restore(state)
        return program


class QuadraticProgram(Lockstep):
    """The second moments of the trials; see `engine.base.Program` for the contract.

    A trial whose updates are all alike jumps to the target in log2(steps) matrix products, if a bound shows
    that its risk stays below LOSS_BOUND on the way; the others walk there one update at a time, so the update
    at which a trial diverges does not depend on when it is evaluated. A scheduled batch size is jumped along
    from one change to the next.
    """

    def __init__(self, study: Study, points: Sequence[Point], metrics: tuple[str, ...]) -> None:
        points = sorted(points, key=lambda point: point.trial_id)
        self._schedule = load_schedule(study.workload.schedule)
        self._horizon = Horizon(study.max_steps, study.batch_size)
        metaparameters = [point.metaparameters for point in points]
        super().__init__(study, points, BatchSizes(study, metaparameters, self._schedule, self._horizon))
        self._metrics = metrics
        self._dynamics = Dynamics.of(study, points)
        self._moments = self._dynamics.initial_moments()

    def evaluate(self) -> dict[str, np.ndarray]:
        """Return the risk of the live trials."""
        return {name: self._dynamics.risk(self._moments) for name in self._metrics}

    @np.errstate(over="ignore", invalid="ignore")  # powers of an unstable map overflow; its trial leaves
    def advance(self, target: int) -> None:
        """Move to step `target`, or LONGEST_ADVANCE updates of one batch size towards it; diverged trials leave."""
        num_steps, batch_size, scheduled = self._ahead(min(target - self.step, LONGEST_ADVANCE))
        first = {name: values[0] for name, values in scheduled.items()}
        contraction, noise = self._dynamics.update(first, batch_size)
        start, self._moments, paths = self._moments, *jump(self._moments, contraction, noise, num_steps)
        is_below = self._dynamics.risk(paths) <= LOSS_BOUND  # false for NaN
        walkers = np.flatnonzero(~(is_below & self._are_alike(scheduled)))
        self._moments[walkers] = start[walkers]
        self._walk(walkers, num_steps, batch_size, scheduled)
        self._clock = Clock(self.step + num_steps, self.examples + constant_examples(num_steps, batch_size))
        self._keep(~np.isin(self.trial_ids, list(self.diverged)))

    def _ahead(self, most_updates: int) -> tuple[int, int, dict[str, Floats]]:
        """Return a number of updates of one batch size, that, and the metaparameters that are scheduled, [n, K, 1]."""
        sizes = self._batch_sizes.ahead(self._clock, most_updates, MOST_EXAMPLES)
        batch_size, same = next(groupby(sizes))
        num_steps = len(list(same))
        values = {name: column[:, 0] for name, column in self._dynamics.columns.items()}
        values["batch_size"] = np.full(len(self.trial_ids), float(self._horizon.batch_size))
        scheduled = self._schedule(values, Clocks.of(self._clock, sizes[:num_steps]), self._horizon)
        return num_steps, batch_size, {n: each[..., None] for n, each in self._batch_sizes.others(scheduled).items()}

    def _are_alike(self, scheduled: Mapping[str, Floats]) -> np.ndarray:
        """Return for which trials [K] nothing changes from one update to the next."""
        changes = [np.any(values != values[0], axis=(0, 2)) for values in scheduled.values()]
        return ~np.any([np.full(len(self.trial_ids), False), *changes], axis=0)

    def _walk(self, rows: np.ndarray, num_steps: int, batch_size: int, scheduled: Mapping[str, Floats]) -> None:
        """Make the updates of the trials at `rows` one by one, each until it diverges."""
        dynamics, moments = self._dynamics.where(rows), self._moments[rows]
        for index in range(num_steps):
            if not len(rows):
                return
            now = {name: values[index, rows] for name, values in scheduled.items()}
            contraction, noise = dynamics.update(now, batch_size)
            moments = transform(contraction, moments) + noise
            is_live = dynamics.risk(moments) <= LOSS_BOUND
            if not is_live.all():
                self.diverged |= dict.fromkeys(self.trial_ids[rows[~is_live]].tolist(), self.step + index + 1)
                rows, moments, dynamics = rows[is_live], moments[is_live], dynamics.where(is_live)
        self._moments[rows] = moments

    def state(self) -> dict[str, np.ndarray]:
        """Return the second moments and the counters."""
        return {**self._counters(), "moments": self._moments}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state that `state` returned for the same study and points."""
        self._restore_counters(state)
        self._moments = np.array(state["moments"])

    def _keep(self, live: np.ndarray) -> None:
        if not live.all():
            self.trial_ids, self._moments = self.trial_ids[live], self._moments[live]
            self._dynamics = self._dynamics.where(live)


@dataclass(frozen=True)
class Dynamics:
    """What one update does to the states of K trials: the matrices of the model."""

    curvature: Floats  # [d]
    columns: Mapping[str, Floats]  # metaparameter -> [K, 1]

    @classmethod
    def of(cls, study: Study, points: Sequence[Point]) -> Dynamics:
        """Return the dynamics of these trials, in their order."""
        dimension = study.workload.dataset.options.get("dimension", DEFAULT_DIMENSION)
        columns = {
            name: np.array([point.metaparameters[name] for point in points], dtype=np.float64)[:, None]
            for name in metaparameter_names(study)
        }
        return cls(1 / np.arange(1.0, dimension + 1), columns)

    def where(self, rows: np.ndarray) -> Dynamics:
        """Return the dynamics of some of the trials."""
        return replace(self, columns={name: column[rows] for name, column in self.columns.items()})

    def initial_moments(self) -> Floats:
        """Return [K, d, m, m]: E theta^2 = 1, no velocity, the average at theta."""
        state = np.array([1.0, *([0.0] if self._has_velocity else []), *([1.0] if self._has_average else [])])
        num_trials, dimension = len(self.columns["learning_rate"]), len(self.curvature)
        return np.tile(np.outer(state, state), (num_trials, dimension, 1, 1))

    def risk(self, moments: Floats) -> Floats:
        """Return 1/2 sum_i h_i E x_i^2 [K]."""
        x = -1 if self._has_average else 0
        risk: Floats = np.sum(0.5 * self.curvature * moments[..., x, x], axis=-1)
        return risk

    def update(self, scheduled: Mapping[str, Floats], batch_size: int) -> tuple[Floats, Floats]:
        """Return A and (c/B) n n^T, both [K, d, m, m], of an update with these metaparameters [K, 1] scheduled."""
        now = {**self.columns, **scheduled}
        power, a = now.get("preconditioner_power", 0.0), now["learning_rate"]
        h = self.curvature ** (1 - power)
        c = self.curvature ** (1 - 2 * power)
        if self._has_velocity:  # u <- b u + g, theta <- theta - a u
            b = now["momentum"]
            contraction, n = [[1 - a * h, -a * b], [h, b]], [-a, np.ones(1)]
        else:  # theta <- theta - a g
            contraction, n = [[1 - a * h]], [-a]
        if self._has_average:  # z <- r z + (1 - r) theta, with the new theta
            r = now["ema_decay"]
            average = [(1 - r) * entry for entry in contraction[0]] + [r]
            contraction, n = [[*row, np.zeros(1)] for row in contraction] + [average], [*n, (1 - r) * n[0]]
        noise = [[c / batch_size * n_i * n_j for n_j in n] for n_i in n]
        return self._stack(contraction), self._stack(noise)

    def _stack(self, rows: Sequence[Sequence[Floats]]) -> Floats:
        """Return the matrix [K, d, m, m] whose entries broadcast to [K, d]."""
        shape = (len(self.columns["learning_rate"]), len(self.curvature))
        return np.stack([np.stack([np.broadcast_to(entry, shape) for entry in row], -1) for row in rows], -2)

    @property
    def _has_velocity(self) -> bool:
        return "momentum" in self.columns

    @property
    def _has_average(self) -> bool:
        return "ema_decay" in self.columns


def transform(matrix: Floats, moments: Floats) -> Floats:
    """Return the second moments of `matrix` s, given those of s."""
    return matrix @ moments @ matrix.swapaxes(-1, -2)


def jump(moments: Floats, contraction: Floats, noise: Floats, num_steps: int) -> tuple[Floats, Floats]:
    """Return the moments after `num_steps` equal updates, and upper bounds of the diagonal on the way.

    n updates are one affine map M -> A^n M (A^n)^T + S_n, and two of these in a row are
    A^2n = A^n A^n and S_2n = A^n S_n (A^n)^T + S_n, so the binary digits of `num_steps` name the maps to use.
    S_n only grows with n, and |A^k| for all k <= n is below `reach`, which bounds the moments within a map.
    """
    power, added = contraction, noise
    reach = np.maximum(np.eye(contraction.shape[-1]), np.abs(contraction))
    bound = np.zeros_like(moments)
    while True:
        if num_steps % 2:
            bound = np.maximum(bound, transform(reach, np.abs(moments)) + added)
            moments = transform(power, moments) + added
        num_steps //= 2
        if not num_steps:
            return moments, bound
        reach = np.maximum(reach, reach @ np.abs(power))
        added = transform(power, added) + added
        power = power @ power


def metaparameter_names(study: Study) -> list[str]:
    """Return the metaparameters of the study's trials, fixed and searched."""
    return [*given_metaparameters(study.workload), *study.search_space.names]


def _check_workload(study: Study) -> None:
    """Raise SpecError where the noisy quadratic model has no such model, optimizer, option or metaparameter."""
    workload = study.workload
    _check_names("model", [workload.model.name], ["quadratic"])
    _check_names("model option", workload.model.options, ["(none)"])
    _check_names("dataset option", workload.dataset.options, ["dimension"])
    _check_names("optimizer", [workload.optimizer.name], OPTIMIZERS)
    check_scheduled(study)
    dimension = workload.dataset.options.get("dimension", DEFAULT_DIMENSION)
    if type(dimension) is not int or dimension < 1:
        raise SpecError(
            f"workload.dataset.dimension = {shown(spelled(dimension))} is not a whole number of at least 1."
        )
    needed = workload_metaparameters(workload)
    _check_names("metaparameter", metaparameter_names(study), [*needed, *OPTIONAL])
    check_given(study, needed.values())


def _check_engine(study: Study) -> None:
    """Check that the model is computed on the processor, and fits into the memory."""
    device, pack_size = study.engine.get("device", "auto"), study.engine.get("pack_size", "auto")
    if device not in ("auto", "cpu"):
        raise SpecError(
            f'engine.device = "{shown(device)}": the noisy quadratic model is computed on the processor: use "cpu".'
        )
    trials = study.trials if pack_size == "auto" else min(int(pack_size), study.num_points)
    dimension = study.workload.dataset.options.get("dimension", DEFAULT_DIMENSION)
    entries = 1 + sum(name in metaparameter_names(study) for name in ("momentum", "ema_decay"))
    needed, memory = 8 * COPIES * trials * dimension * entries**2, machine_bytes()
    if needed > memory:
        raise SpecError(
            f"{trials:,} trials of dimension {dimension:,} at once take {spell_bytes(needed)}, and there are"
            f" {spell_bytes(memory)}: set `engine.pack_size`, or take fewer dimensions."
        )


def _check_names(kind: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise SpecError(unknown_name(kind, name, known))
