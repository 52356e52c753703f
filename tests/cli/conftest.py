"""The command line as a user meets it: in a process of its own, or in this one where that is faster.

Every test works in an empty folder, with an empty cache and home, and with no way into the network.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import batchlab
from batchlab.cli import main

GRID_SPEC = """
name = "grid"

[workload]
dataset = {name = "nqm", dimension = 100}
model = "quadratic"
optimizer = "sgd"

[sweep]
batch_sizes = [1, 4, 16, 64, 256, 1024, 4096]
trials = 5
max_steps = 5000
goal = "val/risk <= 0.05"
sampler = "grid"
sampler_version = 2  # in the order of their values: the tests know trials by their place
evaluate = {every = 1}

[search_space]
learning_rate = {values = [0.03, 0.1, 0.3, 1.0, 1.8]}
"""

SMALL_SPEC = """
name = "small"

[workload]
dataset = {name = "nqm", dimension = 10}
model = "quadratic"
optimizer = "sgd"

[sweep]
batch_sizes = [4, 64]
trials = 3
max_steps = 200
goal = "val/risk <= 0.3"
sampler = "grid"
sampler_version = 2  # in the order of their values: the tests know trials by their place
evaluate = {every = 1}

[search_space]
learning_rate = {values = [0.1, 0.3, 1.0]}
"""

DIGITS_SPEC = """
name = "digits-small"

[workload]
dataset = "digits"
model = "fc_8"
optimizer = "nesterov_momentum"

[sweep]
batch_sizes = [16, 128]
trials = 3
max_steps = 60
goal = "val/classification_error < 0.5"
evaluate = {growth = 1.3}

[search_space]
learning_rate = {min = 0.01, max = 1.0, scale = "log"}
momentum = {min = 0.0, max = 0.9}

[engine]
pack_size = 3
"""


@dataclass(frozen=True)
class Answer:
    """What a command gave back."""

    code: int
    out: str
    err: str


Run = Callable[..., Answer]


def _closed_port() -> int:
    """Return a port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _environment(folder: Path) -> dict[str, str]:
    """Return the variables that keep a run inside `folder`: nothing of the user's, nothing from the network."""
    nowhere = f"http://127.0.0.1:{_closed_port()}"
    return {
        "HOME": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": str(Path(batchlab.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), nowhere),
        **dict.fromkeys(("no_proxy", "NO_PROXY"), ""),
    }


def _batchlab(*arguments: object, cwd: Path, **options: Any) -> Answer:
    command = [sys.executable, "-W", "error", "-m", "batchlab", *map(str, arguments)]
    # Written out: readline, which pytest loads, puts COLUMNS where a process would find it and os.environ would not.
    environment = {"env": dict(os.environ), **options}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, **environment)
    return Answer(done.returncode, done.stdout, done.stderr)


@pytest.fixture(autouse=True)
def quiet_place(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder with nothing of the user's and no network."""
    # matplotlib lists the system's fonts once and keeps the list: that takes seconds, so one list serves all tests.
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path_factory.getbasetemp() / "matplotlib"))
    for name in ("BATCHLAB_DATA", "BATCHLAB_DEBUG", "COLUMNS", "PYTHONUNBUFFERED"):
        monkeypatch.delenv(name, raising=False)
    for name, value in _environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("urllib.request._opener", None)  # it remembers the proxies of its first use
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def batchlab_process(tmp_path: Path) -> Run:
    """Run the command line in a process of its own; options go to subprocess.run."""

    def run(*arguments: object, **options: Any) -> Answer:
        return _batchlab(*arguments, cwd=tmp_path, **options)

    return run


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process: the same code, without the start of an interpreter."""

    def run(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["batchlab", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
        except SystemExit as end:
            return Answer(int(end.code or 0), *capsys.readouterr())
        except KeyboardInterrupt:  # it would end all tests
            pytest.fail("the interrupt was not turned into an exit code")
        pytest.fail("the command line returned without an exit code")

    return run


@pytest.fixture
def files(tmp_path: Path) -> Callable[[], dict[str, bytes | None]]:
    """Return a function that reads everything below the test's folder; folders are None."""

    def read() -> dict[str, bytes | None]:
        # The lock tells who held it last: the one file that a refused run may sign.
        paths = sorted(path for path in tmp_path.rglob("*") if path.name != "lock")
        return {str(path): path.read_bytes() if path.is_file() else None for path in paths}

    return read


