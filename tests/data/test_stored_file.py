from __future__ import annotations

import io
import os
import pickle
import tarfile
import tracemalloc

import pytest

from batchlab.data.stored_file import list_files, tar_members
from batchlab.errors import DataError


def tar_of(contents: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_a_folder_and_a_tar_list_the_same_files(tmp_path):
    contents = {"b/two.txt": b"22", "a.txt": b"1"}
    (tmp_path / "folder" / "b").mkdir(parents=True)
    for name, content in contents.items():
        (tmp_path / "folder" / name).write_bytes(content)
    (tmp_path / "packed.tar").write_bytes(tar_of(contents))

    for path in (tmp_path / "folder", tmp_path / "packed.tar"):
        listed = list_files(path)
        assert [(file.name, file.read()) for file in listed] == [("a.txt", b"1"), ("b/two.txt", b"22")]


def test_a_tar_inside_a_tar_is_read_in_place(tmp_path):
    (tmp_path / "outer.tar").write_bytes(
        tar_of({"x.tar": tar_of({"1.jpg": b"one"}), "y.tar": tar_of({"2.jpg": b"two"})})
    )

    inner = [file for outer in tar_members(tmp_path / "outer.tar") for file in tar_members(outer)]

    assert [(file.name, file.read()) for file in inner] == [("1.jpg", b"one"), ("2.jpg", b"two")]
    assert str(inner[1]) == f"{tmp_path}/outer.tar: 2.jpg"


@pytest.mark.parametrize("num_bytes", [0, 100, 512, 700, 1024, 1536, 2048])
def test_a_tar_that_was_cut_anywhere_is_refused_by_name(tmp_path, num_bytes):
    """Cut between two members, or at the end, a tar would otherwise look whole."""
    (tmp_path / "cut.tar").write_bytes(tar_of({"a": b"1" * 600, "b": b"2"}))
    os.truncate(tmp_path / "cut.tar", num_bytes)

    with pytest.raises(DataError, match=r"^\S+/cut\.tar: the tar is truncated or damaged"):
        list_files(tmp_path / "cut.tar")


def test_a_damaged_tar_inside_a_tar_is_named_with_both(tmp_path):
    (tmp_path / "outer.tar").write_bytes(tar_of({"x.tar": tar_of({"1.jpg": b"one"})[:512], "y.tar": b""}))

    for inner in tar_members(tmp_path / "outer.tar"):
        with pytest.raises(DataError, match=rf"^\S+/outer\.tar: {inner.name}: the tar is truncated or damaged"):
            list(tar_members(inner))


def test_a_listed_file_takes_little_memory(tmp_path):
    """Of 4.5 million images, 250 bytes each are 1.1 GB."""
    for number in range(1000):
        (tmp_path / f"{number:016}.jpg").write_bytes(b"x" * 300)

    tracemalloc.start()
    try:
        listed = list_files(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(listed) == 1000
    assert peak / 1000 < 250


def test_listed_files_can_be_sent_to_another_process(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"1")

    (sent,) = pickle.loads(pickle.dumps(list_files(tmp_path)))
    assert (sent.name, sent.path, sent.read()) == ("a.txt", tmp_path / "a.txt", b"1")


def test_a_file_that_became_shorter_is_named(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"12345")
    (listed,) = list_files(tmp_path)
    os.truncate(tmp_path / "a.txt", 2)

    with pytest.raises(DataError, match=r"a\.txt is truncated: 2 of 5 bytes"):
        listed.read()


def test_what_is_no_text_has_no_lines(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(DataError, match=r"a\.txt is not a text file"):
        list_files(tmp_path)[0].lines()
