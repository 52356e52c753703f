"""Outputs that are closed, full or cannot spell: no traceback, and a run goes to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from batchlab.cli.outputs import prepared, warn

needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")


def shell(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = f'"{sys.executable}" -W error -m batchlab {line}'
    environment = {**os.environ, **variables}
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, env=environment)


def test_a_run_with_every_output_closed_fills_its_lab(small_spec):
    done = shell(f"run {small_spec} --workers 1 <&- >&- 2>&-")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert shell("verify").returncode == 0


@needs_full
def test_a_run_whose_progress_cannot_be_written_goes_on(small_spec):
    done = shell(f"run {small_spec} --workers 1 2>/dev/full")

    assert done.returncode == 0
    assert "steps to val/risk" in done.stdout


@pytest.mark.parametrize("redirection", ["2>&-", pytest.param("2>/dev/full", marks=needs_full)])
def test_an_error_that_nobody_can_read_keeps_its_exit_code(redirection):
    done = shell(f"curve --lab nowhere {redirection}")

    assert (done.returncode, done.stdout, done.stderr) == (2, "", "")


def test_answers_into_a_closed_output_are_no_error(small_lab):
    done = shell("curve >&-")

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C"},
        pytest.param({"PYTHONIOENCODING": "ascii"}, marks=pytest.mark.slow),
        pytest.param({"LANG": "C", "LC_ALL": ""}, marks=pytest.mark.slow),
    ],
)
def test_names_that_are_no_utf_8_are_printed_escaped(small_lab, variables):
    lab = os.fsdecode(b"l\xffb")
    os.rename("lab", lab)
    done = subprocess.run(
        [sys.executable, "-m", "batchlab", "figure", "steps-to-result", "--lab", lab, "--out", os.fsdecode(b"\xfe")],
        capture_output=True, env={**os.environ, **variables}, timeout=120,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert b"\\udcfe/small-steps-to-result.svg" in done.stdout
    assert len(list(Path(os.fsdecode(b"\xfe")).iterdir())) == 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "\udcff.toml"],
        ["run", "nqm", "--set", "seed=\udcff"],
        ["run", "nqm", "--set", "\udcff=1"],
        ["curve", "--lab", "\udcff"],
        ["curve", "--goal", "\udcff"],
        ["run", "nqm", "--data", "\udcff"],
        ["\udcff"],
        ["run", "nqm", "--\udcff"],
        ["figure", "\udcff"],
    ],
)
def test_bytes_that_are_no_utf_8_in_an_argument_are_one_line(small_lab, refused, arguments):
    assert "\\udcff" in refused(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["curve", "\x1b[31m\n"],
        ["curve", "--sweep", "\x1b[31m\n"],
        ["curve", "--goal", "\x1b[31m\n"],
        ["run", "\x1b[31m\n"],
        ["run", "nqm", "--only", "\x1b[31m\n"],
        ["run", "nqm", "--set", "sweep.\x1b[31m\n=1"],
        ["workloads", "--source", "\x1b[31m\n"],
        ["--\x1b[31m"],
    ],
)
def test_control_characters_of_an_argument_are_escaped(small_lab, refused, arguments):
    line = refused(*arguments)

    assert "\\x1b[31m" in line
    assert line[:-1].isprintable()


@pytest.mark.parametrize("option", ["--goal", "--sweep", "--trials", "--lab"])
def test_long_values_are_cut(small_lab, call, option):
    answer = call("curve", option, "9" * 100_000)

    assert answer.code == 2
    assert len(answer.err) < 5_000


def test_names_from_files_do_not_steer_the_terminal(capsys):
    with prepared():
        print("\x1b[31mred\tgreen\nblue\udcff")
        warn("\x1b[31mred\nblue")

    assert tuple(capsys.readouterr()) == (
        "\\x1b[31mred\tgreen\nblue\\udcff\n",
        "batchlab: \\x1b[31mred\\nblue\n",
    )


@pytest.mark.parametrize("columns", ["0", "1", "7", "1000000", "9" * 30, "-5", "x", "²", "٣"])
def test_any_width_of_the_terminal_is_taken(call, small_lab, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)

    for arguments in (["curve"], ["status"], ["run", "--help"]):
        answer = call(*arguments)
        assert (answer.code, answer.err) == (0, "")


@pytest.mark.parametrize("value", ["x", "complete_bash"])
def test_a_completion_that_no_shell_asked_for_is_one_line(batchlab_process, value):
    answer = batchlab_process(env={**os.environ, "_BATCHLAB_COMPLETE": value})

    assert answer.code != 0
    assert "Traceback" not in answer.err
    assert answer.err.count("\n") <= 1
