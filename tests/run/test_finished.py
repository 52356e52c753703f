"""What of a sweep a lab holds already, just as it is asked for."""

from __future__ import annotations

import pytest

from batchlab.core.confirmation import replicate_id
from batchlab.errors import LabError, SpecError
from batchlab.run.finished import as_stored
from batchlab.run.run_sweep import run_sweep


@pytest.fixture
def run(make_scripted, scripted, tmp_path):
    """Run the sweep with these changes, all trials and replicates of which meet the goal at once; return it."""

    def make(changes=None, only=None):
        sweep = make_scripted(changes)
        numbers = [*range(8), *(replicate_id(trial, i) for trial in range(8) for i in range(1, 4))]
        run_sweep(sweep, tmp_path / "lab", trainer=scripted(dict.fromkeys(numbers, 10)), num_workers=1, only=only)
        return sweep

    return make


def test_without_a_lab_nothing_is_finished_and_none_is_made(make_scripted, tmp_path):
    sweep = make_scripted()

    assert as_stored(sweep, tmp_path / "lab") == (sweep, {})
    assert not (tmp_path / "lab").exists()


def test_what_is_no_lab_is_refused(make_scripted, tmp_path):
    (tmp_path / "lab").write_text("a file")

    with pytest.raises(LabError, match="is neither empty nor a lab"):
        as_stored(make_scripted(), tmp_path / "lab")


def test_a_study_that_is_to_grow_is_not_finished(run, make_scripted, tmp_path):
    sweep = run()
    larger = make_scripted({"sweep.trials": sweep.search.trials + 1})

    assert as_stored(sweep, tmp_path / "lab") == (sweep, dict.fromkeys(sweep.search.batch_sizes, 10))
    assert as_stored(larger, tmp_path / "lab") == (larger, {})


def test_some_of_the_points_are_no_finished_study(run, tmp_path):
    sweep = run(only=range(2))

    assert as_stored(sweep, tmp_path / "lab")[1] == {}


def test_a_study_is_finished_once_it_is_confirmed(run, make_scripted, tmp_path):
    run()
    confirmed = make_scripted({"sweep.confirm": {"seeds": 2, "points": 2}})

    assert as_stored(confirmed, tmp_path / "lab")[1] == {}

    run({"sweep.confirm": {"seeds": 2, "points": 2}})

    assert as_stored(confirmed, tmp_path / "lab")[1] == dict.fromkeys(confirmed.search.batch_sizes, 10)
    assert as_stored(make_scripted({"sweep.confirm": {"seeds": 3, "points": 2}}), tmp_path / "lab")[1] == {}


def test_another_sweep_of_that_name_is_refused(run, make_scripted, tmp_path):
    run()

    with pytest.raises(SpecError, match="was begun with another spec; changed: seed"):
        as_stored(make_scripted({"seed": 5}), tmp_path / "lab")
