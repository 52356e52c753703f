"""How the command line ends when it is interrupted, or when something happens that nobody thought of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

pytestmark = pytest.mark.usefixtures("heard_signals")


def test_what_nobody_thought_of_is_one_line_that_asks_for_a_report(call, monkeypatch, small_spec):
    def fail(*arguments: object) -> None:
        raise LookupError("a\nb" * 1000)

    monkeypatch.setattr("batchlab.spec.load.load_sweep", fail)
    answer = call("run", small_spec)

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.count("\n") == 1
    assert answer.err.startswith("batchlab: This should not happen (LookupError: a\\nba\\nb")
    assert answer.err.endswith("Please report it with what `batchlab --debug` shows.\n")
    assert len(answer.err) < 500


def test_debug_shows_the_traceback_of_what_nobody_thought_of(call, monkeypatch, small_spec):
    monkeypatch.setenv("BATCHLAB_DEBUG", "1")
    monkeypatch.setattr("batchlab.spec.load.load_sweep", lambda *arguments: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        call("run", small_spec)


def test_too_little_memory_is_said_as_that(call, monkeypatch, small_spec):
    def fail(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("batchlab.spec.load.load_sweep", fail)

    assert call("run", small_spec).err.startswith("batchlab: There is not enough memory for this.")


def test_an_import_that_an_interrupt_broke_is_an_interrupt(call, monkeypatch, small_spec):
    """numpy, say, turns what is raised while it is imported into an ImportError."""

    def fail(*arguments: object) -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise ImportError("multiarray failed to import") from None

    monkeypatch.setattr("batchlab.spec.load.load_sweep", fail)
    answer = call("run", small_spec)

    assert (answer.code, answer.err) == (75, "batchlab: Interrupted; no study was training.\n")


def test_handlers_of_signals_are_put_back(call):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    call("--version")

    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before


SLOW = ["--set", "sweep.protocol=full", "--set", "sweep.max_steps=4000", "--set", "engine.pack_size=1"]


def interrupted(small_spec, number, moment):
    """Return how a run ended, and what it said, that got three signals once `moment` was imported."""
    command = [sys.executable, "-X", "importtime", "-m", "batchlab", "run", str(small_spec), "--workers", "2", *SLOW]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        for line in process.stderr:
            if line.rstrip().endswith(f" {moment}"):
                break
        for _ in range(3):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        said = [line for line in process.stderr if not line.startswith("import time:")]
        return process.wait(60), said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["typer", "pydantic", "batchlab.run.executors.executor"])
def test_three_quick_signals_during_imports_are_one_line(small_spec, number, moment):
    code, said = interrupted(small_spec, number, moment)

    assert code == 75, said
    assert said == ["batchlab: Interrupted; no study was training.\n"]


def slow(number):
    """Return a case that only the long tests try."""
    return pytest.param(number, marks=pytest.mark.slow)


@pytest.mark.parametrize("number", [signal.SIGINT, *map(slow, (signal.SIGTERM, signal.SIGHUP))])
def test_three_quick_signals_end_a_run_that_can_be_resumed(small_spec, tmp_path, number):
    command = [sys.executable, "-m", "batchlab", "run", str(small_spec), "--workers", "2", *SLOW]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("lab/sweeps/small/*/study.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        for _ in range(3):
            os.killpg(process.pid, number)
        _, said = process.communicate(timeout=60)

    assert process.returncode == 75, said
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("batchlab: Interrupted")
    again = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr


@pytest.mark.slow
def test_a_run_goes_on_under_nohup(small_spec):
    command = [sys.executable, "-m", "batchlab", "run", str(small_spec), "--workers", "1"]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for _ in range(20):
        time.sleep(0.1)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGHUP)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 0, said
