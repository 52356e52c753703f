"""Runs that a signal stops or kills: the same command goes on, and in the end nothing tells the difference."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from batchlab.run.run_sweep import run_sweep
from batchlab.spec.load import load_sweep
from batchlab.store.lab import Lab

pytestmark = pytest.mark.usefixtures("heard_signals")

PATIENCE = 120.0

NQM = """
name = "nqm"

[workload]
dataset = {name = "nqm", dimension = 50}
model = "quadratic"
optimizer = "sgd"

[sweep]
batch_sizes = [4, 64]
trials = 12
max_steps = 600
goal = "val/risk <= 0.001"
protocol = "full"
sampler = "grid"
evaluate = {every = 1}

[search_space]
learning_rate = {min = 1e-3, max = 2.5, scale = "log", points = 16}

[engine]
pack_size = 1
"""

DIGITS = """
name = "digits"

[workload]
dataset = "digits"
model = "fc_128"
optimizer = "nesterov_momentum"

[sweep]
batch_sizes = [8, 64, 256]
trials = 16
max_steps = 6000
goal = "val/classification_error < 0.03"
evaluate = {growth = 1.1}

[search_space]
learning_rate = {min = 1e-3, max = 1e3, scale = "log"}
momentum = {min = 0.0, max = 0.999, scale = "reverse_log"}

[engine]
pack_size = 8
"""

SCRIPT = """
import sys
from pathlib import Path

from batchlab.run.run_sweep import run_sweep
from batchlab.spec.load import load_sweep

if __name__ == "__main__":
    run_sweep(load_sweep(sys.argv[1]), Path(sys.argv[2]), num_workers=2)
"""


class Run:
    """A run in a process and a session of its own."""

    def __init__(self, command):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *details):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stderr.close()
        self.process.wait()

    def lives(self, seconds):
        """Return whether the run goes on for so long; otherwise as soon as it has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.process.returncode is None

    def wait_until(self, condition):
        """Return whether `condition()` came true while the run went on."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "the run makes no progress"
            if not self.lives(0.005):
                return False
        return True

    def end(self):
        """Return the exit code and what was said on stderr."""
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said.decode()


def stored(lab, name):
    """Return the bytes of every column of every study, and its trials without times."""
    store = Lab.open(lab)
    results = store.results(store.sweep(name))
    assert (results.unfinished, results.problems) == ([], [])
    return {
        result.batch_size: (
            result.end_step,
            [trial.model_dump(exclude={"wall_seconds"}) for trial in result.trials],
            result.measurements.trial_id.tobytes(),
            result.measurements.step.tobytes(),
            {metric: values.tobytes() for metric, values in result.measurements.metrics.items()},
            confirmed(store.study_folder(name, result.batch_size)),
        )
        for result in results.results
    }


def confirmed(folder):
    """Return what became of the replicates, without times, and the bytes of their rows."""
    if folder.confirmation() is None:
        return None
    rows = folder.replicates()
    replicates = [each.model_dump(exclude={"wall_seconds"}) for each in folder.confirmation().replicates]
    return replicates, rows.step.tobytes(), {metric: values.tobytes() for metric, values in rows.metrics.items()}


def files(lab):
    """Return what lies in the folders of the studies."""
    return sorted(str(path.relative_to(lab)) for path in lab.glob("sweeps/*/*/*"))


@pytest.fixture
def run_command(tmp_path):
    """Return a function that runs `batchlab run` on one of the specs above."""

    def command(spec, lab, workers=2):
        path = tmp_path / "spec.toml"
        path.write_text(spec)
        return Run(["-m", "batchlab", "run", str(path), "--lab", str(lab), "--workers", str(workers)])

    return command


def finish(run):
    with run:
        code, said = run.end()
    assert code == 0, said


def test_the_same_command_goes_on_after_a_signal(run_command, tmp_path):
    """One lab is stopped by each kind of signal in turn, soon after another pack is stored; one is left alone."""
    lab, num_checkpoints = tmp_path / "lab", 0

    def packs():
        return set(lab.glob("sweeps/*/*/parts/*.parquet"))

    for stop in (
        lambda process: process.send_signal(signal.SIGINT),
        lambda process: process.send_signal(signal.SIGTERM),
        lambda process: os.killpg(process.pid, signal.SIGINT),  # as Ctrl-C on a terminal does
        lambda process: os.killpg(process.pid, signal.SIGTERM),  # as the end of a session does
    ):
        before = packs()
        with run_command(NQM, lab) as run:
            assert run.wait_until(lambda before=before: packs() - before)
            assert run.lives(0.03)  # the next pack has begun
            stop(run.process)
            code, said = run.end()

        assert code == 75, said
        assert "Stopping: writing checkpoints" in said
        assert said.splitlines()[-1].startswith("batchlab: Interrupted")
        num_checkpoints += len(list(lab.glob("sweeps/*/*/checkpoints/*.safetensors")))
    finish(run_command(NQM, lab))
    run_sweep(load_sweep(str(tmp_path / "spec.toml")), tmp_path / "straight", num_workers=1)

    assert num_checkpoints > 0
    assert stored(lab, "nqm") == stored(tmp_path / "straight", "nqm")
    assert files(lab) == files(tmp_path / "straight")


def test_a_second_signal_ends_at_once(run_command, tmp_path):
    lab = tmp_path / "lab"
    with run_command(NQM, lab) as run:
        assert run.wait_until(lambda: list(lab.glob("sweeps/*/*/parts/*.parquet")))
        run.process.send_signal(signal.SIGINT)
        run.process.send_signal(signal.SIGTERM)
        code, said = run.end()

    assert code == 75, said


@pytest.mark.slow
def test_networks_go_on_with_the_same_bits_after_a_signal(run_command, tmp_path):
    spec = DIGITS.replace("[8, 64, 256]", "[64]").replace("max_steps = 6000", "max_steps = 800")
    lab = tmp_path / "lab"
    with run_command(spec, lab, workers=1) as run:
        assert run.wait_until(lambda: list(lab.glob("sweeps/*/*/checkpoints/*.safetensors")))  # a first pack has paused
        run.process.send_signal(signal.SIGTERM)
        code, said = run.end()
    assert code == 75, said

    finish(run_command(spec, lab, workers=1))
    run_sweep(load_sweep(str(tmp_path / "spec.toml")), tmp_path / "straight", num_workers=1)

    assert stored(lab, "digits") == stored(tmp_path / "straight", "digits")


class Watch:
    """Counts how often files of a lab have appeared, changed or gone."""

    def __init__(self, lab):
        self.lab, self.num_changes = lab, 0
        self._files = self._look()

    def look(self):
        files = self._look()
        self.num_changes += len(files.items() ^ self._files.items())
        self._files = files
        return self.num_changes

    def _look(self):
        files = {}
        for path in self.lab.rglob("*"):
            with suppress(FileNotFoundError):
                files[path] = path.stat().st_mtime_ns
        return files


CONFIRMED = DIGITS.replace("[8, 64, 256]", "[16, 256]").replace(
    "trials = 16", "trials = 8\nconfirm = {seeds = 6, points = 3}"
)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "least"), [(DIGITS, 20), (CONFIRMED, 10)], ids=["search", "confirm"])
def test_many_kills_leave_no_trace(tmp_path, text, least):
    """SIGKILL at random moments: after a random time from the start, or after a random number of file changes."""
    spec, script, chance = tmp_path / "spec.toml", tmp_path / "script.py", random.Random(0)
    spec.write_text(f"{text}checkpoint_seconds = 0.05\n")
    script.write_text(SCRIPT)
    labs, num_kills, num_checkpoints = [tmp_path / "straight", tmp_path / "lab-0"], 0, 0
    finish(Run([str(script), str(spec), str(labs[0])]))

    while num_kills < least:
        watch = Watch(labs[-1])
        with Run([str(script), str(spec), str(labs[-1])]) as run:
            if num_kills % 4 == 3:
                is_running = run.lives(chance.uniform(0, 4))
            else:
                moment, extra = chance.randint(1, 60), chance.uniform(0, 0.05)
                is_running = run.wait_until(lambda: watch.look() >= moment) and run.lives(extra)
            if is_running:
                run.process.kill()
                num_kills += 1
                num_checkpoints += any(labs[-1].glob("sweeps/*/*/**/checkpoints/*.safetensors"))
                continue
            assert run.process.returncode == 0, run.end()
        labs.append(tmp_path / f"lab-{len(labs) - 1}")
    finish(Run([str(script), str(spec), str(labs[-1])]))

    expected = stored(labs[0], "digits")
    assert num_checkpoints > least // 4, "too few kills in the middle of a pack to show anything"
    assert any(trial["round"] > 1 for _, trials, *_ in expected.values() for trial in trials) or "confirm" in text
    for lab in labs[1:]:
        assert stored(lab, "digits") == expected
        assert files(lab) == files(labs[0])


OWN = """
import torch
from torch import nn
import batchlab


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense, self.norm, self.dropout = nn.Linear(2, 16), nn.BatchNorm1d(16), nn.Dropout(0.3)
        self.embedding, self.head = nn.Embedding(4, 16), nn.Linear(16, 2)

    def forward(self, points):
        quadrant = 2 * (points[:, 0] > 0).long() + (points[:, 1] > 0).long()
        return self.head(self.dropout(self.norm(self.dense(points)).relu() + self.embedding(quadrant)))


