"""batchlab check FILE: verdict, JSON and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

LOOP = """
import torch
from torch import nn
import batchlab

torch.manual_seed(0)
model = nn.Linear(3, 1)
batch = (torch.randn(8, 3), torch.randn(8, 1))

def step(model, microbatches):
    for inputs, targets in microbatches:
        loss = nn.functional.mse_loss(model(inputs), targets)
        (loss * WEIGHT).backward()

check = batchlab.equivalence(step, batch, model)
"""
RIGHT = LOOP.replace("WEIGHT", "len(inputs) / sum(len(each) for each, _ in microbatches)")
WRONG = LOOP.replace("WEIGHT", "1 / len(microbatches)")
SWEEP = """
import torch
from torch import nn
import batchlab

examples = (torch.randn(20, 2), torch.randint(0, 2, (20,)))
sweep = batchlab.TorchSweep(
    name="own", model=lambda: nn.Linear(2, 2), train=examples, val=examples, loss=nn.functional.cross_entropy,
    batch_sizes=[8], goal="val/loss < 0.5", trials=2, search_space={"learning_rate": (1e-2, 1e-1, "log")})
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return a function that writes a file of Python."""
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "loop.py").write_text(text)
        return "loop.py"

    return write


def test_an_equivalent_loop_ends_with_0(call, file):
    answer = call("check", file(RIGHT))

    assert answer.code == 0
    assert answer.out.startswith("Equivalent: 4 ways to cut a batch of 8 examples give the gradient of the whole")
    assert "2 x 3 + 2" in answer.out
    assert "loop.py is executed: a file of Python is code" in answer.err


def test_another_one_ends_with_1_and_its_cause(call, file):
    answer = call("check", file(WRONG))

    assert answer.code == 1
    assert answer.out.startswith("NOT equivalent: 1 of 4 ways")
    assert "Cause: mean of means. At 2 x 3 + 2: each microbatch counts the same; in the whole batch" in answer.out
    assert "To mend it: add up the losses" in answer.out


def test_json_holds_the_same(call, file):
    answer = call("check", file(WRONG), "--json")

    told = json.loads(answer.out)
    assert answer.code == 1
    assert told["equivalent"] is False
    assert [row["causes"] for row in told["rows"]] == [[], [], ["mean of means"], []]
    assert told["rows"][0]["norm_ratio"] == pytest.approx(1, abs=1e-6)
    assert told["precision"] == "float64"


def test_a_sweep_is_checked_too(call, file):
    answer = call("check", file(SWEEP))

    assert answer.code == 0
    assert answer.out.startswith("Equivalent: 4 ways")


def test_accepted_causes_end_with_0(call, file):
    accepted = call("check", file(WRONG), "--allow", "mean of means", "--allow", "dropout")
    unknown = call("check", file(WRONG), "--allow", "drop-out")

    assert accepted.code == 0
    assert "Cause: mean of means (accepted)." in accepted.out
    assert unknown.code == 2
    assert 'Unknown cause "drop-out". Did you mean "dropout"?' in unknown.err


def test_a_check_goes_before_a_sweep_in_the_same_file(call, file):
    assert call("check", file(SWEEP + WRONG)).code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must make one check, `check = batchlab.equivalence(step, batch, model)`, or one batchlab.TorchSweep"),
        (RIGHT + "\nother = batchlab.equivalence(step, batch, model)", "it has 2 checks and 0 sweeps"),
        ("1 / 0", "loop.py cannot be executed: ZeroDivisionError: division by zero (line 1 of"),
        (LOOP, "NameError: name 'WEIGHT' is not defined"),
        (RIGHT.replace("batch, model)\n", "batch[:1], nn.Identity())\n"), "has no parameters to train"),
    ],
)
def test_a_file_that_cannot_be_checked_ends_with_2(call, file, text, message):
    answer = call("check", file(text))

    assert answer.code == 2
    assert answer.out == ""
    assert message in answer.err
    assert len(answer.err.splitlines()) == 2  # that it is executed, and what is wrong


def test_a_file_that_is_not_there_ends_with_2(call, tmp_path):
    answer = call("check", tmp_path / "none.py")

    assert answer.code == 2
    assert "There is no file " in answer.err
    assert "is executed" not in answer.err


@pytest.mark.parametrize(("given", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_threads_sleep_while_they_wait_unless_told_otherwise(file, given, expected):
    """On a busy machine threads that spin took 96 s for a check of 3 s. PyTorch reads the setting as it is loaded."""
    told = "import os\nprint(os.environ['OMP_WAIT_POLICY'])\n"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    given_too = {} if given is None else {"OMP_WAIT_POLICY": given}
    command = [sys.executable, "-m", "batchlab", "check", file(told + RIGHT)]
    ended = subprocess.run(command, env=environment | given_too, capture_output=True, text=True, check=True)

    assert ended.stdout.splitlines()[0] == expected
