"""batchlab run with dataset files that are missing, damaged or somebody else's; nothing leaves the machine."""

from __future__ import annotations

import gzip

import pytest

IMAGES = "train-images-idx3-ubyte.gz"
LABELS = "train-labels-idx1-ubyte.gz"

SPEC = """
name = "mnist-small"

[workload]
dataset = "mnist"
model = "fc_8"
optimizer = "sgd"

[sweep]
batch_sizes = [16]
trials = 1
max_steps = 1
goal = "val/classification_error < 0.5"

[search_space]
learning_rate = {min = 0.01, max = 1.0, scale = "log"}
"""
# Two images of 28x28: the header of a real file, but not the published content.
TINY_IMAGES = gzip.compress(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28]) + bytes(2 * 28 * 28), mtime=0)


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "mnist-small.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def data(tmp_path):
    """A folder for the user's files."""
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    "content",
    [TINY_IMAGES, TINY_IMAGES[:-10], b"", b"<html>not found</html>"],
    ids=["other", "truncated", "empty", "page"],
)
def test_a_file_that_is_not_the_published_one_is_refused(refused, spec, data, content):
    (data / IMAGES).write_bytes(content)

    line = refused("run", spec, "--data", data.parent)

    assert f"{data / IMAGES} is not the published mnist/{IMAGES}" in line
    assert f"of {len(content)} bytes, expected 440fcabf" in line
    assert "9,912,422 bytes" in line
    assert "Replace it with the original, or delete it" in line


def test_a_file_is_found_without_the_folder_of_its_dataset_and_by_the_variable(refused, spec, data, monkeypatch):
    (data / IMAGES).write_bytes(TINY_IMAGES)

    assert f"{data / IMAGES} is not the published" in refused("run", spec, "--data", data)
    monkeypatch.setenv("BATCHLAB_DATA", str(data))
    assert f"{data / IMAGES} is not the published" in refused("run", spec)


def test_a_file_that_cannot_be_read_is_refused(refused, spec, data):
    (data / IMAGES).mkdir()

    line = refused("run", spec, "--data", data.parent)

    assert f"Could not read {data / IMAGES}: it is no regular file." in line
    assert "--data DIR" in line


def test_a_file_that_is_nowhere_is_refused_with_its_places_and_the_way_out(refused, spec, data, tmp_path):
    line = refused("run", spec, "--data", data.parent)

    assert f"mnist/{IMAGES} is missing" in line
    for place in (data / IMAGES, data.parent / IMAGES, tmp_path / "cache" / "batchlab" / "data" / "mnist" / IMAGES):
        assert str(place) in line
    assert "fetching failed (https://" in line
    assert "Connection refused" in line
    assert "--data DIR" in line
    assert "BATCHLAB_DATA" in line


def test_a_dry_run_needs_the_data_as_well(refused, spec):
    assert "is missing" in refused("run", spec, "--dry-run")


def test_a_data_folder_that_is_not_there_is_refused(refused, spec, tmp_path, monkeypatch):
    assert f"--data names {tmp_path / 'nowhere'}, which is no folder" in refused(
        "run", spec, "--data", tmp_path / "nowhere"
    )
    monkeypatch.setenv("BATCHLAB_DATA", str(tmp_path / "nothing"))
    assert f"BATCHLAB_DATA names {tmp_path / 'nothing'}, which is no folder" in refused("run", spec)


@pytest.mark.parametrize("command", [["run", "digits"], ["run", "nqm", "--dry-run"], ["workloads"]])
def test_a_data_folder_that_is_not_there_is_refused_by_whoever_needs_no_files(refused, tmp_path, command):
    line = refused(*command, "--data", tmp_path / "nowhere")

    assert f"--data names {tmp_path / 'nowhere'}, which is no folder" in line


def test_the_second_file_is_proven_too(refused, spec, data, shared_data):
    (data / IMAGES).symlink_to(shared_data / "mnist" / IMAGES)
    (data / LABELS).write_bytes((shared_data / "mnist" / LABELS).read_bytes()[:-1])

    line = refused("run", spec, "--data", data.parent)

    assert f"{data / LABELS} is not the published mnist/{LABELS}" in line
    assert "of 28,880 bytes" in line
