"""Runs whose processes torchrun has started: one of them is the run, the others serve it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from batchlab.core.sweep import Sweep
from batchlab.engine.gang.group import Assembly
from batchlab.errors import InputError, LostOthersError, SpecError
from batchlab.own.python_file import load_own_sweep
from batchlab.processes import Place, is_serving, torchrun_place
from batchlab.run.executors.torchrun import TorchrunGang, check_left_to_torchrun
from batchlab.run.run_sweep import run_sweep
from batchlab.spec.load import with_settings
from batchlab.store.lab import Lab

PATIENCE = 300.0
VARIABLES = {"TORCHELASTIC_RUN_ID": "test", "RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
SPEC = """
name = "digits"

[workload]
dataset = "digits"
model = {name = "resnet_8", filters = [4, 6, 8]}
optimizer = "nesterov_momentum"

[sweep]
batch_sizes = [16]
trials = 2
max_steps = 50
goal = "val/classification_error < 0.001"
evaluate = {every = 10}

[search_space]
learning_rate = {min = 0.001, max = 0.01}
momentum = {min = 0.5, max = 0.9}

[engine]
precision = "float64"
checkpoint_seconds = 0.2
keep_states = true
"""
OTHERS = {
    "simple CNN with dropout": ['workload.model={name="simple_cnn_narrow", dropout=0.4}'],
    "ghost norm": ['workload.model={name="resnet_50", blocks=[1, 1], width=4, ghost_size=4}'],
    "microbatches": ["engine.microbatch_size=8"],
}
OWN = """
from tests.own.shared import sweep_of

sweep = sweep_of("step dataset", batch_size=16, keep_states=True)
"""


def test_a_process_knows_its_place(monkeypatch):
    assert torchrun_place() is None
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert torchrun_place() == Place(rank=1, size=4, local_rank=1)
    assert is_serving()

    monkeypatch.setenv("RANK", "0")
    assert not is_serving()


@pytest.mark.parametrize("changed", [{}, {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "first"}])
def test_an_environment_that_is_not_torchruns_is_bad_input(monkeypatch, changed):
    for name, value in {**VARIABLES, "RANK": "0", **changed}.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(InputError, match="The environment is not as torchrun leaves it: "):
        Assembly("cpu", 1.0)


def test_a_port_that_is_taken_is_named(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        place = {"RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        for name, value in {**VARIABLES, **place}.items():
            monkeypatch.setenv(name, value)

        with pytest.raises(LostOthersError, match=f"cannot meet at 127.0.0.1:{port}: .*in use"):
            Assembly("cpu", 1.0)


ASSEMBLED = """
import atexit
import torch.distributed as dist
from batchlab.engine.gang.group import Assembly

