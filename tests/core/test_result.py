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


def make_grown() -> StudyResult:
    """Return a study of batch size 4 whose two complete trials have doubled it at different times."""
    examples = {0: [0, 8, 24, 56], 1: [0, 8, 999, 1999], 2: [0, 16, 48, 112]}
    curves = [
        Curve(i, np.array([0, 2, 4, 8]), {"val/risk": np.ones(4)}, np.array(each)) for i, each in examples.items()
    ]
    trials = tuple(
        Trial(trial_id=i, status=Status.INFEASIBLE if i == 1 else Status.COMPLETE, metaparameters={}, last_step=8)
        for i in examples
    )
    return StudyResult("nqm/quadratic/sgd", 4, trials, Measurements.of(curves), SearchSpace({}), 8)


def test_a_result_tells_its_examples_whoever_has_stored_it():
    assert make_result().examples.tolist() == [0, 4] * 5
    assert make_grown().examples.tolist()[:4] == [0, 8, 24, 56]


def test_examples_of_the_end_are_those_that_every_complete_trial_has_seen():
    assert (make_result().end_examples, make_grown().end_examples) == (4, 56)
    assert (make_result().has_one_batch_size, make_grown().has_one_batch_size) == (True, False)


def test_how_far_a_budget_of_examples_leads():
    assert [make_result().end_step_within(examples) for examples in (3, 4, 9)] == [0, 1, 2]
    assert [make_grown().end_step_within(examples) for examples in (7, 24, 56, 1e9)] == [0, 4, 8, 8]


def test_counts_that_repeat_between_reports_are_no_change_of_batch_size():
    """A loop that reports its examples with every second row: 4 for each step all the same."""
    steps = np.array([0, 1, 2, 3, 4])

    def has_one(examples):
        curve = Curve(0, steps, {"val/risk": np.ones(5)}, np.array(examples))
        trial = Trial(trial_id=0, status=Status.COMPLETE, metaparameters={}, last_step=4)
        return StudyResult("a/b/c", 4, (trial,), Measurements.of([curve]), SearchSpace({}), 4).has_one_batch_size

    assert has_one([0, 4, 8, 12, 16])
    assert has_one([0, 0, 8, 8, 16])
    assert not has_one([0, 4, 8, 16, 24])