@pytest.fixture
def refused(call: Run, files: Callable[[], dict[str, bytes | None]]) -> Callable[..., str]:
    """Run a command that must be refused: one line on stderr, an exit code, no file changed. Returns the line."""

    def run(*arguments: object, code: int = 2) -> str:
        before = files()
        answer = call(*arguments)

        assert (answer.code, answer.out) == (code, "")
        assert answer.err.startswith("batchlab: ")
        assert answer.err.endswith("\n")
        assert answer.err.count("\n") == 1
        assert files() == before
        return answer.err

    return run


@pytest.fixture
def grid_spec(tmp_path: Path) -> Path:
    """The spec of which exact steps were worked out apart from this code: risk 0.05, 100 dimensions."""
    return _written(tmp_path / "grid.toml", GRID_SPEC)


@pytest.fixture
def small_spec(tmp_path: Path) -> Path:
    """A spec that runs in a second."""
    return _written(tmp_path / "small.toml", SMALL_SPEC)


@pytest.fixture
def digits_spec(tmp_path: Path) -> Path:
    """A spec that trains a network for a moment."""
    return _written(tmp_path / "digits-small.toml", DIGITS_SPEC)


@pytest.fixture(scope="session")
def full_lab_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The grid with the full protocol; read only."""
    return _lab(tmp_path_factory.mktemp("full"), GRID_SPEC, "--set", "sweep.protocol=full")


@pytest.fixture(scope="session")
def grid_lab_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The grid as a race; read only."""
    return _lab(tmp_path_factory.mktemp("grid"), GRID_SPEC)


@pytest.fixture(scope="session")
def small_lab_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small sweep; read only."""
    return _lab(tmp_path_factory.mktemp("small"), SMALL_SPEC)


@pytest.fixture(scope="session")
def mixed_lab_once(tmp_path_factory: pytest.TempPathFactory, small_lab_once: Path) -> Path:
    """The small sweep and a network on digits in one lab; read only."""
    folder = tmp_path_factory.mktemp("mixed")
    shutil.copytree(small_lab_once, folder / "lab")
    return _lab(folder, DIGITS_SPEC)


@pytest.fixture
def grid_lab(tmp_path: Path, grid_lab_once: Path) -> Path:
    """A lab with the grid, the test's own."""
    return Path(shutil.copytree(grid_lab_once, tmp_path / "lab"))


@pytest.fixture
def small_lab(tmp_path: Path, small_lab_once: Path) -> Path:
    """A lab with the small sweep, the test's own."""
    return Path(shutil.copytree(small_lab_once, tmp_path / "lab"))


@pytest.fixture
def mixed_lab(tmp_path: Path, mixed_lab_once: Path) -> Path:
    """A lab with two sweeps of two workloads, the test's own."""
    return Path(shutil.copytree(mixed_lab_once, tmp_path / "lab"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Return a function that gives a file system of that size, or gives it another one; skip where none may be made."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(size: str) -> Path:
        options = f"remount,size={size}" if os.path.ismount(disk) else f"size={size}"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], capture_output=True)
        if done.returncode:
            pytest.skip("no small file system can be mounted here: that needs root; RLIMIT_FSIZE is tested instead")
        return disk

    if shutil.which("mount") is None:
        pytest.skip("there is no `mount` here; RLIMIT_FSIZE is tested instead")
    yield mount
    if os.path.ismount(disk):
        subprocess.run(["umount", str(disk)], check=True)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def _lab(folder: Path, spec: str, *arguments: str) -> Path:
    """Run a spec in a process of its own and return its lab."""
    path = _written(folder / "spec.toml", spec)
    environment = {**os.environ, **_environment(folder)}
    answer = _batchlab("run", path, "--lab", "lab", "--workers", 1, "--json", *arguments, cwd=folder, env=environment)
    assert answer.code == 0, answer.err
    return folder / "lab"
