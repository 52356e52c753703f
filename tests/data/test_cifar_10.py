from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from batchlab.core.workload import Named
from batchlab.data import cifar_10, registry
from batchlab.data.files import Source
from batchlab.errors import DataError

BATCHES = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]


def offline(url: str, max_bytes: int) -> bytes:
    raise OSError("no network")


def python2_pickle(labels: list[int], data: np.ndarray) -> bytes:
    """The opcodes that Python 2 wrote into the published files, for a few images: K and M are integers, U strings."""
    return b"".join(
        [
            b"\x80\x02}(U\x06labels](",
            *(b"K" + bytes([label]) for label in labels),
            b"eU\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K",
            bytes([len(labels)]) + b"M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNN",
            b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T" + len(data.tobytes()).to_bytes(4, "little"),
            data.tobytes() + b"tbu.",
        ]
    )


@pytest.fixture
def release(tmp_path, monkeypatch) -> Path:
    """Both releases with 10 images in each file, 45 of 50 for training, and the checksums of these files."""
    rng = np.random.default_rng(0)
    for folder in ("cifar-10-batches-py", "cifar-10-batches-bin"):
        (tmp_path / folder).mkdir()
    for name in BATCHES:
        labels, data = rng.integers(0, 10, 10, np.uint8), rng.integers(0, 256, (10, 3072), np.uint8)
        (tmp_path / "cifar-10-batches-py" / name).write_bytes(python2_pickle(labels.tolist(), data))
        records = np.concatenate([labels[:, None], data], axis=1)
        (tmp_path / "cifar-10-batches-bin" / f"{name}.bin").write_bytes(records.tobytes())
    monkeypatch.setattr(cifar_10, "_TRAIN_EXAMPLES", 45)
    trust(tmp_path, monkeypatch)
    return tmp_path


