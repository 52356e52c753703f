"""What was measured in a study, and what to say of a metric that was not."""

from __future__ import annotations

import numpy as np

from batchlab.core.measurement import Measurements
from batchlab.errors import InputError, unknown_name


def check_measured(measurements: Measurements, metric: str) -> None:
    """Raise InputError where no row has a value of `metric`; the message lists the measured ones.

    A study whose trials all diverged at once has no rows: nothing can be said of its metrics.

    >>> from batchlab.analysis import example_study
    >>> check_measured(example_study().measurements, "val/loss")
    Traceback (most recent call last):
        ...
    batchlab.errors.InputError: goal: Unknown metric "val/loss". Known: val/classification_error.
    """
    if len(measurements) == 0 or is_measured(measurements, metric):
        return
    measured = [name for name in measurements.metrics if is_measured(measurements, name)]
    if not measured:
        raise InputError(f"{metric} was not measured: nothing was, up to the step to which trials trained.")
    raise InputError(f"goal: {unknown_name('metric', metric, measured)}")


def is_measured(measurements: Measurements, metric: str) -> bool:
    """Return whether any row has a value of `metric`.

    >>> from batchlab.analysis import example_study
    >>> is_measured(example_study().measurements, "val/classification_error")
    True
    """
    return metric in measurements.metrics and not bool(np.isnan(measurements.metrics[metric]).all())
