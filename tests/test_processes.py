"""How many processors there are for us, and what processes that we start are to know."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from batchlab import processes
from batchlab.processes import SAFE_PATH, take_back_safe_path, undisturbed_by_folder, usable_cores

PROGRAM = "from batchlab.processes import usable_cores; print(usable_cores())"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system binds no process to processors")
def test_a_process_that_is_bound_to_one_processor_counts_one():
    one = next(iter(os.sched_getaffinity(0)))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {one}),
    )

    assert done.stdout == "1\n"


@pytest.mark.parametrize(
    ("told", "number"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 1),
        ("50000 100000", 1),
        ("1600000 100000", 8),
        ("", 8),
    ],
)
def test_a_container_may_have_a_share_of_the_processors(monkeypatch, tmp_path, told, number):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(8), raising=False)
    monkeypatch.setattr(processes, "CGROUP", tmp_path / "cpu.max")
    (tmp_path / "cpu.max").write_text(told)

    assert usable_cores() == number


def test_a_process_that_starts_does_not_look_into_the_folder_and_hands_that_on_to_nobody(monkeypatch):
    monkeypatch.delenv(SAFE_PATH, raising=False)
    with undisturbed_by_folder():
        program = "import sys; print(sys.flags.safe_path)"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        take_back_safe_path()
        assert SAFE_PATH not in os.environ

    assert done.stdout == "True\n"
    assert SAFE_PATH not in os.environ


def test_a_setting_of_the_users_stays(monkeypatch):
    monkeypatch.setenv(SAFE_PATH, "1")
    with undisturbed_by_folder():
        take_back_safe_path()
        assert os.environ[SAFE_PATH] == "1"

    assert os.environ[SAFE_PATH] == "1"