def trust(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the checksums of the files as they are for the published ones."""
    for known, release, suffix in (
        ("_PYTHON_MD5", "cifar-10-batches-py", ""),
        ("_BINARY_MD5", "cifar-10-batches-bin", ".bin"),
    ):
        files = [folder / release / f"{name}{suffix}" for name in BATCHES]
        monkeypatch.setattr(cifar_10, known, {f.name: hashlib.md5(f.read_bytes()).hexdigest() for f in files})


def pack(folder: Path, release: str, name: str) -> None:
    with tarfile.open(folder / name, "w:gz") as tar:
        tar.add(folder / release, arcname=release)
    shutil.rmtree(folder / release)


def arrays(dataset) -> list[np.ndarray]:
    splits = (dataset.train, dataset.val, dataset.test)
    return [array for split in splits for array in (split.inputs, split.labels)]


def test_the_splits_keep_the_official_order(release):
    dataset = cifar_10.load(Source(release))

    first = np.frombuffer((release / "cifar-10-batches-bin" / "data_batch_1.bin").read_bytes(), np.uint8)[:3073]
    image = first[1:].astype(np.float64)
    assert [len(dataset.train), len(dataset.val), len(dataset.test)] == [45, 5, 10]
    assert dataset.train.inputs.dtype == np.float32 and dataset.input_shape == (3, 32, 32)
    assert dataset.train.labels[0] == first[0]
    assert np.allclose(dataset.train.inputs[0].ravel(), (image - image.mean()) / image.std(), atol=1e-5)


def test_python_binary_and_both_tars_give_the_same_arrays(release):
    expected = arrays(cifar_10.load(Source(release)))
    pack(release, "cifar-10-batches-py", "cifar-10-python.tar.gz")
    python_tar = arrays(cifar_10.load(Source(release)))
    (release / "cifar-10-python.tar.gz").unlink()
    binary = arrays(cifar_10.load(Source(release)))
    pack(release, "cifar-10-batches-bin", "cifar-10-binary.tar.gz")
    binary_tar = arrays(cifar_10.load(Source(release)))

    for found in (python_tar, binary, binary_tar):
        assert all(np.array_equal(one, other) for one, other in zip(expected, found, strict=True))


@pytest.mark.parametrize("folder", ["cifar-10", "cifar_10"])
def test_a_release_is_found_in_the_dataset_s_own_folder(release, folder):
    (release / folder).mkdir()
    shutil.move(release / "cifar-10-batches-bin", release / folder)
    shutil.rmtree(release / "cifar-10-batches-py")

    assert registry.data_state(Named(name="cifar_10"), release) == "present"
    assert len(registry.load(Named(name="cifar_10", train_examples=7), release).train) == 7


def test_without_files_it_can_be_fetched(tmp_path):
    assert registry.data_state(Named(name="cifar_10"), tmp_path) == "fetchable"
    with pytest.raises(DataError, match=r"cifar-10/cifar-10-python\.tar\.gz is missing: .*no network"):
        registry.load(Named(name="cifar_10"), tmp_path, offline)


def test_a_wrong_checksum_is_refused_by_name(release):
    path = release / "cifar-10-batches-py" / "data_batch_4"
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(
        DataError, match=r"^\S+/data_batch_4 is not the published one: MD5 \w{32} of [\d,]+ bytes, exp.*\.$"
    ):
        cifar_10.load(Source(release))


def test_a_missing_batch_is_named(release):
    (release / "cifar-10-batches-py" / "data_batch_2").unlink()

    with pytest.raises(DataError, match=r"cifar-10-batches-py: data_batch_2 is missing"):
        cifar_10.load(Source(release))


def test_a_truncated_tar_is_named(release):
    pack(release, "cifar-10-batches-py", "cifar-10-python.tar.gz")
    os.truncate(release / "cifar-10-python.tar.gz", 50_000)

    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz: the gzip file is truncated or damaged"):
        cifar_10.load(Source(release))


def test_a_link_in_place_of_a_batch_is_refused(release):
    (release / "cifar-10-batches-py" / "data_batch_1").unlink()
    (release / "cifar-10-batches-py" / "data_batch_1").symlink_to("nowhere")
    pack(release, "cifar-10-batches-py", "cifar-10-python.tar.gz")

    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz: \S+/data_batch_1 is no file of at most 40,000,000"):
        cifar_10.load(Source(release))


def test_a_batch_that_unpacks_to_far_more_than_a_published_one_is_refused(release):
    os.truncate(release / "cifar-10-batches-py" / "data_batch_3", 40_000_001)
    pack(release, "cifar-10-batches-py", "cifar-10-python.tar.gz")

    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz: \S+/data_batch_3 is no file of at most 40,000,000"):
        cifar_10.load(Source(release))


def test_a_label_out_of_range_is_refused_by_file_and_example(release, monkeypatch):
    path = release / "cifar-10-batches-py" / "test_batch"
    path.write_bytes(python2_pickle([1, 10], np.zeros((2, 3072), np.uint8)))
    trust(release, monkeypatch)

    with pytest.raises(DataError, match=r"test_batch: label 10 of example 1 is not in 0 to 9\."):
        cifar_10.load(Source(release))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({b"labels": [1]}, protocol=4), "it has no `data` and `labels`"),
        (pickle.dumps([1, 2], protocol=4), "it has no `data` and `labels`"),
        (
            pickle.dumps({b"labels": [1], b"data": np.zeros((2, 3072), np.uint8)}, protocol=4),
            "1 labels come with uint8",
        ),
        (pickle.dumps(os.system), "it names (posix|nt).system"),
    ],
)
def test_another_pickle_is_refused_by_name(release, monkeypatch, content, message):
    (release / "cifar-10-batches-py" / "data_batch_5").write_bytes(content)
    trust(release, monkeypatch)

    with pytest.raises(DataError, match=f"data_batch_5: {message}"):
        cifar_10.load(Source(release))


def test_a_binary_file_of_another_length_is_refused_by_name(release, monkeypatch):
    shutil.rmtree(release / "cifar-10-batches-py")
    monkeypatch.setattr(cifar_10, "_PYTHON_MD5", {})
    path = release / "cifar-10-batches-bin" / "test_batch.bin"
    path.write_bytes(path.read_bytes()[:-1])
    known = {**cifar_10._BINARY_MD5, "test_batch.bin": hashlib.md5(path.read_bytes()).hexdigest()}
    monkeypatch.setattr(cifar_10, "_BINARY_MD5", known)

    with pytest.raises(DataError, match=r"test_batch\.bin: 30,729 bytes are no whole number of records of 3073"):
        cifar_10.load(Source(release))


@pytest.mark.slow
def test_the_published_set_is_read_alike_from_both_releases(shared_data, tmp_path):
    """Labels: 5,000 and 1,000 of each class. Both releases are proven by their checksums."""
    restore = [sys.executable, str(shared_data / "cifar-10" / "restore_cifar10.py"), str(tmp_path), "--bin"]
    subprocess.run(restore, check=True, capture_output=True)

    dataset = cifar_10.load(Source(tmp_path))
    shutil.rmtree(tmp_path / "cifar-10-batches-py")
    binary = cifar_10.load(Source(tmp_path))

    assert [len(dataset.train), len(dataset.val), len(dataset.test)] == [45_000, 5_000, 10_000]
    labels = np.concatenate([dataset.train.labels, dataset.val.labels])
    assert np.bincount(labels).tolist() == [5_000] * 10
    assert np.bincount(dataset.test.labels).tolist() == [1_000] * 10
    assert np.allclose(dataset.test.inputs.mean(axis=(1, 2, 3)), 0, atol=1e-5)
    assert np.allclose(dataset.test.inputs.std(axis=(1, 2, 3)), 1, atol=1e-5)
    assert all(np.array_equal(one, other) for one, other in zip(arrays(dataset), arrays(binary), strict=True))
