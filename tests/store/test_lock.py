"""The lab's lock: one runner, told apart by process and host, gone with it."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
import subprocess
import sys

import pytest

from batchlab.errors import LabError, LabLockedError, LabLostError, StorageError
from batchlab.files import make_folder, write_file
from batchlab.store.lock import hold_lock
from batchlab.tidying import remove_file, remove_files

HOLDER = """
import sys
from pathlib import Path
from batchlab.store.lock import hold_lock
with hold_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock until its input is closed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_runner_is_refused_with_the_first_ones_process_and_host(tmp_path, holder):
    with pytest.raises(LabLockedError) as caught, hold_lock(tmp_path / "lock"):
        pass

    assert str(caught.value) == (
        f"Lab {tmp_path} is in use by process {holder.pid} on host {socket.gethostname()}. "
        "Wait for it to end, stop it, or use another lab."
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("how", ["kill", "end"])
def test_the_lock_is_free_once_its_holder_is_gone(tmp_path, holder, how):
    if how == "kill":
        holder.kill()
    else:
        holder.stdin.close()
    holder.wait()

    with hold_lock(tmp_path / "lock"):
        assert f'"pid": {os.getpid()}' in (tmp_path / "lock").read_text()


def test_the_lock_can_be_taken_again_and_again(tmp_path):
    for _ in range(3):
        with hold_lock(tmp_path / "lock"):
            pass


def test_an_unreadable_lock_file_still_refuses(tmp_path, holder):
    (tmp_path / "lock").write_text("{")

    with pytest.raises(LabLockedError, match="is in use by another process"), hold_lock(tmp_path / "lock"):
        pass


def test_a_lock_that_cannot_be_opened_is_a_storage_error(tmp_path):
    path = tmp_path / "nowhere" / "lock"

    with pytest.raises(StorageError, match=f"Could not write {path}"), hold_lock(path):
        pass


def test_an_error_inside_is_passed_on_as_it_is(tmp_path):
    with pytest.raises(FileNotFoundError), hold_lock(tmp_path / "lock"):
        (tmp_path / "nowhere").read_text()


def test_a_removed_lock_file_lets_no_second_runner_in(tmp_path, holder):
    (tmp_path / "lock").unlink()

    with pytest.raises(LabLockedError, match="is in use by another process"), hold_lock(tmp_path / "lock"):
        pass

    assert not (tmp_path / "lock").exists(), "who is refused leaves nothing"


@pytest.mark.parametrize("how", ["removed", "replaced", "a link", "folder gone", "folder replaced"])
def test_the_holder_of_a_lock_that_was_taken_away_writes_nothing_more(tmp_path, how):
    lab = tmp_path / "lab"
    lab.mkdir()

    def take_away():
        if "folder" in how:
            lab.rename(tmp_path / "moved")
        else:
            (lab / "lock").rename(tmp_path / "moved")
        if how == "folder replaced":
            shutil.copytree(tmp_path / "moved", lab)
        if how == "replaced":
            (lab / "lock").write_text("{}")
        if how == "a link":
            (lab / "lock").symlink_to(tmp_path / "moved")

    with hold_lock(lab / "lock"):
        write_file(lab / "before.json", b"1")
        take_away()
        there = sorted(tmp_path.rglob("*"))
        for write in (
            lambda: write_file(lab / "after.json", b"2"),
            lambda: make_folder(lab / "sweeps"),
            lambda: remove_file(lab / "before.json"),
            lambda: remove_files(lab, lambda name: True),
        ):
            with pytest.raises(LabLostError, match="lock was removed or replaced while this process held it"):
                write()

    assert sorted(tmp_path.rglob("*")) == there
    assert LabLostError.exit_code == 1


def test_a_lock_that_is_a_link_is_refused_and_its_target_stays(tmp_path):
    (tmp_path / "diary").write_text("mine")
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "lock").symlink_to(tmp_path / "diary")

    with pytest.raises(LabError, match="lock is a link"), hold_lock(tmp_path / "lab" / "lock"):
        pass

    assert (tmp_path / "diary").read_text() == "mine"


def test_a_lock_that_is_a_pipe_is_refused(tmp_path):
    os.mkfifo(tmp_path / "lock")

    with pytest.raises(LabError, match="lock is no regular file"), hold_lock(tmp_path / "lock"):
        pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_locks_is_named_in_one_line(tmp_path, monkeypatch, number):
    def refuse(descriptor, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)

    with pytest.raises(LabError, match="knows no locks") as caught, hold_lock(tmp_path / "lock"):
        pass
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_where_only_files_can_be_locked_the_lock_file_does(tmp_path, monkeypatch, holder):
    """As over NFS, where a folder cannot be opened for writing and so not be locked."""
    original = fcntl.flock

    def flock(descriptor, how):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        original(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)

    with pytest.raises(LabLockedError), hold_lock(tmp_path / "lock"):
        pass
    holder.kill()
    holder.wait()
    with hold_lock(tmp_path / "lock"):
        write_file(tmp_path / "file", b"")
