"""Every executor that comes with batchlab keeps the contract; `tests/ray` holds that of Ray to it."""

from __future__ import annotations

import pytest

from batchlab.run.executors.choose import make_executor as choose
from batchlab.run.executors.gang import GangExecutor
from batchlab.run.executors.here import HereExecutor
from batchlab.run.executors.local import LocalExecutor
from tests.contracts.executors import ExecutorContract


class TestLocal(ExecutorContract):
    @pytest.fixture
    def make_executor(self):
        return lambda trainer, batch_sizes: LocalExecutor(trainer, batch_sizes, num_workers=1)

    @staticmethod
    def kill_worker(executor):
        (worker,) = executor._workers
        worker.process.kill()
        worker.process.join()


@pytest.mark.slow
class TestGang(ExecutorContract):
    """A gang of two, of which the one that follows dies; the trainer knows nothing of exchanges, and both train all."""

    @pytest.fixture
    def make_executor(self):
        return lambda trainer, batch_sizes: GangExecutor(trainer, batch_sizes, num_workers=1, size=2, timeout=60)

    @staticmethod
    def kill_worker(executor):
        kill_member(executor, rank=1)


class TestGangWhoseFirstDies(TestGang):
    @staticmethod
    def kill_worker(executor):
        kill_member(executor, rank=0)


def kill_member(executor, rank):
    (gang,) = executor._workers
    process = gang._members[rank].process
    process.kill()
    process.join()


class TestHere(ExecutorContract):
    @pytest.fixture
    def make_executor(self):
        return HereExecutor


def test_a_trainer_that_cannot_leave_this_process_trains_here(scripted):
    class Stays(scripted):
        stays_here = True

    executor = choose(Stays(), [8], num_workers=4)

    assert isinstance(executor, HereExecutor)
    assert executor.num_idle == 1
