"""Checkpoints prove that they are whole, and of their study; they hold numbers and text alone."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors import safe_open

from batchlab.errors import DamagedError, LabError
from batchlab.store.checkpoint import read_checkpoint, write_checkpoint
from batchlab.store.study_folder import StudyFolder

STUDY = "0123456789abcdef"


def assert_same(read, written):
    assert list(read) == list(written), "in their order"
    for name, array in written.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape), name
        assert read[name].tobytes() == array.tobytes(), name
        assert read[name].flags.writeable, name


def test_a_checkpoint_comes_back_as_it_was_written(tmp_path):
    write_checkpoint(tmp_path / "a.safetensors", {"rows.step": np.arange(3)}, "study")

    arrays = read_checkpoint(tmp_path / "a.safetensors", "study")

    assert list(arrays) == ["rows.step"]
    assert arrays["rows.step"].tolist() == [0, 1, 2]


KINDS = {
    "text": np.array(["", "a", "\u00e9\u4e2d"]),
    "bytes": np.array([b"a", b"bc"]),
    "complex": np.array([1 + 2j, np.nan]),
    "big-endian": np.arange(3, dtype=">f8"),
    "a date": np.array(["2020-02-29"], dtype="datetime64[D]"),
    "a record": np.array([(1, [2.0, 3.0])], dtype=[("u", "<i4"), ("v", "<f8", (2,))]),
    "records of records": np.zeros(2, dtype=[("u", [("v", "<i2"), ("w", "<U3")])]),
    "nothing": np.zeros((0, 2)),
    "not a number": np.array(np.nan),
    "minus nought": np.array(-0.0),
    "the largest": np.array(2**63 - 1),
    "one unsigned": np.array(2**64 - 1, np.uint64),
    "true": np.array(True),
    "transposed": np.arange(6.0).reshape(2, 3).T,
    "strided": np.arange(10, dtype=np.int16)[::3],
    "one byte each": np.arange(3, dtype=np.uint8),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_of_any_kind_comes_back_as_it_was(tmp_path, kind):
    arrays = {"odd": np.arange(3, dtype=np.uint8), kind: KINDS[kind], "seconds": np.array(0.1)}

    write_checkpoint(tmp_path / "a.safetensors", arrays, "study")

    assert_same(read_checkpoint(tmp_path / "a.safetensors", "study"), arrays)


@given(
    arrays=st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1).map("program.{}".format),
        arrays_of.arrays(
            st.one_of(arrays_of.scalar_dtypes(), arrays_of.unicode_string_dtypes()), arrays_of.array_shapes(min_dims=0)
        ),
        max_size=5,
    )
)
def test_arrays_of_whatever_name_type_and_shape_come_back(tmp_path_factory, arrays):
    path = tmp_path_factory.mktemp("checkpoint") / "a.safetensors"
    write_checkpoint(path, arrays, "study")

    assert_same(read_checkpoint(path, "study"), arrays)


def test_others_can_read_it_with_the_library(tmp_path):
    arrays = {"program.weights": np.ones((2, 3), np.float32), "program.step": np.array(7), "seconds": np.array(1.5)}
    write_checkpoint(tmp_path / "a.safetensors", arrays, "study")

    with safe_open(tmp_path / "a.safetensors", "np") as file:
        table = json.loads(file.metadata()["batchlab"])
        weights = file.get_tensor("program.weights")

    assert weights.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert (table["numbers"], table["study"]) == ({"program.step": 7, "seconds": 1.5}, "study")


def test_a_flipped_bit_anywhere_is_noticed_or_changes_nothing(tmp_path):
    """All of them, of a small one: header, table, numbers and tensors."""
    path = tmp_path / "a.safetensors"
    arrays = {"weights": np.arange(3, dtype=np.float32), "step": np.array(7), "text": np.array(["ab"])}
    write_checkpoint(path, arrays, "study")
    content, num_same = path.read_bytes(), 0
    for place in range(8 * len(content)):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        path.write_bytes(changed)

        try:
            assert_same(read_checkpoint(path, "study"), arrays)  # a blank that is another one, at the most
            num_same += 1
        except DamagedError:
            pass

    assert num_same < 40


def test_a_checkpoint_of_another_study_is_refused(tmp_path):
    write_checkpoint(tmp_path / "a.safetensors", {"rows.step": np.arange(3)}, "study")

    with pytest.raises(DamagedError, match="it is of another study"):
        read_checkpoint(tmp_path / "a.safetensors", "another")


HOSTILE = {
    "an object": {"foreign": {"a": ["|O", [1]]}},
    "a number too large": {"numbers": {"a": 2**70}},
    "no number": {"numbers": {"a": None}},
    "a list for a number": {"numbers": {"a": [1, 2]}},
    "an array that is not there": {"foreign": {"b": ["<f8", [1]]}},
    "a shape that does not fit": {"foreign": {"a": ["<f8", [10**9]]}},
    "a type that is none": {"foreign": {"a": ["what", [1]]}},
    "a name too many": {"names": ["a", "b"]},
    "no tables": {"numbers": None, "foreign": None},
}


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE)
def test_a_table_that_lies_is_named(tmp_path, changes):
    from safetensors.numpy import save_file

    table = {"names": ["a"], "numbers": {}, "foreign": {}, "study": "study", "digest": "", **changes}
    save_file({"a": np.zeros(8, np.uint8)}, tmp_path / "a.safetensors", {"batchlab": json.dumps(table)})

    with pytest.raises(DamagedError, match="a.safetensors is damaged"):
        read_checkpoint(tmp_path / "a.safetensors")


# Older ones


def write_older(path, arrays, study):
    """Write a checkpoint as it was before: an .npz file."""
    from batchlab.store.checkpoint import _digest

    held = {**arrays, "study": np.array(study)}
    np.savez(path, **held, digest=np.array(_digest(held)))


def test_an_older_checkpoint_is_read(tmp_path):
    arrays = {"rows.step": np.arange(3), "seconds": np.array(1.5)}
    write_older(tmp_path / "a.npz", arrays, "study")

    assert_same(read_checkpoint(tmp_path / "a.npz", "study"), arrays)


def test_an_older_checkpoint_goes_when_a_newer_one_takes_its_place(tmp_path):
    folder = StudyFolder(tmp_path)
    folder.make_room()
    write_older(tmp_path / "checkpoints" / "trials-2.5-7.npz", {"rows.step": np.arange(3)}, "study")
    assert folder.checkpoint_path("trials-2.5-7").suffix == ".npz"

    folder.save_checkpoint("trials-2.5-7", {"rows.step": np.arange(5)}, "study")

    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["trials-2.5-7.safetensors"]
    assert folder.checkpoint_path("trials-2.5-7").suffix == ".safetensors"


def test_of_two_that_a_kill_has_left_the_newer_one_counts(tmp_path):
    folder = StudyFolder(tmp_path)
    folder.save_checkpoint("trials-1", {"rows.step": np.arange(5)}, "study")
    write_older(tmp_path / "checkpoints" / "trials-1.npz", {"rows.step": np.arange(3)}, "study")

    assert folder.checkpoint_path("trials-1").suffix == ".safetensors"
    assert len(folder.packs("checkpoints")) == 2


def test_a_kept_state_of_the_older_kind_is_gone_on_from(tmp_path):
    folder = StudyFolder(tmp_path)
    (tmp_path / "states").mkdir()
    write_older(tmp_path / "states" / "trials-1.npz", {"rows.trial_id": np.array([1])}, "study")

    folder.resume_state("trials-1")

    assert folder.states() == [(1,)]
    assert read_checkpoint(folder.checkpoint_path("trials-1"), "study")["rows.trial_id"].tolist() == [1]


def test_a_checkpoint_of_an_older_lab_without_a_digest_was_gone_on_from(tmp_path):
    np.savez(tmp_path / "a.npz", **{"rows.step": np.arange(3)})

    with pytest.raises(DamagedError, match="was changed"):
        read_checkpoint(tmp_path / "a.npz", "study")

    assert list(read_checkpoint(tmp_path / "a.npz")) == ["rows.step"]


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
