"""Finished packs and checkpoints that are not what their name and their study say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batchlab.core.measurement import Measurements
from batchlab.errors import DamagedError
from batchlab.store.pack_check import check_checkpoint, check_part

METRIC = "val/classification_error"


@pytest.fixture
def study(make_sweep):
    """Evaluated at 0, 10 and 20; the goal is met below 0.5."""
    return make_sweep().study(8)


@pytest.fixture
def rows():
    return Measurements(
        np.array([0, 0, 0, 1, 1]), np.array([0, 10, 20, 0, 10]), {METRIC: np.array([0.9, 0.4, 0.3, 0.9, 0.8])}
    )


@pytest.fixture
def record():
    outcomes = [
        {"trial_id": 0, "last_step": 20, "goal_step": 10, "diverged_step": None},
        {"trial_id": 1, "last_step": 13, "goal_step": None, "diverged_step": 13},
    ]
    return {"outcomes": outcomes, "trained_steps": 33, "wall_seconds": 1.5, "environment": {}}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "parts" / "trials-0-1.parquet"


def test_a_sound_pack_passes(study, rows, record, path):
    check_part(path, rows, record, study)
    check_part(path.with_name("before-0.parquet"), rows, record, study)
    check_part(path.with_name("trials-0-1.2.parquet"), rows, record, study)


def test_the_last_row_may_lie_off_the_grid_where_a_budget_ended(study, record, path):
    rows = Measurements(np.array([0, 0, 0]), np.array([0, 10, 15]), {METRIC: np.array([0.9, 0.8, 0.4])})
    outcome = {"trial_id": 0, "last_step": 15, "goal_step": 15}

    check_part(path.with_name("trials-0.parquet"), rows, {**record, "outcomes": [outcome]}, study)


def change(record, trial, **values):
    outcomes = [dict(outcome) for outcome in record["outcomes"]]
    outcomes[trial] |= values
    return {**record, "outcomes": outcomes}


RECORDS = {
    "no outcomes": lambda record: {**record, "outcomes": []},
    "outcomes of another kind": lambda record: {**record, "outcomes": {"trial_id": 0}},
    "a goal's changed digit": lambda record: change(record, 0, goal_step=20),
    "a goal that was not met": lambda record: change(record, 1, goal_step=10),
    "another last step": lambda record: change(record, 0, last_step=10),
    "a divergence before the last row": lambda record: change(record, 1, diverged_step=5, last_step=5),
    "ids doubled": lambda record: {**record, "outcomes": [*record["outcomes"], record["outcomes"][0]]},
    "a trial without rows": lambda record: change(record, 1, trial_id=2),
    "a trial removed": lambda record: {**record, "outcomes": record["outcomes"][:1]},
    "text for a number": lambda record: change(record, 0, last_step="20"),
    "true for a number": lambda record: change(record, 0, trial_id=True),
    "an unknown field": lambda record: change(record, 0, colour=1),
    "time that runs backwards": lambda record: {**record, "wall_seconds": -1},
    "time without end": lambda record: {**record, "wall_seconds": float("inf")},
    "no place": lambda record: {**record, "environment": None},
    "steps of another kind": lambda record: {**record, "trained_steps": "33"},
}


@pytest.mark.parametrize("change", RECORDS.values(), ids=RECORDS)
def test_a_record_that_its_rows_do_not_bear_out_is_named(study, rows, record, path, change):
    with pytest.raises(DamagedError, match="trials-0-1.parquet is damaged"):
        check_part(path, rows, change(record), study)


ROWS = {
    "a step off the grid": lambda rows: replace(rows, step=np.array([0, 11, 20, 0, 10])),
    "a row removed": lambda rows: rows.where(rows.step != 0),
    "a row in the middle removed": lambda rows: rows.where((rows.step != 10) | (rows.trial_id == 1)),
    "a row twice": lambda rows: replace(rows, step=np.array([0, 10, 10, 0, 10])),
    "rows out of order": lambda rows: replace(rows, trial_id=np.array([1, 1, 1, 0, 0])),
    "a negative step": lambda rows: replace(rows, step=np.array([-10, 0, 20, 0, 10])),
    "a step past the budget": lambda rows: replace(rows, step=np.array([0, 10, 10**15, 0, 10])),
    "another trial": lambda rows: replace(rows, trial_id=np.array([0, 0, 0, 5, 5])),
    "another metric": lambda rows: replace(rows, metrics={"val/loss": rows.metrics[METRIC]}),
}


@pytest.mark.parametrize("change", ROWS.values(), ids=ROWS)
def test_rows_that_cannot_be_are_named(study, rows, record, path, change):
    with pytest.raises(DamagedError, match="trials-0-1.parquet is damaged"):
        check_part(path, change(rows), record, study)


@pytest.mark.parametrize("name", ["trials-0.parquet", "trials-2-3.parquet", "trials-0-1.x.parquet"])
def test_a_pack_by_another_name_than_its_trials_is_named(study, rows, record, path, name):
    with pytest.raises(DamagedError, match="it is of other trials than its name says"):
        check_part(path.with_name(name), rows, record, study)


def test_a_trial_that_the_study_has_not_is_named(study, rows, record, path):
    moved = change(change(record, 0, trial_id=100), 1, trial_id=101)
    rows = replace(rows, trial_id=rows.trial_id + 100)

    with pytest.raises(DamagedError, match="it is of trials that the study has not"):
        check_part(path.with_name("trials-100-101.parquet"), rows, moved, study)


def test_replicates_and_trials_are_not_taken_for_each_other(study, rows, record, tmp_path):
    with pytest.raises(DamagedError, match="it is of trials that the study has not"):
        check_part(tmp_path / "confirming" / "parts" / "trials-0-1.parquet", rows, record, study)


@pytest.fixture
def arrays(rows):
    columns = {"trial_id": rows.trial_id, "step": rows.step, **rows.metrics}
    return {**{f"rows.{name}": column for name, column in columns.items()}, "seconds": np.array(2.5)}


def test_a_sound_checkpoint_passes(study, arrays, tmp_path):
    check_checkpoint(tmp_path / "trials-0-1.npz", arrays, study)


CHECKPOINTS = {
    "no trials": {"rows.trial_id": None},
    "no rows": {"rows.trial_id": np.empty(0, np.int64), "rows.step": np.empty(0, np.int64)},
    "trials as fractions": {"rows.trial_id": np.zeros(5)},
    "a table of trials": {"rows.trial_id": np.zeros((5, 1), np.int64)},
    "too few steps": {"rows.step": np.array([0, 10])},
    "too few values": {f"rows.{METRIC}": np.zeros(3)},
    "values of text": {f"rows.{METRIC}": np.array(list("abcde"))},
    "no time": {"seconds": None},
    "time as a list": {"seconds": np.zeros(2)},
    "time that is none": {"seconds": np.array(np.nan)},
    "updates that cannot be": {"counted": np.array(-1)},
    "a step off the grid": {"rows.step": np.array([0, 11, 20, 0, 10])},
    "other trials than its name's": {"rows.trial_id": np.array([0, 0, 0, 3, 3])},
}


@pytest.mark.parametrize("changes", CHECKPOINTS.values(), ids=CHECKPOINTS)
def test_a_checkpoint_whose_rows_cannot_be_is_named(study, arrays, tmp_path, changes):
    arrays = {name: array for name, array in {**arrays, **changes}.items() if array is not None}

    with pytest.raises(DamagedError, match="trials-0-1.npz is damaged"):
        check_checkpoint(tmp_path / "trials-0-1.npz", arrays, study)


def test_examples_that_cannot_be_are_named(study, rows, record, path):
    check_part(path, replace(rows, examples=8 * rows.step), record, study)

    with pytest.raises(DamagedError, match="its examples become fewer"):
        check_part(path, replace(rows, examples=np.array([0, 80, 79, 0, 80])), record, study)


@pytest.mark.parametrize(
    ("examples", "told"),
    [
        (np.array([0.0, 80.0, 160.0, 0.0, 80.0]), "its examples are no whole numbers"),
        (np.array([0, 80]), "its columns do not fit each other"),
        (np.array([0, 80, -1, 0, 80]), "its examples become fewer"),
    ],
)
def test_the_examples_of_a_checkpoint_are_looked_at(study, rows, path, examples, told):
    arrays = {"rows.trial_id": rows.trial_id, "rows.step": rows.step, "seconds": np.array(1.0)}
    arrays |= {f"rows.{METRIC}": rows.metrics[METRIC]}
    check_checkpoint(path, arrays, study)

    with pytest.raises(DamagedError, match=told):
        check_checkpoint(path, {**arrays, "rows.examples": examples}, study)
