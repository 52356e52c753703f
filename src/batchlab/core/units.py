"""Units in which one range serves all batch sizes: what a value in one means at a batch size, and back.

`half_life_examples`: a decay for each update (momentum, beta_1, beta_2, an average) by the number of examples after
which half of it is left. `linear_rule` and `sqrt_rule`: a learning rate by what it would be at batch size 256.
`decay_examples`: a weight decay by the number of examples after which it alone leaves 1/e of a weight; that hangs on
the learning rate of the same point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Unit = Literal["half_life_examples", "linear_rule", "sqrt_rule", "decay_examples"]

DECAY: Unit = "decay_examples"

OF: dict[Unit, tuple[str, ...]] = {
    "half_life_examples": ("momentum", "beta_1", "beta_2", "ema_decay"),
    "linear_rule": ("learning_rate",),
    "sqrt_rule": ("learning_rate",),
    "decay_examples": ("weight_decay",),
}
"""The metaparameters that each unit is for, of all that batchlab has; those of one's own may be in any."""

BASE_BATCH_SIZE = 256
"""The batch size at which the rules change nothing."""


@dataclass(frozen=True)
class Conversion:
    """Both ways between a unit and the metaparameter, at a batch size."""

    to_native: Callable[[float, int], float]
    from_native: Callable[[float, int], float]


CONVERSIONS: dict[Unit, Conversion] = {
    "half_life_examples": Conversion(
        lambda half_life, batch_size: 0.5 ** (batch_size / half_life),
        lambda decay, batch_size: batch_size / -math.log2(decay) if 0 < decay < 1 else 0.0,
    ),
    "linear_rule": Conversion(
        lambda rate, batch_size: rate * batch_size / BASE_BATCH_SIZE,
        lambda rate, batch_size: rate * BASE_BATCH_SIZE / batch_size,
    ),
    "sqrt_rule": Conversion(
        lambda rate, batch_size: rate * math.sqrt(batch_size / BASE_BATCH_SIZE),
        lambda rate, batch_size: rate * math.sqrt(BASE_BATCH_SIZE / batch_size),
    ),
}


def to_native(value: float, unit: Unit, batch_size: int) -> float:
    """Return the metaparameter that a value in a unit means at a batch size.

    >>> to_native(1000, "half_life_examples", 500)
    0.7071067811865476
    >>> to_native(0.1, "linear_rule", 512), to_native(0.1, "sqrt_rule", 1024)
    (0.2, 0.2)
    """
    return CONVERSIONS[unit].to_native(value, batch_size)


def from_native(value: float, unit: Unit, batch_size: int) -> float:
    """Return a metaparameter at a batch size in a unit.

    >>> round(from_native(0.5, "half_life_examples", 64), 9)
    64.0
    """
    return CONVERSIONS[unit].from_native(value, batch_size)


def convert_decay(value: float, learning_rate: float, batch_size: int) -> float:
    """Return the weight decay of a time scale in examples, and the time scale of a weight decay: both ways are one.

    Each update takes the share `learning_rate * decay` of a weight, so batch_size / (learning_rate * decay) examples.

    >>> convert_decay(100_000, 0.01, batch_size=50), convert_decay(0.05, 0.01, batch_size=50)
    (0.05, 100000.0)
    """
    share = learning_rate * value
    return batch_size / share if share else math.inf
