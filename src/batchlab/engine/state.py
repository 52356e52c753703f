"""Whether the arrays of a state are those of the program that is to go on from it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from batchlab.core.clock import constant_examples
from batchlab.core.study import Study


def with_examples(state: Mapping[str, np.ndarray], study: Study) -> Mapping[str, np.ndarray]:
    """Return a state with its examples: from before they were counted, when all updates had one batch size."""
    if "examples" in state or "step" not in state or study.workload.schedules_batch_size:
        return state
    return {**state, "examples": np.array(constant_examples(int(state["step"]), study.batch_size))}


def check_state(state: Mapping[str, np.ndarray], own: Mapping[str, np.ndarray]) -> None:
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
