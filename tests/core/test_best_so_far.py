"""The rows at which a metric improved: by hand."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.best_so_far import BestSoFar
from batchlab.core.measurement import Curve, Measurements
from batchlab.core.result import StudyResult
from batchlab.core.space import SearchSpace
from batchlab.core.trial import Status, Trial

NAN = float("nan")


def make_study(curves, batch_size=8, statuses=None):
    """Return a study of trials with the given values at steps 0, 10, 20, ..."""
    statuses = statuses or [Status.COMPLETE] * len(curves)
    trials = [
        Trial(trial_id=trial_id, status=status, metaparameters={}, last_step=0)
        for trial_id, status in zip(curves, statuses, strict=True)
    ]
    rows = Measurements.of(
        [
            Curve(trial_id, 10 * np.arange(len(values)), {"val/error": np.array(values)})
            for trial_id, values in curves.items()
        ]
    )
    return StudyResult("a/b/c", batch_size, tuple(trials), rows, SearchSpace({}), end_step=30)


def rows(best):
    return list(zip(best.trial_id.tolist(), best.order.tolist(), best.step.tolist(), best.value.tolist(), strict=True))


def test_a_row_counts_where_it_is_strictly_better_than_all_before():
    best = BestSoFar.of(make_study({3: [0.9, 0.5, 0.5, 0.7, 0.4]}), "val/error", True)

    assert rows(best) == [(3, 0, 0, 0.9), (3, 0, 10, 0.5), (3, 0, 40, 0.4)]


def test_high_may_be_good():
    best = BestSoFar.of(make_study({3: [0.1, 0.5, 0.4, 0.6]}), "val/error", False)

    assert rows(best) == [(3, 0, 0, 0.1), (3, 0, 10, 0.5), (3, 0, 30, 0.6)]


def test_nan_never_counts_and_hides_nothing():
    best = BestSoFar.of(make_study({1: [NAN, 0.5, NAN, 0.4]}), "val/error", True)

    assert rows(best) == [(1, 0, 10, 0.5), (1, 0, 30, 0.4)]


def test_only_complete_trials_count_and_each_starts_anew():
    """Trial 2 diverged, trial 4 has no rows: neither lends its rows nor its best to the next one."""
    study = make_study(
        {1: [0.5, 0.2], 2: [0.1], 4: [], 5: [0.9, 0.8], 7: [0.01]},
        statuses=[Status.COMPLETE, Status.INFEASIBLE, Status.COMPLETE, Status.COMPLETE, Status.INCOMPLETE],
    )
    best = BestSoFar.of(study, "val/error", True)

    assert rows(best) == [(1, 0, 0, 0.5), (1, 0, 10, 0.2), (5, 2, 0, 0.9), (5, 2, 10, 0.8)]


@pytest.mark.parametrize("curves", [{}, {1: []}])
def test_a_study_without_rows_has_none(curves):
    assert len(BestSoFar.of(make_study(curves), "val/error", True)) == 0


def test_a_metric_that_was_not_measured_has_no_rows():
    assert len(BestSoFar.of(make_study({1: [0.5]}), "val/loss", True)) == 0


def test_studies_are_joined_by_batch_size():
    parts = [BestSoFar.of(make_study({1: [0.5]}, batch_size), "val/error", True) for batch_size in (16, 4)]
    whole = BestSoFar.join(parts)

    assert whole.batch_size.tolist() == [4, 16]
    assert whole.end_steps == {4: 30, 16: 30}
