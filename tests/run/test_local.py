"""Worker processes: what comes back from them, and that none is left behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from batchlab.engine.base import Point
from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.errors import TrialError
from batchlab.run.errand import CalibrateTask
from batchlab.run.executor import Failed, Finished, Progress, Stopped
from batchlab.run.local import LocalExecutor
from batchlab.run.pack import PackTask

PATIENCE = 60.0


@pytest.fixture
def task(make_nqm, tmp_path):
    study = make_nqm().study(16)
    points = [Point(trial_id, {"learning_rate": rate}) for trial_id, rate in enumerate((0.1, 0.5))]
    return PackTask(study, points, tmp_path / "1-0.npz", study.max_steps)


@pytest.fixture
def executor():
    with closing(LocalExecutor(QuadraticTrainer(), [16], num_workers=1)) as executor:
        yield executor


def last_event(executor):
    """Return the first event that is not about progress."""
    while True:
        for event in executor.events(PATIENCE):
            if not isinstance(event, Progress):
                return event


def has_ended(pid):
    """Return whether a process ends within our patience; no polling: the kernel tells."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], PATIENCE)[0])
    finally:
        os.close(descriptor)


def test_a_task_comes_back_with_its_key(executor, task):
    assert executor.num_idle == 1
    executor.submit(("any", 3), task)
    assert executor.num_idle == 0

    event = last_event(executor)

    assert isinstance(event, Finished)
    assert event.key == ("any", 3)
    assert [outcome.trial_id for outcome in event.result.outcomes] == [0, 1]
    assert executor.num_idle == 1


def test_a_study_can_be_calibrated_in_a_worker(executor, task):
    executor.submit("size", CalibrateTask(task.study, {"learning_rate": 0.5}))

    event = last_event(executor)

    assert isinstance(event, Finished)
    pack_size, seconds = event.result
    assert 1 <= pack_size <= task.study.trials
    assert 0 < seconds < 1


def test_a_stop_ends_a_task_with_its_checkpoint(executor, task):
    executor.stop()
    executor.submit("key", task)

    assert last_event(executor) == Stopped("key")
    assert task.checkpoint.exists()


def test_a_worker_that_dies_at_work_is_told(executor, task):
    (worker,) = executor._workers
    os.kill(worker.process.pid, signal.SIGSTOP)  # it shall not finish before it dies
    executor.submit("key", task)
    os.kill(worker.process.pid, signal.SIGKILL)

    event = last_event(executor)

    assert isinstance(event, Failed)
    assert event.key == "key"
    assert "ended unexpectedly (exit code -9)" in str(event.error)


def test_a_worker_that_died_idle_is_told_when_it_is_given_a_task(executor, task):
    (worker,) = executor._workers
    worker.process.kill()
    worker.process.join()

    with pytest.raises(TrialError, match=r"ended unexpectedly \(exit code -9\)"):
        executor.submit("key", task)


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
from batchlab.run.local import LocalExecutor
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
