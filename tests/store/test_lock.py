"""The lab's lock: one runner, told apart by process and host, gone with it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from batchlab.errors import LabLockedError, StorageError
from batchlab.store.lock import hold_lock

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
        "Wait for it to end, stop it, or use another --lab."
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
    (tmp_path / "lock").mkdir()

    with pytest.raises(StorageError, match=f"Could not write {tmp_path / 'lock'}"), hold_lock(tmp_path / "lock"):
        pass


def test_an_error_inside_is_passed_on_as_it_is(tmp_path):
    with pytest.raises(FileNotFoundError), hold_lock(tmp_path / "lock"):
        (tmp_path / "nowhere").read_text()
