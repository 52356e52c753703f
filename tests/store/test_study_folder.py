"""One study on disk: from its points to its last measurement, and after a kill anywhere on the way."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from batchlab.core.trial import Status
from batchlab.errors import DamagedError, LabError
from batchlab.store import study_folder as study_folder_module
from batchlab.store.checkpoint import read_checkpoint, write_checkpoint
from batchlab.store.seal import write_sealed
from batchlab.store.study_folder import StudyFolder

STUDY = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path):
    return StudyFolder(tmp_path / "8")


def names(folder):
    return sorted(path.name for path in folder.folder.iterdir())


# Records and parts


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


def test_parts_come_back_with_their_outcomes(folder, make_record, measurements):
    folder.save_record(make_record())
    folder.save_part("1-1", measurements, {"round": 1, "outcomes": []}, STUDY)
    folder.save_part("1-0", measurements.where(measurements.trial_id == 0), {"round": 2, "outcomes": []}, STUDY)

    parts = folder.parts(STUDY)

    assert list(parts) == ["1-0", "1-1"]
    assert [len(table) for table, _ in parts.values()] == [3, 5]
    assert [outcome for _, outcome in parts.values()] == [{"round": 2, "outcomes": []}, {"round": 1, "outcomes": []}]


def test_a_part_takes_the_place_of_its_checkpoint(folder, make_record, measurements):
    folder.save_record(make_record())
    for name in ("1-0", "1-1"):
        write_checkpoint(folder.checkpoint_path(name), {"step": np.array(3)}, STUDY)

    folder.save_part("1-0", measurements, {"outcomes": []}, STUDY)

    assert not folder.checkpoint_path("1-0").exists()
    assert folder.checkpoint_path("1-1").exists()


def test_a_half_written_part_is_none(folder, make_record, measurements):
    """What a kill leaves of a file is under a temporary name, and nobody reads that."""
    folder.save_record(make_record())
    folder.save_part("1-0", measurements, {"outcomes": []}, STUDY)
    whole = (folder.folder / "parts" / "1-0.parquet").read_bytes()
    (folder.folder / "parts" / "1-1.parquet.99.tmp").write_bytes(whole[:100])

    assert list(folder.parts(STUDY)) == ["1-0"]


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
    "the measurements": (study_folder_module.parquet, "write_measurements", 1),
    "the trials": (study_folder_module, "write_file", 1),
    "the record": (study_folder_module, "write_file", 2),
    "removing the parts": (study_folder_module, "remove_files", 1),
    "removing the checkpoints": (study_folder_module, "remove_files", 2),
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


# Checkpoints


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    random = np.random.default_rng(0)
    arrays = {
        "program.parameters": random.random((3, 5), np.float32),
        "program.step": np.array(7),
        "rows.val/loss": np.array([np.nan, np.inf, 0.1 + 0.2]),
        "program.diverged": np.empty((0, 2), np.int64),
    }

    write_checkpoint(tmp_path / "1-0.safetensors", arrays, STUDY)
    read = read_checkpoint(tmp_path / "1-0.safetensors", STUDY)

    assert set(arrays) <= set(read)
    for name, array in arrays.items():
        assert read[name].dtype == array.dtype
        assert read[name].shape == array.shape
        assert read[name].tobytes() == array.tobytes()
    assert [path.name for path in tmp_path.iterdir()] == ["1-0.safetensors"]


def test_no_checkpoint_is_none(tmp_path):
    assert read_checkpoint(tmp_path / "1-0.safetensors") is None


def test_an_object_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="without pickle"):
        write_checkpoint(tmp_path / "1-0.safetensors", {"objects": np.array([{"a": 1}], dtype=object)}, STUDY)

    assert list(tmp_path.iterdir()) == []


def test_a_pickled_array_is_refused_when_read(tmp_path):
    """A checkpoint from elsewhere must not run code."""
    path = tmp_path / "1-0.npz"
    np.savez(path, objects=np.array([{"a": 1}], dtype=object))

    with pytest.raises(LabError, match=f"^{path} is damaged: .*batchlab verify"):
        read_checkpoint(path)


@pytest.mark.parametrize("kept", [0, 1, 10, 0.5, 0.99])
def test_a_truncated_checkpoint_is_named(tmp_path, kept):
    path = tmp_path / "1-0.safetensors"
    write_checkpoint(path, {"parameters": np.zeros(1_000)}, STUDY)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content)) if isinstance(kept, float) else kept])

    with pytest.raises(LabError, match=f"^{path} is damaged: .*batchlab verify"):
        read_checkpoint(path)


def test_a_checkpoint_with_a_wrong_bit_is_named(tmp_path):
    path = tmp_path / "1-0.safetensors"
    write_checkpoint(path, {"parameters": np.zeros(1_000)}, STUDY)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    with pytest.raises(LabError, match=f"^{path} (is damaged|was changed)"):
        read_checkpoint(path)


def test_a_part_without_a_digest_was_gone_on_from(tmp_path, measurements):
    study = StudyFolder(tmp_path / "8")
    study.save_part("trials-0-1", measurements, {"outcomes": []}, "study")
    table = pq.read_table(study.part_path("trials-0-1"))
    notes = {key: text for key, text in table.schema.metadata.items() if key != b"batchlab.digest"}
    pq.write_table(table.replace_schema_metadata(notes), study.part_path("trials-0-1"))

    with pytest.raises(DamagedError, match="was changed"):
        study.parts("study")

    assert len(StudyFolder(tmp_path / "8", is_sealed=False).parts("study")) == 1
