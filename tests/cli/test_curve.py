"""batchlab curve: goals, numbers of trials, names, and labs with damaged files."""

from __future__ import annotations

import json
import shutil

import pytest


def test_the_table_holds_steps_intervals_regimes_and_the_critical_batch_size(call, grid_lab):
    """Steps are the fewest of any learning rate, worked out exactly apart from this code."""
    answer = call("curve")
    lines = answer.out.splitlines()

    assert (answer.code, answer.err) == (0, "")
    assert lines[0] == "nqm/quadratic/sgd: steps to val/risk <= 0.05"
    assert [line.split()[:2] for line in lines[2:9]] == [
        ["1", "4,337"],
        ["4", "1,133"],
        ["16", "334"],
        ["64", "100"],
        ["256", "56"],
        ["1,024", "44"],
        ["4,096", "42"],
    ]
    assert "The critical batch size is 110" in lines[9]


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_terminal_is_never_overrun_and_no_number_is_broken(call, grid_lab, monkeypatch, width):
    whole = call("curve").out
    monkeypatch.setenv("COLUMNS", str(width))
    narrow = call("curve").out

    assert max(len(line) for line in narrow.splitlines()) <= width
    assert max(len(line) for line in whole.splitlines()) > 100
    assert set(whole.split()) == set(narrow.split())


def test_an_unknown_width_does_no_harm(call, grid_lab, monkeypatch):
    whole = call("curve")
    monkeypatch.setenv("COLUMNS", "wide")

    assert whole == call("curve")


def test_published_steps_are_asked_for_and_missed_aloud(call, small_lab):
    answer = call("curve", "--published")

    assert answer.code == 0
    assert "there are no published steps of nqm/quadratic/sgd to val/risk <= 0.3" in answer.err
    assert answer.out == call("curve").out
    assert json.loads(call("curve", "--published", "--json").out) == {
        **json.loads(call("curve", "--json").out),
        "published": None,
    }


def test_more_trials_than_there_are_is_told(call, small_lab):
    answer = call("curve", "--trials", 99)

    assert answer.code == 0
    assert "batchlab: fewer than 99 complete trials at batch size 4, 64; those that there are were used" in answer.err


def test_other_goals_of_the_sweep_are_named_beside_the_hardest(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    goals = 'sweep.goal=["val/risk <= 0.05", "val/risk <= 0.2"]'
    few = ["--set", "sweep.trials=4", "--set", "sweep.batch_sizes=[1, 64]"]
    told = "The sweep asks for more goals: val/risk <= 0.2. `batchlab curve --goal` answers each."

    assert told in call("run", "nqm", "--workers", "1", "--set", goals, *few).out
    assert told in call("curve").out
    assert "more goals" not in call("curve", "--goal", "val/risk <= 0.1").out


def test_the_workload_may_be_left_out_where_the_lab_holds_one(call, small_lab):
    assert call("curve", "nqm/quadratic/sgd") == call("curve") == call("curve", "--sweep", "small")


@pytest.mark.parametrize("command", [["curve"], ["figure", "steps-to-result"], ["report"]], ids=" ".join)
def test_the_name_of_the_sweep_does_in_place_of_the_workload(call, mixed_lab, command):
    assert call(*command, "small") == call(*command, "--sweep", "small")


def test_two_workloads_must_be_told_apart(call, refused, mixed_lab):
    line = refused("curve")

    assert "digits/fc_8/nesterov_momentum (sweep digits-small)" in line
    assert "nqm/quadratic/sgd (sweep small)" in line
    assert "Name the workload or the sweep." in line
    answer = call("curve", "digits/fc_8/nesterov_momentum", "--json")
    assert json.loads(answer.out)["workload"] == "digits/fc_8/nesterov_momentum"


def test_an_unknown_workload_is_refused_with_the_nearest(refused, small_lab):
    line = refused("curve", "nqm/quadratic/sdg")

    assert 'Unknown workload "nqm/quadratic/sdg". Did you mean "nqm/quadratic/sgd"?' in line


def test_an_unknown_sweep_is_refused_with_the_nearest(refused, small_lab):
    assert 'Unknown sweep "smal". Did you mean "small"?' in refused("curve", "--sweep", "smal")


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("val/risk", ['--goal: "val/risk" is no goal', "val/classification_error < 0.03"]),
        ("val/risk <= low", ["--goal", '"low"']),
        ("val/risk <= nan", ["--goal", "`threshold` = nan", "finite"]),
        ("val/risc <= 0.1", ['goal: Unknown metric "val/risc". Did you mean "val/risk"?']),
        ("", ['--goal: "" is no goal']),
        ("two\nlines", ["--goal"]),
    ],
)
@pytest.mark.parametrize("command", [["curve"], ["figure", "steps-to-result"]], ids=lambda command: command[0])
def test_a_bad_goal_is_refused(refused, small_lab, command, goal, words):
    line = refused(*command, "--goal", goal)

    for word in words:
        assert word in line


