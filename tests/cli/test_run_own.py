"""batchlab run FILE.py: a network of one's own from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FILE = """
import torch
from torch import nn
import batchlab

points = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
labels = (points.prod(1) > 0).long()
sweep = batchlab.TorchSweep(
    name="own", model=lambda: nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)),
    train=(points[:150], labels[:150]), val=(points[150:], labels[150:]), loss=nn.functional.cross_entropy,
    optimizer="adam", batch_sizes=[8], goal="val/loss < 0.5", trials=2, max_steps=200, engine={"pack_size": 2},
    search_space={"learning_rate": (1e-2, 1e-1, "log")})
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(FILE)
    return tmp_path / "own.py"


def test_a_file_is_run_and_says_that_it_is_executed(call, own):
    answer = call("run", "own.py", "--workers", 1, "--set", "sweep.trials=3", "--json")

    assert answer.code == 0
    assert "own.py is executed, here and by every worker: a file of Python is code" in answer.err
    told = json.loads(answer.out)
    assert told["workload"] == "own/Sequential/adam"
    assert told["rows"][0]["complete"] == 3


def test_a_dry_run_of_a_file_stores_nothing(call, own):
    answer = call("run", "own.py", "--dry-run", "--workers", 1)

    assert answer.code == 0
    assert "Nothing was stored." in answer.out
    assert not (own.parent / "lab").exists()


def test_a_wrong_setting_is_one_line(call, own):
    answer = call("run", "own.py", "--set", "sweep.trials=none")

    assert answer.code == 2
    assert "`sweep.trials` = 'none': give a whole number" in answer.err


@pytest.mark.slow
def test_a_changed_file_is_refused_with_the_way_out(call, own):
    call("run", "own.py", "--workers", 1)
    own.write_text(FILE.replace("trials=2", "trials=3"))

    before = Path("lab/sweeps/own/sweep.json").read_bytes()
    refused = call("run", "own.py", "--workers", 1)
    assert Path("lab/sweeps/own/sweep.json").read_bytes() == before, "what is refused changes nothing"
    accepted = call("run", "own.py", "--workers", 1, "--changed-code")

    assert refused.code == 2
    assert "--changed-code" in refused.err
    assert accepted.code == 0


def test_a_file_that_is_not_there_is_one_line(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert "There is no file missing.py" in refused("run", "missing.py")
