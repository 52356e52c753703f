"""batchlab status: how far a lab is, and which of its files are damaged."""

from __future__ import annotations

import json
import shutil

KEYS = ["sweep", "workload", "studies", "finished", "complete", "infeasible", "incomplete", "measurements"]
KEYS += ["rejected", "throughputs", "growing", "problems"]


def test_every_sweep_is_listed_with_its_counts(call, mixed_lab):
    answer = call("status")
    header, digits, small = (line.split() for line in answer.out.splitlines())

    assert (answer.code, answer.err) == (0, "")
    assert header == ["studies", "complete", "infeasible", "incomplete", "measurements", "sweep", "workload"]
    assert [digits[0], *digits[-2:]] == ["2/2", "digits-small", "digits/fc_8/nesterov_momentum"]
    assert [*small[:4], *small[-2:]] == ["2/2", "6", "0", "0", "small", "nqm/quadratic/sgd"]


def test_a_narrow_terminal_holds_the_table(call, mixed_lab, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = call("status").out.splitlines()

    assert max(len(line) for line in lines) <= 80
    assert lines[4:] == [
        "sweep         workload",
        "digits-small  digits/fc_8/nesterov_momentum",
        "small         nqm/quadratic/sgd",
    ]


def test_json_holds_the_same_and_what_cannot_be_read(call, small_lab):
    (row,) = json.loads(call("status", "--json").out)

    assert list(row) == KEYS
    assert row | {"measurements": 0} == {
        "sweep": "small",
        "workload": "nqm/quadratic/sgd",
        "studies": 2,
        "finished": 2,
        "complete": 6,
        "infeasible": 0,
        "incomplete": 0,
        "measurements": 0,
        "rejected": 0,
        "throughputs": 0,
        "growing": 0,
        "problems": [],
    }


def test_a_study_that_has_not_begun_is_not_finished(call, small_lab):
    shutil.rmtree(small_lab / "sweeps" / "small" / "64")
    answer = call("status")

    assert answer.code == 0
    assert answer.out.splitlines()[1].split()[:2] == ["1/2", "3"]


def test_a_sweep_that_is_growing_says_so(call, mixed_lab, digits_spec):
    """Of six trials that were asked for, two more are trained: the study of three is what the lab answers with."""
    more = ["--set", "sweep.trials=6", "--set", "sweep.race_factor=3", "--only", "3..4"]
    assert call("run", digits_spec, "--lab", "lab", "--workers", 1, *more).code == 0

    table = call("status").out.splitlines()[1]
    (row,) = (row for row in json.loads(call("status", "--json").out) if row["sweep"] == "digits-small")

    assert table.split()[:3] == ["2/2,", "growing", "6"]
    assert (row["finished"], row["growing"], row["complete"]) == (2, 2, 6)


def test_corrupt_measurements_are_named_and_the_rest_is_shown(call, small_lab):
    path = small_lab / "sweeps" / "small" / "4" / "measurements.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    answer, as_json = call("status"), call("status", "--json")

    assert answer.code == as_json.code == 1
    assert answer.out.splitlines()[1].split()[-1] == "nqm/quadratic/sgd"
    assert answer.err.startswith("batchlab: lab/sweeps/small/4/measurements.parquet is damaged: it has ")
    assert answer.err.count("\n") == 1
    assert [f"batchlab: {problem}\n" for problem in json.loads(as_json.out)[0]["problems"]] == [answer.err]


def test_measurements_of_another_study_are_named(call, small_lab):
    folders = small_lab / "sweeps" / "small"
    (folders / "4" / "measurements.parquet").write_bytes((folders / "64" / "measurements.parquet").read_bytes())
    answer = call("status")

    assert answer.code == 1
    assert "lab/sweeps/small/4/measurements.parquet is damaged: it has " in answer.err


def test_a_corrupt_record_is_named_and_counts_as_unfinished(call, small_lab):
    for text in ("", "[]", "{}", '{"state": "finished"}'):
        (small_lab / "sweeps" / "small" / "4" / "study.json").write_text(text)
        answer = call("status")

        assert answer.code == 1
        assert answer.out.splitlines()[1].split()[0] == "1/2"
        assert answer.err.startswith("batchlab: lab/sweeps/small/4/study.json ")
        assert answer.err.count("\n") == 1


def test_no_lab_is_one_line_with_the_way_out(refused):
    assert "There is no lab in lab. Make one with `batchlab run SPEC --lab lab`." in refused("status")
