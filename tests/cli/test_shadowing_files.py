"""Files in the working folder that are called as Python's own modules: they are nobody's business but the user's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LAUNCHER = 'from batchlab.cli import main\n\nif __name__ == "__main__":\n    main()\n'
PROGRAM = """
import helper, os, sys
assert "PYTHONSAFEPATH" not in os.environ
for step in range(5, 1000, 5):
    print('{"step": %d, "val/loss": %r}' % (step, helper.loss(step, float(sys.argv[1]))), flush=True)
"""
HELPER = "def loss(step, learning_rate):\n    return (1 - learning_rate) ** step\n"
SPEC = """
name = "own"
[workload]
command = "{python} train.py {{learning_rate}} {{batch_size}} {{seed}}"
[sweep]
batch_sizes = [8]
trials = 2
max_steps = 100
goal = "val/loss < 0.5"
[search_space]
learning_rate = {{min = 0.1, max = 0.5}}
"""


@pytest.fixture
def installed(tmp_path_factory, tmp_path):
    """Run the command as it is installed: its file lies elsewhere, and Python looks for modules beside that."""
    launcher = tmp_path_factory.mktemp("bin") / "batchlab"
    launcher.write_text(LAUNCHER)

    def run(*arguments):
        command = [sys.executable, "-W", "error", launcher, *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=120)

    return run


def test_workers_do_not_import_them(installed, small_spec, tmp_path):
    for name in sys.stdlib_module_names:
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('this {name} is not of Python')\n")

    done = installed("run", small_spec, "--workers", 2)

    assert (done.returncode, "ImportError" in done.stderr) == (0, False), done.stderr
    assert "batch size" in done.stdout


def test_a_program_of_ones_own_finds_the_files_beside_it(installed, tmp_path):
    """Its Python is started as ever: what keeps the folder from the worker is not handed on."""
    (tmp_path / "re.py").write_text("raise ImportError('this re is not of Python')\n")
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "own.toml").write_text(SPEC.format(python=sys.executable))

    done = installed("run", "own.toml", "--workers", 1)

    assert done.returncode == 0, done.stderr
