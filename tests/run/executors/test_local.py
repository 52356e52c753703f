"""Worker processes: what comes back from them, and that none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from batchlab.engine.base import Point
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.run.executors.executor import Finished, Lost, Passing
from batchlab.run.executors.local import LocalExecutor
from batchlab.run.pack import PackTask
from batchlab.run.shelf import Shelf
from batchlab.store.study_folder import StudyFolder
from tests.processes import has_ended

PATIENCE = 60.0


@pytest.fixture
def task(make_nqm):
    study = make_nqm().study(16)
    points = [Point(trial_id, {"learning_rate": rate}) for trial_id, rate in enumerate((0.1, 0.5))]
    return PackTask(study, points, study.max_steps)


@pytest.fixture
def shelf(task, tmp_path):
    return Shelf(StudyFolder(tmp_path / "16"), "trials-0-1", task.study)


@pytest.fixture
def executor():
    with closing(LocalExecutor(QuadraticTrainer(), [16], num_workers=1)) as executor:
        yield executor


def last_event(executor):
    """Return the first event that is not about progress."""
    while True:
        for event in executor.events(PATIENCE):
            if not isinstance(event, Passing):
                return event


def test_a_worker_that_dies_at_its_start_is_lost_like_any_other(executor, task, shelf):
    """It is killed before it has read anything, with a task on its way."""
    (worker,) = executor._workers
    os.kill(worker.process.pid, signal.SIGSTOP)
    executor.submit("key", task, shelf)
    os.kill(worker.process.pid, signal.SIGKILL)

    assert last_event(executor) == Lost("key", "exit code -9: it was killed, as the system does when memory runs out")
    executor.submit("again", task, shelf)
    assert isinstance(last_event(executor), Finished)


def test_closing_ends_the_workers(task):
    executor = LocalExecutor(QuadraticTrainer(), [16], num_workers=2)
    pids = [worker.process.pid for worker in executor._workers]

    executor.close()

    assert all(has_ended(pid) for pid in pids)


def test_starting_workers_leaves_the_environment_as_it_was(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    before = dict(os.environ)

    with closing(LocalExecutor(QuadraticTrainer(), [16], num_workers=1)):
        assert dict(os.environ) == before


EXECUTOR = """
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.run.executors.local import LocalExecutor
import signal

if __name__ == "__main__":
    executor = LocalExecutor(QuadraticTrainer(), [16], num_workers=2)
    print(*(worker.process.pid for worker in executor._workers), flush=True)
    signal.pause()
"""


POOL = """
import multiprocessing, signal
from concurrent.futures import ProcessPoolExecutor
from batchlab.processes import die_with_parent

if __name__ == "__main__":
    pool = ProcessPoolExecutor(2, multiprocessing.get_context("spawn"), die_with_parent)
    [each.result() for each in [pool.submit(abs, 1), pool.submit(abs, 2)]]
    print(*pool._processes, flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("parent", [EXECUTOR, POOL], ids=["executor", "pool"])
def test_workers_do_not_outlive_a_parent_that_is_killed(tmp_path, parent):
    script = tmp_path / "parent.py"
    script.write_text(parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, env=environment) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        process.kill()

    assert len(pids) == 2
    assert all(has_ended(pid) for pid in pids)
