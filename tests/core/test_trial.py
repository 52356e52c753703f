from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from batchlab.core.trial import Status, Trial
from batchlab.errors import SpecError


def test_statuses_are_those_of_the_published_data():
    assert [str(status) for status in Status] == ["COMPLETE", "INFEASIBLE", "INCOMPLETE"]


def test_a_trial_is_read_back_from_json():
    trial = Trial(
        trial_id=3,
        status=Status.INFEASIBLE,
        metaparameters={"learning_rate": 0.1 + 0.2},
        last_step=40,
        diverged_step=44,
        round=2,
        wall_seconds=1.25,
        environment={"torch": "2.13.0"},
    )

    assert Trial.parse(json.loads(json.dumps(trial.plain())), "trials.json") == trial


def test_what_is_not_known_is_left_out_of_the_record():
    trial = Trial(trial_id=0, status=Status.COMPLETE, metaparameters={}, last_step=10)

    assert trial.plain() == {
        "trial_id": 0,
        "status": "COMPLETE",
        "metaparameters": {},
        "last_step": 10,
        "round": 1,
        "environment": {},
    }


def test_a_finished_trial_is_frozen():
    trial = Trial(trial_id=0, status=Status.COMPLETE, metaparameters={}, last_step=10)

    with pytest.raises(ValidationError, match="frozen"):
        trial.status = Status.INCOMPLETE


@pytest.mark.parametrize("value", [-1, 2**63, 10**30])
@pytest.mark.parametrize("name", ["trial_id", "last_step", "diverged_step", "round"])
def test_a_count_that_no_table_holds_is_refused(name, value):
    with pytest.raises(SpecError, match=name):
        Trial.parse({"trial_id": 0, "status": "COMPLETE", "metaparameters": {}, "last_step": 1, name: value}, "trials")
