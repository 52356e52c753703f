"""What our programs have in common: trials in lockstep, those that have left, and the clock."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from batchlab.core.clock import Clock, constant_examples
from batchlab.core.study import Study
from batchlab.engine.base import Point
from batchlab.optim.batch_sizes import BatchSizes


class Lockstep(ABC):
    """A program that counts; see `engine.base.Program` for the contract."""

    is_ours = True
    """A live trial may measure what is no number, of finite parameters: its next loss shows that it has diverged."""

    def __init__(self, study: Study, points: Sequence[Point], batch_sizes: BatchSizes) -> None:
        self.trial_ids = np.array([point.trial_id for point in points], dtype=np.int64)
        self.diverged: dict[int, int] = {}
        self._study, self._batch_sizes, self._clock = study, batch_sizes, Clock()

    @property
    def step(self) -> int:
        """Updates done so far."""
        return self._clock.step

    @property
    def examples(self) -> int:
        """Examples that each trial has seen so far, repeats counted."""
        return self._clock.examples

    @property
    def is_spent(self) -> bool:
        """Whether the next update would pass the limit of examples."""
        return self._batch_sizes.is_spent(self._clock)

    @abstractmethod
    def state(self) -> dict[str, np.ndarray]:
        """Return everything needed to go on from here."""

    @abstractmethod
    def _keep(self, live: np.ndarray) -> None:
        """Go on with the trials where `live` [K] is true."""

    def _counters(self) -> dict[str, np.ndarray]:
        """Return the part of a state that is counted here."""
        return {
            "step": np.array(self.step),
            "examples": np.array(self.examples),
            "trial_ids": self.trial_ids,
            "diverged": np.array(list(self.diverged.items()), dtype=np.int64).reshape(-1, 2),
        }

    def _restore_counters(self, state: Mapping[str, np.ndarray]) -> None:
        """Take up trials and clock of a state of this program's; ValueError where it is none."""
        self._keep(np.isin(self.trial_ids, state["trial_ids"]))
        state = _with_examples(state, self._study)
        _check_state(state, self.state())
        self._clock = Clock(int(state["step"]), int(state["examples"]))
        self.diverged = {int(trial_id): int(step) for trial_id, step in state["diverged"]}


def _with_examples(state: Mapping[str, np.ndarray], study: Study) -> Mapping[str, np.ndarray]:
    """Return a state with its examples: from before they were counted, when all updates had one batch size."""
    if "examples" in state or "step" not in state or study.workload.schedules_batch_size:
        return state
    return {**state, "examples": np.array(constant_examples(int(state["step"]), study.batch_size))}


def _check_state(state: Mapping[str, np.ndarray], own: Mapping[str, np.ndarray]) -> None:
    """Raise ValueError where arrays have other names, types or shapes than a program's `own`, or are of other trials.

    The table of trials that have diverged may have any number of rows.
    """
    told = {"lacks": own.keys() - state.keys(), "should not have": state.keys() - own.keys()}
    if any(told.values()):
        raise ValueError(" and ".join(f"it {word} {', '.join(sorted(names))}" for word, names in told.items() if names))
    for name, array in own.items():
        shape = (len(state[name]), 2) if name == "diverged" and state[name].ndim == 2 else array.shape
        if (state[name].dtype, state[name].shape) != (array.dtype, shape):
            raise ValueError(f"{name} is {state[name].dtype} {state[name].shape}, not {array.dtype} {shape}")
    if not np.array_equal(state["trial_ids"], own["trial_ids"]):
        raise ValueError("its trials are not those of the pack, in order")
