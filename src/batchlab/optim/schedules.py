"""Learning rate schedules: functions from the step (updates done before this one, from 0) to the rate."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from batchlab.optim.base import Metaparameters

Schedule = Callable[[Metaparameters, int], Tensor]


def constant(metaparameters: Metaparameters, step: int) -> Tensor:
    """Return the initial learning rate, always."""
    return metaparameters["learning_rate"]


def linear_decay(metaparameters: Metaparameters, step: int) -> Tensor:
    """Return eta_0 (1 - (1 - alpha) t/T) up to T = `learning_rate_decay_steps`, and alpha eta_0 after it.

    alpha is `end_learning_rate_factor`. (The paper's schedule for ResNet-8, ResNet-50 and VGG-11.)
    """
    done = (step / metaparameters["learning_rate_decay_steps"]).clamp(max=1.0)
    return metaparameters["learning_rate"] * (1 - (1 - metaparameters["end_learning_rate_factor"]) * done)
