"""Schedules: from the clock before an update to the metaparameters of that update. For networks and for the quadratic
model alike: plain arithmetic on a few numbers, K trials and many updates at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from batchlab.core.clock import Clocks, Horizon

Values = Mapping[str, np.ndarray]
Schedule = Callable[[Values, Clocks, Horizon], Values]
"""From metaparameters [K] and the clocks of n updates to those metaparameters that are scheduled, [n, K] each.

The precision is that of the metaparameters. A schedule may set any of them, `batch_size` too, which is among them.
"""


def constant() -> Schedule:
    """Return the schedule that leaves every metaparameter as it is."""
    return lambda values, clocks, horizon: {}


def linear_decay(of: str = "learning_rate") -> Schedule:
    """Return x_0 (1 - (1 - alpha) t/T) up to T = `X_decay_steps`, and alpha x_0 after it; alpha is `end_X_factor`.

    X is the name of a metaparameter. (The paper's schedule of the learning rate for ResNet-8, ResNet-50 and VGG-11.)
    """

    def schedule(values: Values, clocks: Clocks, horizon: Horizon) -> Values:
        start, duration, alpha = values[of], values[f"{of}_decay_steps"], values[f"end_{of}_factor"]
        done = np.minimum(clocks.step[:, None].astype(start.dtype) / duration, 1)
        return {of: start * (1 - (1 - alpha) * done)}

    return schedule
