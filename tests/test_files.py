"""Files that are whole or not there, whatever goes wrong while they are written."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys

import pytest

from batchlab import files
from batchlab.errors import LabError, StorageError
from batchlab.files import make_folder, read_json, sync_files, temporary_folder, whole_file, write_file, write_json


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def full_disk(*arguments):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_whole_file_holds_what_was_written(tmp_path):
    with whole_file(tmp_path / "a") as file:
        file.write(b"new")

    assert (tmp_path / "a").read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


def test_nothing_is_at_the_path_before_the_end(tmp_path):
    (tmp_path / "a").write_bytes(b"old")

    with whole_file(tmp_path / "a") as file:
        file.write(b"new")
        file.flush()
        assert (tmp_path / "a").read_bytes() == b"old"

    assert (tmp_path / "a").read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("before", [b"old", None])
def test_an_exception_leaves_the_old_file_and_no_temporary(tmp_path, error, before):
    if before is not None:
        (tmp_path / "a").write_bytes(before)

    with pytest.raises(type(error)), whole_file(tmp_path / "a") as file:
        file.write(b"half")
        raise error

    assert names(tmp_path) == ([] if before is None else ["a"])
    assert before is None or (tmp_path / "a").read_bytes() == before


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_is_a_storage_error_and_leaves_the_old_file(tmp_path, monkeypatch, call):
    (tmp_path / "a").write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full_disk)

        with pytest.raises(StorageError) as caught, whole_file(tmp_path / "a") as file:
            file.write(b"new")

    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"Could not write {tmp_path / 'a'}: No space left on device. Nothing half-written is kept; "
        "make room or choose another folder, then run the same command again."
    )
    assert isinstance(caught.value.__cause__, OSError)
    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_disk_that_fills_up_in_the_middle_of_a_write_is_a_storage_error(tmp_path):
    with pytest.raises(StorageError, match="No space left on device"), whole_file(tmp_path / "a") as file:
        file.write(b"half")
        full_disk()

    assert names(tmp_path) == []


def test_the_file_is_synced_before_it_is_renamed_and_the_folder_after(tmp_path, monkeypatch):
    calls, fsync, replace = [], os.fsync, os.replace

    def noted_fsync(descriptor):
        calls.append("folder" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    def noted_replace(source, target, **options):
        calls.append("rename")
        replace(source, target, **options)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    with whole_file(tmp_path / "a") as file:
        file.write(b"new")

    assert calls == ["file", "rename", "folder"]


def test_a_folder_that_refuses_even_to_clean_up_is_a_storage_error(tmp_path):
    """As on a read-only disk, where removing what is not there fails as well."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StorageError, match="Not a directory"), whole_file(tmp_path / "file" / "a") as file:
        file.write(b"new")


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path):
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(StorageError, match=f"Could not write {tmp_path / 'file' / 'folder'}") as caught:
        make_folder(tmp_path / "file" / "folder")

    assert caught.value.exit_code == 2


def test_json_comes_back_as_it_went_in(tmp_path):
    data = {"a": [1, 2.5, 0.1 + 0.2, 1e-300, None, True], "ü": {"b": "text"}}

    write_json(tmp_path / "a.json", data)

    assert read_json(tmp_path / "a.json") == data
    assert "ü" in (tmp_path / "a.json").read_text("utf-8")


@pytest.mark.parametrize("content", [b"", b'{"a": 1', b"\xff\xfe", b"{]"])
def test_a_file_that_is_no_json_is_named(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_bytes(content)

    with pytest.raises(LabError, match=f"^{path} is damaged: .*batchlab verify"):
        read_json(path)


def test_a_file_that_is_absent_is_named(tmp_path):
    with pytest.raises(LabError, match=f"^Could not read {tmp_path / 'a.json'}: No such file or directory"):
        read_json(tmp_path / "a.json")


def test_two_processes_do_not_share_a_temporary_name(tmp_path, monkeypatch):
    seen = []
    for process in (1, 2):
        monkeypatch.setattr(files.os, "getpid", lambda process=process: process)
        with whole_file(tmp_path / "a") as file:
            seen.append(file.name)

    assert len(set(seen)) == 2


KILLED = """
import os, sys
from pathlib import Path
from batchlab.files import temporary_folder, whole_file
path = Path(sys.argv[1])
with {opened} as made:
    {write}
    os._exit(0)
"""


@pytest.mark.parametrize(
    ("opened", "write"),
    [("whole_file(path)", "made.write(b'half')"), ("temporary_folder(path)", "(made / 'half').touch()")],
    ids=["file", "folder"],
)
def test_what_a_killed_process_left_of_the_same_file_is_removed(tmp_path, opened, write):
    script = KILLED.format(opened=opened, write=write)
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "a")], check=True)
    assert len(names(tmp_path)) == 1
    (tmp_path / "ab.1.tmp").write_bytes(b"of another file")
    (tmp_path / "a.elsewhere.999999999.tmp").write_bytes(b"of another machine")

    write_file(tmp_path / "a", b"new")

    assert names(tmp_path) == ["a", "a.elsewhere.999999999.tmp", "ab.1.tmp"]


@pytest.mark.parametrize("is_allowed", [True, False])
def test_what_a_living_process_writes_stays(tmp_path, monkeypatch, is_allowed):
    """Whether we may send it signals, or it is somebody else's."""

    def refused(*arguments):
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "getpid", os.getppid)
        other = whole_file(tmp_path / "a")
        file = other.__enter__()
    if not is_allowed:
        monkeypatch.setattr(os, "kill", refused)
    write_file(tmp_path / "a", b"ours")
    file.write(b"theirs")
    other.__exit__(None, None, None)

    assert (tmp_path / "a").read_bytes() == b"theirs"
    assert names(tmp_path) == ["a"]


def test_a_temporary_folder_is_gone_afterwards_whatever_happens(tmp_path):
    with pytest.raises(KeyboardInterrupt), temporary_folder(tmp_path / "made" / "a") as folder:
        (folder / "inside").mkdir()
        raise KeyboardInterrupt

    assert names(tmp_path / "made") == []


def test_a_disk_that_refuses_is_one_clear_error_and_leaves_what_was_there(tmp_path):
    (tmp_path / "file").write_bytes(b"before")

    with pytest.raises(StorageError, match="Could not write"):
        write_file(tmp_path / "file" / "inside", b"after")
    assert (tmp_path / "file").read_bytes() == b"before"


def test_a_failed_rename_leaves_no_temporary_file(tmp_path):
    (tmp_path / "taken").mkdir()

    with pytest.raises(StorageError, match="Could not write"):
        write_file(tmp_path / "taken", b"after")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_files_that_were_not_synced_are_synced_together(tmp_path, monkeypatch):
    """Each file and each folder once; folders within are left to their own turn."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    write_file(tmp_path / "a" / "one", b"1", sync=False)
    write_file(tmp_path / "b" / "two", b"2", sync=False)
    assert synced == []

    sync_files([tmp_path / "a", tmp_path / "b"])

    assert sorted(synced) == [str(tmp_path / name) for name in ("a", "a/one", "b", "b/two")]


def test_no_file_takes_the_place_of_a_pipe_or_a_device(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(StorageError, match=r"Could not write \S+/pipe: it is no regular file"):
        write_json(tmp_path / "pipe", {})

    assert stat.S_ISFIFO(os.lstat(tmp_path / "pipe").st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
