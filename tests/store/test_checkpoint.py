"""Checkpoints prove that they are whole, and of their study."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.errors import DamagedError
from batchlab.store.checkpoint import read_checkpoint, write_checkpoint


def test_a_checkpoint_comes_back_as_it_was_written(tmp_path):
    write_checkpoint(tmp_path / "a.npz", {"rows.step": np.arange(3)}, "study")

    arrays = read_checkpoint(tmp_path / "a.npz", "study")

    assert list(arrays) == ["rows.step"]
    assert arrays["rows.step"].tolist() == [0, 1, 2]


def test_a_checkpoint_of_another_study_is_refused(tmp_path):
    write_checkpoint(tmp_path / "a.npz", {"rows.step": np.arange(3)}, "study")

    with pytest.raises(DamagedError, match="it is of another study"):
        read_checkpoint(tmp_path / "a.npz", "another")


def test_a_checkpoint_of_an_older_lab_without_a_digest_was_gone_on_from(tmp_path):
    np.savez(tmp_path / "a.npz", **{"rows.step": np.arange(3)})

    with pytest.raises(DamagedError, match="was changed"):
        read_checkpoint(tmp_path / "a.npz", "study")

    assert list(read_checkpoint(tmp_path / "a.npz")) == ["rows.step"]