atexit.register(lambda: print(dist.is_initialized()))
assembly = Assembly("cpu", 30.0)
assembly.tell("end") if dist.get_rank() == 0 else assembly.hear()
assembly.close(is_in_step=True)
print(dist.is_initialized())
"""


def test_processes_stay_together_for_as_long_as_they_live_and_leave_no_thread_behind():
    """One that still let go of what it had exchanged, while Python ended, aborted in one run of ten."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        master = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", ASSEMBLED],
            env={**os.environ, **VARIABLES, **master, "RANK": rank, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": "2"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]

    assert [each.communicate(timeout=PATIENCE)[0].split() for each in processes] == [["True", "False"]] * 2
    assert [each.returncode for each in processes] == [0, 0]


@pytest.mark.parametrize("changed", [{"TORCHELASTIC_RUN_ID": None}, {"WORLD_SIZE": "1"}, {"RANK": "first"}])
def test_a_process_that_is_alone_is_a_run_like_any_other(monkeypatch, changed):
    for name, value in {**VARIABLES, **changed}.items():
        if value is not None:
            monkeypatch.setenv(name, value)

    assert torchrun_place() is None


@pytest.mark.parametrize(
    ("given", "option"),
    [((2, None, "local"), "workers"), ((None, 0, "local"), "gpus"), ((None, None, "ray"), "executor")],
)
def test_what_torchrun_decides_is_not_asked_for(given, option):
    with pytest.raises(InputError, match=f"Leave out `{option}`: torchrun decides how many processes there are"):
        check_left_to_torchrun(*given)


def spread(sweep, size):
    gang = object.__new__(TorchrunGang)  # of which nobody has been found yet
    gang._place = Place(0, size, 0)
    return gang.spread(sweep)


def test_a_trial_trains_on_all_processes(make_digits, make_nqm):
    sweep = make_digits()

    assert spread(sweep, 4).engine.workers_per_trial == 4
    assert spread(make_digits({"engine.workers_per_trial": 4}), 4).engine.workers_per_trial == 4
    assert spread(sweep, 4).search.model_fields_set == sweep.search.model_fields_set
    with pytest.raises(InputError, match="engine.workers_per_trial = 3, and torchrun has started 4 processes"):
        spread(make_digits({"engine.workers_per_trial": 3}), 4)
    with pytest.raises(SpecError, match="torchrun: .* is computed by formulas"):
        spread(make_nqm(), 2)


# For real


class Torchrun:
    """A run by torchrun, on this machine."""

    def __init__(self, folder, *options, size=2, file=None, node=("--standalone",)):
        self.spec, self.lab = folder / ("spec.toml" if file is None else "own.py"), folder / "lab"
        self.spec.write_text(file or SPEC)
        command = [sys.executable, "-m", "torch.distributed.run", *node, "--nproc-per-node", str(size)]
        paths = os.pathsep.join(path for path in sys.path if path)
        self.process = subprocess.Popen(
            [*command, "-m", "batchlab", "run", str(self.spec), "--lab", str(self.lab), *options],
            env={**os.environ, "PYTHONPATH": paths},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self):
        """Return what was printed, and what was said by us and not by torchrun."""
        printed, said = self.process.communicate(timeout=PATIENCE)
        return printed, [line for line in said.splitlines() if line.startswith("batchlab: ")]

    def ranks(self):
        """Return the processes that torchrun has started, by rank."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        variables = {int(each): Path(f"/proc/{each}/environ").read_text().split("\0") for each in children}
        return {
            int(value.partition("=")[2]): process
            for process, values in variables.items()
            for value in values
            if value.startswith("RANK=")
        }

    def wait_for_checkpoint(self):
        deadline = time.monotonic() + PATIENCE
        while not list(self.lab.rglob("*.safetensors")):
            assert time.monotonic() < deadline and self.process.poll() is None
            time.sleep(0.05)


def results(lab):
    """Return the curves of the one study of a lab, and the last weights of each trial."""
    store = Lab.open(lab)
    found = store.results(store.find()).results[0].measurements
    return found, {path.name: load_file(path) for path in lab.rglob("states/*.safetensors")}


def check_near(lab, expected_lab):
    (found, states), (expected, expected_states) = results(lab), results(expected_lab)
    assert found.step.tolist() == expected.step.tolist()
    for name, values in expected.metrics.items():
        assert np.abs(values - found.metrics[name]).max() < 1e-6
    assert len(expected_states) == len(states) == 2
    for trial, state in expected_states.items():
        weights, others = state["program.parameters"], states[trial]["program.parameters"]
        distance = np.linalg.norm(weights - others) / np.linalg.norm(weights)
        print(f"{trial}: {distance:.1e} apart after {found.step.max()} steps")
        assert distance < 1e-6


def parsed(settings):
    return Sweep.parse(with_settings(tomllib.loads(SPEC), [*settings, "engine.pack_size=1"]), "test")


def given(settings):
    return [word for setting in [*settings, "engine.pack_size=1"] for word in ("--set", setting)]


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 4])
def test_a_run_by_torchrun_comes_to_what_a_run_by_itself_does(tmp_path, size):
    run = Torchrun(tmp_path, *given([]), size=size)
    printed, said = run.end()
    assert run.process.returncode == 0, said
    assert printed.count("digits/resnet_8/nesterov_momentum") == 1
    assert said == []

    run_sweep(parsed([]), tmp_path / "alone", num_workers=1)

    check_near(run.lab, tmp_path / "alone")
    again = Torchrun(tmp_path, *given([]), size=size)
    assert again.end()[0] == printed
    assert again.process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("settings", OTHERS.values(), ids=OTHERS)
def test_so_does_every_kind_of_network(tmp_path, settings):
    run = Torchrun(tmp_path, *given(settings))
    assert run.end()[1] == []
    run_sweep(parsed(settings), tmp_path / "alone", num_workers=1)

    check_near(run.lab, tmp_path / "alone")


@pytest.mark.slow
def test_so_does_a_network_of_ones_own(tmp_path):
    run = Torchrun(tmp_path, file=OWN)
    _, said = run.end()
    assert [line for line in said if "is executed" not in line] == []
    own = load_own_sweep(run.spec)
    own.file = run.spec
    run_sweep(own, tmp_path / "alone", num_workers=1)

    check_near(run.lab, tmp_path / "alone")


@pytest.mark.slow
def test_two_machines_train_together(tmp_path):
    """Both are this one, as far as they know by a network."""
    with socket.socket() as free:
        free.bind(("", 0))
        master = ["--nnodes", "2", "--master-addr", "127.0.0.1", "--master-port", str(free.getsockname()[1])]
    runs = [Torchrun(tmp_path, *given([]), size=1, node=[*master, "--node-rank", rank]) for rank in ("0", "1")]
    printed = [run.end()[0] for run in runs]
    run_sweep(parsed([]), tmp_path / "alone", num_workers=1)

    assert [run.process.returncode for run in runs] == [0, 0]
    assert printed[0] and not printed[1]
    check_near(runs[0].lab, tmp_path / "alone")


@pytest.mark.slow
def test_a_contradiction_is_told_once_and_nothing_is_made(tmp_path):
    run = Torchrun(tmp_path, "--set", "engine.workers_per_trial=3")

    assert run.end()[1] == [
        "batchlab: engine.workers_per_trial = 3, and torchrun has started 2 processes, which train each trial "
        "together: start 3, or leave it out."
    ]
    assert run.process.returncode == 1
    assert not run.lab.exists()


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_without_torchrun(tmp_path):
    run = Torchrun(tmp_path, *given(["sweep.max_steps=200"]))
    run.wait_for_checkpoint()
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[1] == [
        "batchlab: Interrupted; every finished pack and the last checkpoints are kept: run the same again to go on."
    ]

    for lab in (run.lab, tmp_path / "alone"):
        run_sweep(parsed(["sweep.max_steps=200"]), lab, num_workers=1)

    check_near(run.lab, tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_run_that_torchrun_starts_again_goes_on(tmp_path, rank):
    settings = given(["sweep.max_steps=200"])
    run = Torchrun(tmp_path, *settings, node=["--standalone", "--max-restarts", "2"])
    run.wait_for_checkpoint()
    os.kill(run.ranks()[rank], signal.SIGKILL)
    _, said = run.end()
    run_sweep(parsed(["sweep.max_steps=200"]), tmp_path / "alone", num_workers=1)

    assert run.process.returncode == 0, said
    check_near(run.lab, tmp_path / "alone")


@pytest.mark.slow
def test_a_process_that_stalls_is_named_and_nothing_is_left(tmp_path):
    run = Torchrun(tmp_path, "--set", "sweep.max_steps=5000", "--set", "engine.worker_timeout_seconds=5")
    run.wait_for_checkpoint()
    ranks = run.ranks()
    os.kill(ranks[1], signal.SIGSTOP)

    (said,) = run.end()[1]

    assert f"No sign of life: rank 1 of 2 (process {ranks[1]} on " in said
    assert not any(Path(f"/proc/{process}").exists() for process in ranks.values())
