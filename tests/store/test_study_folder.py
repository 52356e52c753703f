"""One study on disk: from its points to its last measurement, and after a kill anywhere on the way."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.trial import Status
from batchlab.errors import LabError
from batchlab.store import pack_folder, study_folder
from batchlab.store.checkpoint import write_checkpoint
from batchlab.store.seal import write_sealed
from batchlab.store.study_folder import StudyFolder

STUDY = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path):
    return StudyFolder(tmp_path / "8")


def names(folder):
    return sorted(path.name for path in folder.folder.iterdir())


# Records


def test_a_record_comes_back_as_it_went_in(folder, make_record):
    record = make_record(pack_size=4, note="something to know")
    assert not folder.has_record

    folder.save_record(record)

    assert folder.has_record
    assert folder.record() == record


def test_points_come_back_bit_for_bit(folder, make_record):
    points = tuple({"learning_rate": value} for value in np.random.default_rng(0).random(50).tolist())
    record = make_record().model_copy(update={"points": points})

    folder.save_record(record)

    assert folder.record().points == points


def test_a_record_that_is_none_is_named(folder, make_record):
    folder.save_record(make_record())
    write_sealed(folder.folder / "study.json", {"points": []})

    with pytest.raises(LabError, match=f"^{folder.folder / 'study.json'}: a record holds a study or an imported one"):
        folder.record()


# Finishing


def test_a_finished_study_comes_back(folder, finish, measurements, trials):
    finish(folder)

    result = folder.result()

    assert names(folder) == ["measurements.parquet", "study.json", "trials.json"]
    assert (result.workload, result.batch_size, result.end_step) == ("digits/fc_128/sgd", 8, 20)
    assert result.trials == tuple(trials)
    assert result.measurements.step.tolist() == measurements.step.tolist()
    assert result.search_space.names == ["learning_rate"]
    assert folder.record().counts == {Status.COMPLETE: 1, Status.INFEASIBLE: 1, Status.INCOMPLETE: 0}


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def kill_after(monkeypatch, target, attribute, count=1):
    """Let `count` calls of a function happen, and end the process after the last of them."""
    original, calls = getattr(target, attribute), []

    def call(*arguments, **options):
        result = original(*arguments, **options)
        calls.append(attribute)
        if len(calls) == count:
            raise Killed
        return result

    monkeypatch.setattr(target, attribute, call)


KILLS = {
    "the measurements": (study_folder.parquet, "write_measurements", 1),
    "the trials": (study_folder, "write_file", 1),
    "the record": (study_folder, "write_file", 2),
    "removing the parts": (pack_folder, "remove_files", 1),
    "removing the checkpoints": (pack_folder, "remove_files", 2),
}


@pytest.mark.parametrize("moment", KILLS)
def test_a_kill_after_any_step_of_the_finish_ends_well(folder, make_record, measurements, trials, monkeypatch, moment):
    """Before study.json says `finished` the parts are all there; after it the outcome is."""
    running = make_record(pack_size=2)
    counts = {Status.COMPLETE: 1, Status.INFEASIBLE: 1}
    finished = make_record(pack_size=2, state="finished", end_step=20, counts=counts, num_measurements=5)
    folder.save_record(running)
    folder.save_part("1-0", measurements, {"round": 1, "outcomes": []}, STUDY)
    write_checkpoint(folder.checkpoint_path("1-1"), {"step": np.array(3)}, STUDY)
    with monkeypatch.context() as patch:
        kill_after(patch, *KILLS[moment])
        with pytest.raises(Killed):
            folder.finish(finished, trials, measurements)

    rerun = StudyFolder(folder.folder)
    if moment in ("the measurements", "the trials"):
        assert rerun.record() == running
        assert list(rerun.parts(STUDY)) == ["1-0"]
        rerun.finish(finished, trials, measurements)
    else:
        assert rerun.record() == finished.model_copy(update={"files": rerun.record().files})
        rerun.tidy()

    assert names(rerun) == ["measurements.parquet", "study.json", "trials.json"]
    assert rerun.result().trials == tuple(trials)
    assert len(rerun.result().measurements) == len(measurements)


def test_the_outcome_is_written_before_it_is_announced(folder, make_record, measurements, trials, monkeypatch):
    """A reader that sees `finished` can read everything."""
    folder.save_record(make_record())
    original = folder.save_record

    def announce(record, **options):
        assert (folder.folder / "measurements.parquet").exists()
        assert (folder.folder / "trials.json").exists()
        assert (folder.folder / "parts").exists()
        original(record, **options)

    monkeypatch.setattr(folder, "save_record", announce)
    folder.finish(make_record(state="finished", end_step=20), trials, measurements)

    assert not (folder.folder / "parts").exists()


def test_tidying_removes_what_killed_writers_left(folder, finish):
    finish(folder)
    (folder.folder / "trials.json.99.tmp").write_text("half")

    folder.tidy()
    folder.tidy()

    assert names(folder) == ["measurements.parquet", "study.json", "trials.json"]
