"""The executor of Ray keeps the contract, and a sweep on a cluster comes to what it does here. Skipped without Ray."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from batchlab.engine.quadratic import QuadraticTrainer
from batchlab.errors import TrialError
from batchlab.run.displays import SilentDisplay
from batchlab.run.run_sweep import run_sweep
from tests.contracts.executors import ExecutorContract
from tests.contracts.kills import FIFTY, Killer, run_with_kills, tables

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'batchlab[ray]'")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two nodes on this machine, with room for two workers."""
    from ray.cluster_utils import Cluster

    paths = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), paths]))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    os.environ["PYTHONPATH"] = paths


@pytest.fixture(autouse=True)
def surroundings(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class TestRay(ExecutorContract):
    @pytest.fixture
    def make_executor(self):
        from batchlab.run.executors.ray import RayExecutor

        return lambda trainer, batch_sizes: RayExecutor(trainer, num_workers=1)

    @staticmethod
    def kill_worker(executor):
        (worker,) = executor._workers
        os.kill(ray.get(worker.is_there), signal.SIGKILL)


class Unmakeable(QuadraticTrainer):
    """A trainer that cannot be made where it is sent."""

    def __reduce__(self):
        return fail, ()


def fail():
    raise ImportError("no such module here")


def test_a_worker_that_cannot_start_ends_the_run_with_one_line(cluster):
    from batchlab.run.executors.ray import RayExecutor

    with pytest.raises(TrialError, match="could not start: .*no such module here.*Every node needs batchlab") as caught:
        RayExecutor(Unmakeable(), num_workers=1)

    assert "\n" not in str(caught.value)


def test_a_sweep_of_networks_on_a_cluster_comes_to_the_same_bytes(make_digits, tmp_path):
    sweep = make_digits()
    run_sweep(sweep, tmp_path / "here", num_workers=1)

    run_sweep(sweep, tmp_path / "lab", executor="ray")

    assert tables(tmp_path / "lab", sweep) == tables(tmp_path / "here", sweep)


class KillNode(SilentDisplay):
    """Removes a node of the cluster once the run is under way."""

    def __init__(self, cluster, node):
        self._cluster, self._node, self.said, self.kills = cluster, node, [], 0

    def show(self, studies, num_workers):
        if not self.kills and any(study.step and study.step > 5 for study in studies):
            self._cluster.remove_node(self._node, allow_graceful=False)
            self.kills += 1

    def say(self, sentence):
        self.said.append(sentence)


def test_a_node_that_is_lost_half_way_changes_nothing(cluster, make_digits, tmp_path):
    sweep = make_digits({"sweep.protocol": "full", "engine.checkpoint_seconds": 0.5})
    run_sweep(sweep, tmp_path / "here", num_workers=1)
    node = cluster.add_node(num_cpus=2)
    killer = KillNode(cluster, node)

    run_sweep(sweep, tmp_path / "lab", executor="ray", num_workers=4, display=killer)

    assert killer.kills == 1
    assert tables(tmp_path / "lab", sweep) == tables(tmp_path / "here", sweep)


class ActorKiller(Killer):
    """Kills workers of the cluster."""

    def alive(self):
        return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if is_worker(pid)]


def is_worker(pid):
    """Return whether a process is an actor of ours at work: Ray names it by its class."""
    try:
        return b"ray::_Actor" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


FEW = {"sweep.protocol": "full", "engine.checkpoint_seconds": 0.2}


@pytest.mark.parametrize(
    ("changes", "most", "share"),
    [(FEW, 3, 1), pytest.param({**FIFTY, "sweep.max_steps": 3_000}, 50, 0.3, marks=pytest.mark.slow)],
)
def test_killed_workers_leave_no_trace(make_digits, tmp_path, changes, most, share):
    sweep, killer = make_digits(changes), ActorKiller(random.Random(4), most, share)
    run_sweep(sweep, tmp_path / "here", num_workers=1)

    labs = run_with_kills(sweep, tmp_path, killer, num_workers=2, executor="ray")

    assert killer.kills == most
    for lab in labs:
        assert tables(lab, sweep) == tables(tmp_path / "here", sweep)
