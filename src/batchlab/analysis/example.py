"""A small workload written by hand, for the examples in the docstrings of this room."""

from __future__ import annotations

import numpy as np

from batchlab.core.measurement import Curve, Measurements
from batchlab.core.result import StudyResult
from batchlab.core.space import Range, SearchSpace
from batchlab.core.trial import Status, Trial

_STRETCH = {16: 4.0, 64: 1.0, 256: 0.5}
"""Batch size -> by how much its curves are longer than those of batch size 64."""

_POINTS: tuple[dict[str, float], ...] = (
    {"learning_rate": 0.01, "momentum": 0.9, "label_smoothing": 0.0},
    {"learning_rate": 0.03, "momentum": 0.9},
    {"learning_rate": 1.0, "momentum": 0.99, "label_smoothing": 0.1},
    {"learning_rate": 0.03, "momentum": 0.95, "label_smoothing": 0.1},
)
_ERRORS = ((0.9, 0.3, 0.08, 0.04), (0.9, 0.2, 0.09, 0.06), (0.9, 0.05), (0.9, np.nan, 0.07, 0.05))
_DIVERGED = 2
_METRIC = "val/classification_error"


def example_study(batch_size: int = 64) -> StudyResult:
    """Return the example's study of batch size 16, 64 or 256.

    Trial 2 meets most goals first and then diverges; the others complete. At batch size 64 they are measured at steps
    0, 100, 200 and 300; batch size 16 takes four times as long, 256 half as long.

    ======  ==========  =============  ========  ===============  ================================
    trial   status      learning rate  momentum  label smoothing  val/classification_error
    ======  ==========  =============  ========  ===============  ================================
    0       COMPLETE    0.01           0.9       0.0              0.9, 0.3, 0.08, 0.04
    1       COMPLETE    0.03           0.9       (not searched)   0.9, 0.2, 0.09, 0.06
    2       INFEASIBLE  1.0            0.99      0.1              0.9, 0.05, diverged
    3       COMPLETE    0.03           0.95      0.1              0.9, (not measured), 0.07, 0.05
    ======  ==========  =============  ========  ===============  ================================

    >>> example_study(batch_size=256).end_step
    150
    """
    spacing = int(100 * _STRETCH[batch_size])
    curves = [
        Curve(trial_id, spacing * np.arange(len(errors)), {_METRIC: np.array(errors)})
        for trial_id, errors in enumerate(_ERRORS)
    ]
    return StudyResult(
        workload="digits/fc_128/nesterov_momentum",
        batch_size=batch_size,
        trials=tuple(_trial(curve) for curve in curves),
        measurements=Measurements.of(curves),
        search_space=SearchSpace({"learning_rate": Range(min=1e-3, max=10.0, scale="log")}),
        end_step=3 * spacing,
    )


def example_workload() -> list[StudyResult]:
    """Return the example's three studies, in ascending batch size.

    >>> [study.batch_size for study in example_workload()]
    [16, 64, 256]
    """
    return [example_study(batch_size) for batch_size in _STRETCH]


def _trial(curve: Curve) -> Trial:
    is_diverged = curve.trial_id == _DIVERGED
    last_step = int(curve.steps[-1])
    return Trial(
        trial_id=curve.trial_id,
        status=Status.INFEASIBLE if is_diverged else Status.COMPLETE,
        metaparameters=dict(_POINTS[curve.trial_id]),
        last_step=last_step,
        diverged_step=last_step + 1 if is_diverged else None,
    )
