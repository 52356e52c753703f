from __future__ import annotations

import numpy as np

from batchlab.core.measurement import Curve, Measurements
from batchlab.core.result import StudyResult
from batchlab.core.space import SearchSpace
from batchlab.core.trial import Status, Trial

STATUSES = (Status.COMPLETE, Status.INFEASIBLE, Status.COMPLETE, Status.INCOMPLETE, Status.COMPLETE)


def make_result() -> StudyResult:
    trials = tuple(
        Trial(trial_id=i, status=status, metaparameters={}, last_step=1) for i, status in enumerate(STATUSES)
    )
    curves = [Curve(trial.trial_id, np.array([0, 1]), {"val/risk": np.array([2.0, 1.0])}) for trial in trials]
    return StudyResult("nqm/quadratic/sgd", 4, trials, Measurements.of(curves), SearchSpace({}), 1)


def test_the_first_complete_trials_skip_the_others():
    result = make_result()

    assert [trial.trial_id for trial in result.first_complete(2)] == [0, 2]
    assert [trial.trial_id for trial in result.first_complete()] == [0, 2, 4]
    assert [trial.trial_id for trial in result.first_complete(99)] == [0, 2, 4]


def test_trials_are_counted_by_status():
    assert [make_result().count(status) for status in Status] == [3, 1, 1]


def test_rows_of_some_trials():
    result = make_result()

    assert result.rows_of(result.first_complete(2)).trial_id.tolist() == [0, 0, 2, 2]
    assert len(result.rows_of(())) == 0