class Norm(batchlab.Observer):
    metrics = ("train/norm",)

    def start(self, parameters):
        return {"norm": parameters.new_zeros(len(parameters))}

    def see_microbatch(self, state, microbatch):
        state["norm"].lerp_(microbatch.gradients.norm(dim=1) / microbatch.share, 0.01)

    def report(self, state):
        return {"train/norm": state["norm"]}


def examples(count, seed):
    points = torch.randn(count, 2, generator=torch.Generator().manual_seed(seed))
    return points, (points.square().sum(1) > 1.4).long()


sweep = batchlab.TorchSweep(
    name="own", model=Net, train=examples(400, 0), val=examples(100, 1), loss=nn.functional.cross_entropy,
    observers=[Norm()], optimizer="adamw", batch_sizes=[16], goal="val/loss < 0", trials=2, max_steps=400,
    evaluate={"every": 10}, search_space={"learning_rate": (1e-3, 1e-2, "log")},
    engine={"microbatch_size": 8, "checkpoint_seconds": 0.05})
"""


@pytest.mark.slow
def test_an_own_network_that_is_killed_ten_times_leaves_no_trace(tmp_path):
    """BatchNorm, dropout, a learned embedding and an observer, in the middle of packs."""
    (tmp_path / "own.py").write_text(OWN)
    labs, chance = [tmp_path / name for name in ("straight", "killed")], random.Random(0)
    commands = [
        ["-m", "batchlab", "run", str(tmp_path / "own.py"), "--lab", str(lab), "--workers", "1"] for lab in labs
    ]
    finish(Run(commands[0]))

    for _ in range(10):
        watch, moment = Watch(labs[1] / "sweeps" / "own" / "16" / "checkpoints"), chance.randint(1, 6)
        with Run(commands[1]) as run:
            assert run.wait_until(lambda watch=watch, moment=moment: watch.look() >= moment), run.end()
            run.process.kill()
    finish(Run(commands[1]))

    assert stored(labs[1], "own") == stored(labs[0], "own")
