"""Runs that are killed, or whose lab is taken from them: nothing is left in memory, and nothing is written."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

PATIENCE = 120.0

SPEC = """
name = "nqm"

[workload]
dataset = {name = "nqm", dimension = 100}
model = "quadratic"
optimizer = "momentum"
schedule = "linear_decay"

[sweep]
batch_sizes = [4, 64]
trials = 4
max_steps = 200000
goal = "val/risk <= 1e-30"
protocol = "full"
evaluate = {every = 2000}

[search_space]
learning_rate = {min = 1e-4, max = 1e-3, scale = "log"}
momentum = {values = [0.5]}
learning_rate_decay_steps = {values = [100000]}
end_learning_rate_factor = {values = [0.5]}

[engine]
pack_size = 1
checkpoint_seconds = 0.02
"""

SCRIPT = """
import sys
from pathlib import Path

from batchlab.errors import BatchlabError
from batchlab.run.run_sweep import run_sweep
from batchlab.spec.load import load_sweep

if __name__ == "__main__":
    try:
        run_sweep(load_sweep(sys.argv[1]), Path(sys.argv[2]), num_workers=2)
    except BatchlabError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
"""


class Running:
    """A run in a session of its own, with a folder for temporary files of its own."""

    def __init__(self, folder: Path) -> None:
        self.lab, self.temporary = folder / "lab", folder / "temporary"
        self.temporary.mkdir(exist_ok=True)
        (folder / "spec.toml").write_text(SPEC)
        (folder / "run.py").write_text(SCRIPT)
        paths = os.pathsep.join(path for path in sys.path if path)
        self.process = subprocess.Popen(
            [sys.executable, str(folder / "run.py"), str(folder / "spec.toml"), str(self.lab)],
            env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(self.temporary)},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.wait_until(lambda: len(self.checkpoints()) > 1)

    def __enter__(self):
        return self

    def __exit__(self, *details):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stderr.close()
        self.process.wait()

    def checkpoints(self):
        return list(self.lab.glob("sweeps/*/*/checkpoints/*.safetensors"))

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "nothing happens"
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.01)

    def members(self):
        """Return the processes of the session that live: the run, its workers, whatever looks after them."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError, ValueError, IndexError):
                fields = path.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid and fields[0] not in "ZX":
                    found.append(int(path.parent.name))
        return found

    def named_memory(self):
        """Return the files in shared memory that the run has open or mapped, and that have a name there."""
        names = set()
        for process in self.members():
            with suppress(OSError):
                lines = Path(f"/proc/{process}/maps").read_text().splitlines()
                names |= {line.split(maxsplit=5)[5] for line in lines if "/dev/shm/" in line}
            for link in Path(f"/proc/{process}/fd").glob("*"):
                with suppress(OSError):
                    names.add(os.readlink(link))
        return {name for name in names if name.startswith("/dev/shm/") and not name.endswith("(deleted)")}

    def all_gone(self):
        deadline = time.monotonic() + PATIENCE
        while self.members():
            assert time.monotonic() < deadline, f"still there: {self.members()}"
            time.sleep(0.01)


def slow(how):
    """Return a case that only the long tests try."""
    return pytest.param(how, marks=pytest.mark.slow)


needs_proc = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc")


@needs_proc
@pytest.mark.parametrize("whom", [slow("the run"), slow("a worker"), "all at once"])
def test_a_killed_run_leaves_nothing_in_shared_memory(tmp_path, whom):
    with Running(tmp_path) as run:
        named = run.named_memory()
        workers = [process for process in run.members() if process != run.process.pid]
        if whom == "all at once":
            os.killpg(run.process.pid, signal.SIGKILL)
        elif whom == "the run":
            run.process.kill()
        else:
            os.kill(max(workers), signal.SIGKILL)
            run.process.terminate()  # it would go on without the worker
        run.process.wait()
        run.all_gone()

        assert named == set(), "what has a name is left behind by a kill"
        assert list(run.temporary.iterdir()) == []


@pytest.mark.parametrize(
    "how", ["lock removed", *map(slow, ("lock replaced", "lab moved", "lab replaced", "lab removed"))]
)
def test_a_run_whose_lock_is_taken_away_stops_and_writes_nothing_more(tmp_path, how):
    with Running(tmp_path) as run:
        moved = tmp_path / "moved"
        if how.startswith("lock"):
            (run.lab / "lock").rename(moved)
            if how == "lock replaced":
                (run.lab / "lock").write_text("{}")
        else:
            run.lab.rename(moved)
            if how == "lab replaced":
                shutil.copytree(moved, run.lab)
            if how == "lab removed":
                shutil.rmtree(moved)
        there = {path: path.stat().st_mtime_ns for path in run.lab.rglob("*")} if how == "lab replaced" else None
        said = run.process.communicate(timeout=PATIENCE)[1]
        run.all_gone()

    assert run.process.returncode == 1, said
    assert said.strip().splitlines()[-1].startswith(f"{run.lab / 'lock'} was removed or replaced while this process")
    assert run.lab.exists() == (how not in ("lab moved", "lab removed"))
    if there is not None:
        assert {path: path.stat().st_mtime_ns for path in run.lab.rglob("*")} == there


@pytest.mark.slow
def test_a_second_start_is_refused_while_the_first_runs_without_its_lock_file(tmp_path):
    with Running(tmp_path) as run:
        os.kill(run.process.pid, signal.SIGSTOP)  # so that it cannot notice first
        (run.lab / "lock").unlink()
        command = [sys.executable, str(tmp_path / "run.py"), str(tmp_path / "spec.toml"), str(run.lab)]
        paths = os.pathsep.join(path for path in sys.path if path)
        second = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=PATIENCE
        )
        os.kill(run.process.pid, signal.SIGCONT)

    assert second.returncode == 2
    assert f"Lab {run.lab} is in use by another process" in second.stderr
