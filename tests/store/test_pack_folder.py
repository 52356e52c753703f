"""Packs on disk: finished ones, unfinished ones, and what a kill leaves of them."""

from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from batchlab.errors import DamagedError
from batchlab.store.checkpoint import write_checkpoint
from batchlab.store.study_folder import StudyFolder

STUDY = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path):
    return StudyFolder(tmp_path / "8")


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


def test_a_part_without_a_digest_was_gone_on_from(tmp_path, measurements):
    study = StudyFolder(tmp_path / "8")
    study.save_part("trials-0-1", measurements, {"outcomes": []}, "study")
    table = pq.read_table(study.part_path("trials-0-1"))
    notes = {key: text for key, text in table.schema.metadata.items() if key != b"batchlab.digest"}
    pq.write_table(table.replace_schema_metadata(notes), study.part_path("trials-0-1"))

    with pytest.raises(DamagedError, match="was changed"):
        study.parts("study")

    assert len(StudyFolder(tmp_path / "8", is_sealed=False).parts("study")) == 1
