"""The observers of one program: their states, and what they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from batchlab.engine.global_random import fork_rng
from batchlab.engine.observer import Observer, Seen
from batchlab.engine.parameters import ParameterMatrix
from batchlab.errors import TrainerError, shown, unknown_name
from batchlab.optim.base import State

Look = Callable[[State, Seen], None]


class Observing:
    """Some observers of K trials; false where there are none, and then nobody needs to ask it for anything."""

    def __init__(self, observers: Sequence[Observer], parameters: ParameterMatrix) -> None:
        self._observers = tuple(observers)
        self._states = [_checked_start(each, parameters.values.detach().clone()) for each in observers]
        self._kinds = [_kinds(state) for state in self._states]

    def __bool__(self) -> bool:
        return bool(self._observers)

    def see_microbatch(
        self, step: int, parameters: ParameterMatrix, losses: Tensor, weight: Tensor | int, whole: Tensor | int
    ) -> None:
        """Show what is in the matrix now: the gradients of a part of a batch that has `weight` of the `whole`."""
        seen = _seen(step, parameters, losses, weight, whole)
        for observer, state in zip(self._observers, self._states, strict=True):
            _show(observer, observer.see_microbatch, state, seen)

    def see_batch(self, step: int, parameters: ParameterMatrix, losses: Tensor, whole: Tensor | int) -> None:
        """Show what is in the matrix now: the gradients of a whole batch."""
        seen = _seen(step, parameters, losses, whole, whole)
        for observer, state, kinds in zip(self._observers, self._states, self._kinds, strict=True):
            _show(observer, observer.see_batch, state, seen)
            _check_kinds(observer, state, kinds)

    @torch.no_grad()
    def report(self, num_trials: int) -> dict[str, np.ndarray]:
        """Return what they tell of the trials now: name -> [K] float64. Nothing is changed by it."""
        metrics: dict[str, np.ndarray] = {}
        for observer, state in zip(self._observers, self._states, strict=True):
            told = observer.report({name: tensor.clone() for name, tensor in state.items()})
            metrics |= {name: _column(observer, name, told[name], num_trials) for name in _checked(observer, told)}
        return metrics

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All that they remember, [K, ...] each."""
        return {
            f"{number}.{name}": tensor
            for number, state in enumerate(self._states)
            for name, tensor in sorted(state.items())
        }

    def copied(self) -> dict[str, Tensor]:
        """Return all that they remember as it is now."""
        return {name: tensor.clone() for name, tensor in self.tensors.items()}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Let them remember what was copied."""
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])

    def keep(self, rows: Tensor) -> None:
        """Go on with some of the trials."""
        self._states = [{name: tensor[rows] for name, tensor in state.items()} for state in self._states]
        self._kinds = [_kinds(state) for state in self._states]


def _seen(step: int, parameters: ParameterMatrix, losses: Tensor, weight: Tensor | int, whole: Tensor | int) -> Seen:
    gradients = parameters.gradients
    weights = torch.as_tensor(weight, dtype=gradients.dtype, device=gradients.device).expand(len(gradients))
    wholes = torch.as_tensor(whole, dtype=gradients.dtype, device=gradients.device)
    share = torch.where(wholes > 0, weights / wholes, 0.0)
    return Seen(step, gradients, losses.detach(), weights, share, parameters.layout)


@torch.no_grad()
def _show(observer: Observer, look: Look, state: State, seen: Seen) -> None:
    """Let an observer look; TrainerError where it changes what it sees. What it draws at random is its own affair."""
    before = seen.gradients._version
    with fork_rng(seen.gradients.device):
        look(state, seen)
    if seen.gradients._version != before:
        name = type(observer).__name__
        raise TrainerError(f"{name} has changed the gradients that it was shown: let it change a copy, `.clone()`.")


def _checked_start(observer: Observer, parameters: Tensor) -> State:
    state, name, num_trials = observer.start(parameters), type(observer).__name__, len(parameters)
    if not isinstance(state, dict):
        raise TrainerError(f"{name}.start returned {type(state).__name__}: give a dict of tensors by name.")
    for key, tensor in state.items():
        if not isinstance(key, str) or not isinstance(tensor, Tensor) or tensor.shape[:1] != (num_trials,):
            what = f"shape {tuple(tensor.shape)}" if isinstance(tensor, Tensor) else type(tensor).__name__
            raise TrainerError(
                f"{name}.start: {shown(key)} is {what}: give a tensor whose first axis has one entry for each trial,"
                " len(parameters)."
            )
    return state


def _kinds(state: State) -> dict[str, tuple[object, ...]]:
    return {
        name: (each.dtype, each.shape, each.device) if isinstance(each, Tensor) else (type(each),)
        for name, each in state.items()
    }


def _check_kinds(observer: Observer, state: State, kinds: Mapping[str, tuple[object, ...]]) -> None:
    """Check that a state is still of the tensors that it started with: a checkpoint holds no others."""
    now = _kinds(state)
    for name in {**kinds, **now}:
        if now.get(name) != kinds.get(name):
            raise TrainerError(
                f"{type(observer).__name__}: {shown(name)} of its state is no longer what `start` returned: keep names,"
                " shapes and types as they are there."
            )


def _checked(observer: Observer, told: object) -> list[str]:
    """Return the names of the metrics that an observer tells."""
    place = f"{type(observer).__name__}.report"
    if not isinstance(told, Mapping):
        raise TrainerError(f"{place} returned {type(told).__name__}: give a dict from metric to a tensor.")
    for name in told:
        if name not in observer.metrics:
            raise TrainerError(f"{place}: {unknown_name('metric', str(name), observer.metrics)}")
    return list(told)


def _column(observer: Observer, name: str, values: object, num_trials: int) -> np.ndarray:
    if not isinstance(values, Tensor) or values.shape != (num_trials,):
        what = f"of shape {tuple(values.shape)}" if isinstance(values, Tensor) else type(values).__name__
        raise TrainerError(
            f"{type(observer).__name__}.report: {shown(name)} is {what}: give a tensor of {num_trials}, one number for"
            " each trial."
        )
    return values.double().cpu().numpy()