def test_no_trials_are_refused(refused, small_lab):
    assert "--trials" in refused("curve", "--trials", 0)


def test_an_unfinished_study_is_told_and_the_others_are_shown(call, small_lab):
    shutil.rmtree(small_lab / "sweeps" / "small" / "64")
    answer = call("curve", "--json")

    assert answer.code == 0
    assert [row["batch_size"] for row in json.loads(answer.out)["rows"]] == [4]
    assert answer.err == "batchlab: not finished yet: batch size 64 of sweep small; `batchlab run` goes on\n"


DAMAGES = {
    "truncated": lambda content: content[:-20],
    "garbage": lambda content: b"no table at all",
    "empty": lambda content: b"",
    "a few bytes": lambda content: content[:300] + bytes(byte ^ 255 for byte in content[300:304]) + content[304:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_corrupt_measurements_are_named_and_the_other_rows_are_shown(call, small_lab, damage):
    path = small_lab / "sweeps" / "small" / "4" / "measurements.parquet"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    answer = call("curve", "--json")

    assert answer.code == 1
    assert [row["batch_size"] for row in json.loads(answer.out)["rows"]] == [64]
    assert answer.err.startswith("batchlab: lab/sweeps/small/4/measurements.parquet is damaged: ")
    assert answer.err.endswith("See what is sound with `batchlab verify`.\n")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("name", ["study.json", "trials.json"])
@pytest.mark.parametrize("text", ["", "{}", "3", '[{"trial_id": 1}]'])
def test_a_corrupt_record_is_named_and_the_other_rows_are_shown(call, small_lab, name, text):
    (small_lab / "sweeps" / "small" / "4" / name).write_text(text)
    answer = call("curve", "--json")

    assert answer.code == 1
    assert [row["batch_size"] for row in json.loads(answer.out)["rows"]] == [64]
    assert answer.err.startswith(f"batchlab: lab/sweeps/small/4/{name}")
    assert answer.err.count("\n") == 1


def test_a_corrupt_sweep_file_is_named(refused, small_lab):
    (small_lab / "sweeps" / "small" / "sweep.json").write_text("{}")

    for command in ("curve", "report"):
        assert "lab/sweeps/small/sweep.json" in refused(command, code=1)


def test_the_status_of_a_sweep_whose_file_is_corrupt_is_that_it_cannot_be_read(call, small_lab):
    (small_lab / "sweeps" / "small" / "sweep.json").write_text("{}")
    answer = call("status")

    assert answer.code == 1
    assert answer.out.splitlines()[1].endswith("small  cannot be read")
    assert answer.err.startswith("batchlab: lab/sweeps/small/sweep.json ")


def test_a_lab_with_nothing_readable_names_every_file(call, small_lab):
    for path in small_lab.glob("sweeps/small/*/study.json"):
        path.write_text("")
    answer = call("curve")

    assert (answer.code, answer.out) == (1, "")
    assert sorted(line.split()[1] for line in answer.err.splitlines()) == [
        "lab/sweeps/small/4/study.json",
        "lab/sweeps/small/64/study.json",
    ]
