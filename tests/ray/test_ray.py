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
from batchlab.run.runner import run_sweep
from batchlab.store.lab import Lab
from tests.contracts.executors import ExecutorContract

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
        from batchlab.run.ray import RayExecutor

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
    from batchlab.run.ray import RayExecutor

    with pytest.raises(TrialError, match="could not start: .*no such module here.*Every node needs batchlab") as caught:
        RayExecutor(Unmakeable(), num_workers=1)

    assert "\n" not in str(caught.value)


def tables(lab, sweep):
    store = Lab.open(lab)
    folders = [store.study_folder(sweep.name, size).folder for size in sweep.search.batch_sizes]
    return {folder.name: (folder / "measurements.parquet").read_bytes() for folder in folders}


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


class KillWorkers(SilentDisplay):
    """Kills workers of the cluster, whichever, as the run gets on."""

    def __init__(self, chance, most):
        self._chance, self._most, self._seen, self.kills = chance, most, None, 0

    def show(self, studies, num_workers):
        seen = [(study.step, study.num_done) for study in studies]
        has_got_on, self._seen = seen != self._seen, seen
        if has_got_on and self.kills < self._most and self._chance.random() < 0.3:
            alive = [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if is_worker(pid)]
            if alive:
                os.kill(self._chance.choice(alive), signal.SIGKILL)
                self.kills += 1


def is_worker(pid):
    """Return whether a process is an actor of ours at work: Ray names it by its class."""
    try:
        return b"ray::_Actor" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize("most", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_workers_leave_no_trace(make_digits, tmp_path, most):
    changes = {"sweep.protocol": "full", "engine.checkpoint_seconds": 1 if most == 50 else 0.2}
    sweep, killer = make_digits(changes), KillWorkers(random.Random(4), most)
    run_sweep(sweep, tmp_path / "here", num_workers=1)

    run_sweep(sweep, tmp_path / "lab", executor="ray", display=killer)

    assert killer.kills == most
    assert tables(tmp_path / "lab", sweep) == tables(tmp_path / "here", sweep)
