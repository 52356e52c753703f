"""The group of commands: help, misuse, closed pipes, and how errors reach the user."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import version

import pytest

import batchlab

COMMANDS = ["run", "status", "workloads", "curve", "figure", "report", "confirm", "scaling", "plan"]
COMMANDS += ["merge", "verify", "query", "check", "import", "export"]


@pytest.mark.parametrize("command", [[], *([command] for command in COMMANDS)])
def test_help_exits_0(call, command):
    answer = call(*command, "--help")

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(" ".join(["Usage: batchlab", *command]))


def test_help_lists_every_command(call):
    listed = [line.split()[0] for line in call("--help").out.partition("Commands:")[2].splitlines() if line.strip()]

    assert listed == COMMANDS


def test_no_command_at_all_shows_the_help(call):
    assert call() == call("--help")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["crve"], ["'crve'", "'curve'", "`batchlab --help`"]),
        (["run"], ["spec", "`batchlab run --help`"]),
        (["run", "nqm", "--wrkers", "2"], ["--wrkers", "--workers", "`batchlab run --help`"]),
        (["run", "nqm", "--workers", "0"], ["--workers", "1"]),
        (["run", "nqm", "--workers", "two"], ["--workers", "integer"]),
        (["curve", "--trials", "0"], ["--trials", "1"]),
        (["curve", "--trials", "-3"], ["--trials", "1"]),
        (["curve", "--goal"], ["--goal"]),
        (["curve", "a/b/c", "d/e/f"], ["d/e/f"]),
        (["figure"], ["name", "`batchlab figure --help`"]),
        (["figure", "pie"], ['"pie"', "steps-to-result", "metaparameters"]),
        (["figure", "step-to-result"], ['Did you mean "steps-to-result"?']),
        (["--debug"], ["command"]),
        (
            ["run", "nqm", "--trials", "8"],
            ["--trials. Set it in the spec: --set sweep.trials=8 (see `batchlab run --help`)"],
        ),
        (["run", "--max-steps=50", "nqm"], ["--max-steps", "--set sweep.max_steps=50"]),
        (["run", "nqm", "--pack-size", "4"], ["--set engine.pack_size=4"]),
        (["run", "nqm", "--seed"], ["--set seed=..."]),
    ],
)
def test_misuse_of_a_command_is_one_line(refused, arguments, words):
    line = refused(*arguments)

    for word in words:
        assert word in line


def test_a_process_ends_with_the_exit_code_and_one_line(batchlab_process):
    answer = batchlab_process("curve", "--trials", 0)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    assert "--trials" in answer.err


def test_debug_shows_the_traceback(batchlab_process):
    answer = batchlab_process("--debug", "curve", "--lab", "nowhere")

    assert answer.code == 1
    assert answer.err.startswith("Traceback")
    assert "LabError: There is no lab in nowhere" in answer.err


def modules_after(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter holds after a statement."""
    script = f"import sys\ntry:\n    {statement}\nexcept SystemExit:\n    pass\nprint('MODULES', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.partition("MODULES")[2].split()}


def test_help_imports_nothing_heavy():
    modules = modules_after("import batchlab.cli; sys.argv = ['batchlab', '--help']; batchlab.cli.main()")

    assert "typer" in modules
    assert modules.isdisjoint({"torch", "pydantic", "numpy", "scipy", "pyarrow", "duckdb", "matplotlib", "sklearn"})


def test_the_package_imports_no_torch_not_even_for_its_public_names():
    """But for those that look at gradients."""
    names = [name for name, home in batchlab._HOMES.items() if not home.startswith("batchlab.doctor.")]
    modules = modules_after(f"import batchlab; [getattr(batchlab, name) for name in {names}]")

    assert "pyarrow" in modules
    assert "torch" not in modules


def test_reading_a_lab_of_networks_imports_no_torch(mixed_lab):
    for command in ("'status'", "'report'", "'curve', '--sweep', 'digits-small'"):
        modules = modules_after(f"import batchlab.cli; sys.argv = ['batchlab', {command}]; batchlab.cli.main()")

        assert "numpy" in modules
        assert "torch" not in modules


@pytest.mark.parametrize("arguments", [["curve", "--json"], ["curve"], ["status"], ["--help"]])
def test_a_closed_pipe_is_no_error(small_lab, arguments):
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "batchlab", *arguments]
    done = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True)
    os.close(write_end)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full, the disk that is always full")
def test_an_output_that_cannot_be_written_is_one_line(small_lab):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "batchlab", "curve", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)

    assert done.returncode == 2
    assert done.stderr == "batchlab: [Errno 28] No space left on device\n"


def test_ctrl_c_outside_of_training_says_so(call, monkeypatch, small_spec):
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("batchlab.spec.load.load_sweep", interrupt)
    answer = call("run", small_spec)

    assert (answer.code, answer.err) == (75, "batchlab: Interrupted; no study was training.\n")


def test_sigterm_while_a_dataset_is_made_ends_as_ctrl_c_does(call, monkeypatch, small_spec):
    def make(*arguments: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr("batchlab.run.run_sweep.make_trainer", make)
    before = signal.signal(signal.SIGTERM, lambda *_: pytest.fail("the process would have been killed"))
    ours = signal.getsignal(signal.SIGTERM)
    try:
        answer = call("run", small_spec)
        assert signal.getsignal(signal.SIGTERM) is ours
    finally:
        signal.signal(signal.SIGTERM, before)

    assert (answer.code, answer.err) == (75, "batchlab: Interrupted; no study was training.\n")


def test_only_names_of_the_spec_are_taken_for_such(refused):
    assert "--set" not in refused("run", "nqm", "--colour", "red")
    assert "--set" not in refused("curve", "--seed", "3")


def test_the_version_is_printed(call):
    answer = call("--version")

    assert (answer.code, answer.out, answer.err) == (0, f"batchlab {version('batchlab')}\n", "")


def complete(line: str) -> list[str]:
    """Return what bash would offer at the end of a line."""
    variables = {"_BATCHLAB_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    command = [sys.executable, "-m", "batchlab"]
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"), [("batchlab cur", ["curve"]), ("batchlab run --dr", ["--dry-run"]), ("batchlab x", [])]
)
def test_a_shell_can_complete_a_line(line, offered):
    assert complete(line) == offered


def test_the_shells_script_can_be_shown(batchlab_process):
    answer = batchlab_process("--show-completion", "bash")

    assert answer.code == 0
    assert "_BATCHLAB_COMPLETE" in answer.out
