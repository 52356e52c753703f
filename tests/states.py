"""Programs trained to a step, and whether two of them are in the same state."""

from __future__ import annotations

import numpy as np

from batchlab.engine.base import Program

State = dict[str, np.ndarray]


def trained(program: Program, target: int) -> State:
    """Return the state of a program at a step."""
    while program.step < target:
        program.advance(target)
    return program.state()


def equal(first: State, second: State) -> bool:
    """Return whether two states are the same, to the bit."""
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)
