"""Schedules: from the clock before an update to the metaparameters of that update. For networks and for the quadratic
model alike: plain arithmetic on a few numbers, K trials and many updates at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from batchlab.core.clock import Clocks, Horizon
from batchlab.errors import SpecError

Values = Mapping[str, np.ndarray]
Schedule = Callable[[Values, Clocks, Horizon], Values]
"""From metaparameters [K] and the clocks of n updates to those metaparameters that are scheduled, [n, K] each.

The precision is that of the metaparameters. A schedule may set any of them, and `batch_size`, which is among them: then
its option `of` is "batch_size", and it is asked for one trial.
"""

ROUNDING = 1e-7
"""More than the relative error of a number in single precision."""


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


def staircase(of: str = "learning_rate", unit: str = "examples") -> Schedule:
    """Return x_0 f^n after n whole stages of length l, up to the limit m where f > 1, and down to it where f < 1.

    X is the name `of` a metaparameter, or `batch_size`; f is `stage_factor`, l `stage_length`, counted in the `unit`,
    and m `stage_limit`. An x_0 that is beyond the limit stays as it is.
    """

    def schedule(values: Values, clocks: Clocks, horizon: Horizon) -> Values:
        start, factor, limit = values[of], values["stage_factor"], values["stage_limit"]
        # A whole number of stages may come out a little short, as of 0.1 epochs.
        whole = _done(clocks, horizon, unit)[:, None] / values["stage_length"].astype(np.float64) * (1 + ROUNDING)
        with np.errstate(over="ignore", invalid="ignore"):
            reached = np.where(start == 0, start, start * factor ** np.floor(whole).astype(start.dtype))
        grown, fallen = np.minimum(reached, np.maximum(start, limit)), np.maximum(reached, np.minimum(start, limit))
        return {of: np.where(factor >= 1, grown, fallen)}

    return schedule


def _done(clocks: Clocks, horizon: Horizon, unit: str) -> np.ndarray:
    """Return what is done before each update [n], in a unit."""
    if unit == "epochs":
        if horizon.epoch_examples is None:
            raise SpecError('schedule: unit = "epochs": there is no training set here; use "examples" or "steps".')
        return clocks.examples / horizon.epoch_examples
    return clocks.step if unit == "steps" else clocks.examples
