"""Random specs, settings and arguments: an answer, or one line and exit code 2. Never a traceback, nothing written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.torture import specs

CASES = 60


def assert_answered(answer, seed):
    assert answer.code in (0, 2), (seed, answer)
    assert "should not happen" not in answer.err, (seed, answer.err)
    assert "Traceback" not in answer.err, (seed, answer.err)
    if answer.code == 2:
        assert answer.err.count("\n") == 1, (seed, answer.err)
        assert answer.err.startswith("batchlab: ")
        assert len(answer.err) < 4_100
        assert answer.err[:-1].isprintable()


@pytest.fixture
def loads_only(monkeypatch):
    """Have dry runs end once the spec is read and checked, before data is read and a pilot is trained."""
    monkeypatch.setattr("batchlab.cli.dry_run.print_dry_run", lambda *arguments: None)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_a_random_spec_is_run_or_refused_in_one_line(call, loads_only, seed):
    dice = random.Random(seed)
    for case in range(CASES):
        Path("fuzzed.toml").write_text(specs.spec(dice), encoding="utf-8")
        assert_answered(call("run", "fuzzed.toml", "--dry-run"), (seed, case))
    assert [path.name for path in Path.cwd().iterdir()] == ["fuzzed.toml"]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_random_setting_is_taken_or_refused_in_one_line(call, loads_only, seed):
    dice = random.Random(seed)
    for case in range(CASES):
        study = dice.choice(["nqm", "digits"])
        assert_answered(call("run", study, "--dry-run", "--set", specs.setting(dice)), (seed, case))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_arguments_are_answered_or_refused_in_one_line(call, loads_only, seed):
    dice = random.Random(seed)
    for case in range(CASES // 2):
        assert_answered(call(*specs.arguments(dice)), (seed, case))
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_random_spec_that_is_loaded_can_be_tried(call, shared_data, seed):
    """With everything that is checked before a lab is made, and a pilot of what is left."""
    dice = random.Random(seed)
    for case in range(10):
        Path("fuzzed.toml").write_text(specs.spec(dice), encoding="utf-8")
        answer = call("run", "fuzzed.toml", "--dry-run", "--data", shared_data)
        assert answer.code in (0, 2), (seed, case, answer)
        assert "should not happen" not in answer.err, (seed, case, answer.err)
