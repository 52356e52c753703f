"""batchlab run: dry runs, results, and every spec that is refused."""

from __future__ import annotations

import json
import re

import pytest

from batchlab.processes import usable_cores

NQM_SPEC = """
name = "bad"

[workload]
dataset = {name = "nqm", dimension = 10}
model = "quadratic"
optimizer = "momentum"

[sweep]
batch_sizes = [4, 8]
trials = 2
max_steps = 10
goal = "val/risk <= 0.5"

[search_space]
learning_rate = {min = 0.01, max = 1.0, scale = "log"}
momentum = {min = 0.0, max = 0.9}
"""
DIGITS_SPEC = NQM_SPEC.replace('{name = "nqm", dimension = 10}', '"digits"').replace('"quadratic"', '"fc_8"')
DIGITS_SPEC = DIGITS_SPEC.replace("val/risk", "val/classification_error")

REFUSED_VALUES = {
    # a change of NQM_SPEC: words that the message must hold
    "unknown key at the top": ('name = "bad"', 'name = "bad"\nsede = 1', ['"sede"', 'Did you mean "seed"?']),
    "unknown table": ("[sweep]", "[swep]", ['"swep"', 'Did you mean "sweep"?']),
    "unknown key in [sweep]": ("trials", "trails", ['"sweep.trails"', 'Did you mean "sweep.trials"?']),
    "unknown key in [workload]": ("model =", "modle =", ['"workload.modle"', '"workload.model"']),
    "unknown key in a range": (
        "scale",
        "scael",
        ["learning_rate.scael", 'Did you mean "search_space.learning_rate.sc'],
    ),
    "unknown key beside values": (
        "min = 0.0, max = 0.9",
        "values = [0.5], valus = 3",
        ["momentum.valus", "momentum.va"],
    ),
    "unknown key in evaluate": (
        "trials",
        "evaluate = {grwth = 2}\ntrials",
        ["sweep.evaluate.grwth", "evaluate.growth"],
    ),
    "unknown key in [engine]": ("[sweep]", "[engine]\ndevce = 1\n[sweep]", ['"engine.devce"', '"engine.device"']),
    "unknown metaparameter": ("momentum = {", "momentm = {", ['"momentm"', 'Did you mean "momentum"?']),
    "metaparameter left out": ("momentum = {min = 0.0, max = 0.9}", "", ["`momentum`", "[search_space]"]),
    "batch size 0": ("[4, 8]", "[0, 8]", ["`sweep.batch_sizes[0]` = 0", "give at least 1"]),
    "negative batch size": ("[4, 8]", "[8, -4]", ["`sweep.batch_sizes[1]` = -4", "give at least 1"]),
    "batch size that is not whole": ("[4, 8]", "[1.5]", ["`sweep.batch_sizes[0]` = 1.5", "give a whole number"]),
    "batch size twice": ("[4, 8]", "[4, 4]", ["`sweep.batch_sizes`", "batch size 4", "twice"]),
    "no batch size": ("[4, 8]", "[]", ["`sweep.batch_sizes`", "at least 1"]),
    "no trials": ("trials = 2", "trials = 0", ["`sweep.trials` = 0"]),
    "no end": ("max_steps = 10", "", ["max_steps", "max_examples"]),
    "min > max": ("max = 1.0", "max = 0.001", ["`search_space.learning_rate`", "min = 0.01", "max = 0.001"]),
    "log scale from 0": ("min = 0.01", "min = 0.0", ["`search_space.learning_rate`", "min = 0", "log scale"]),
    "log scale below 0": ("min = 0.01", "min = -1.0", ["`search_space.learning_rate`", "min = -1", "log scale"]),
    "momentum range to 1": ("max = 0.9", "max = 1.0", ["momentum = 1.0", "below 1"]),
    "momentum range to 1, reverse_log": ("max = 0.9", 'max = 1.0, scale = "reverse_log"', ["momentum", "max below 1"]),
    "momentum values to 1.5": ("min = 0.0, max = 0.9", "values = [0.5, 1.5]", ["momentum = 1.5", "below 1"]),
    "momentum fixed and searched": ('"momentum"', '{name = "momentum", momentum = 0.5}', ["`momentum`", "both"]),
    "range to infinity": ("max = 1.0", "max = inf", ["`search_space.learning_rate.max` = inf", "finite"]),
    "goal without comparison": (
        "val/risk <= 0.5",
        "val/risk 0.5",
        ['"val/risk 0.5"', "val/classification_error < 0.03"],
    ),
    "goal without number": ("val/risk <= 0.5", "val/risk <= low", ['"low"', "number"]),
    "goal of NaN": ("val/risk <= 0.5", "val/risk <= nan", ["`sweep.goal[0].threshold` = nan", "finite"]),
    "metric that is not measured": ("val/risk", "val/risc", ['"val/risc"', 'Did you mean "val/risk"?']),
    "split that is not measured": ("val/risk", "test/risk", ['Unknown metric "test/risk"', "Known: val/risk."]),
    "goals that cannot be ordered": (
        '"val/risk <= 0.5"',
        '["val/risk < 1", "val/risk > 2"]',
        ["val/risk > 2", "ordered"],
    ),
    "unknown dataset": ('"nqm"', '"digist"', ['dataset "digist"', 'Did you mean "digits"?']),
    "unknown dataset option": ("dimension", "dimensions", ['"dimensions"', "Known: dimension"]),
    "unknown model": ('"quadratic"', '"quadratc"', ['model "quadratc"', 'Did you mean "quadratic"?']),
    "unknown optimizer": ('"momentum"', '"momentun"', ['optimizer "momentun"', 'Did you mean "momentum"?']),
    "unknown schedule": ("[sweep]", 'schedule = "linear"\n[sweep]', ['schedule "linear"', "linear_decay"]),
    "unknown sampler": ("trials", 'sampler = "haltn"\ntrials', ["`sweep.sampler` = 'haltn'", "'halton'", "'grid'"]),
    "unknown protocol": ("trials", 'protocol = "rce"\ntrials', ["`sweep.protocol` = 'rce'", "'race'", "'full'"]),
    "grid without points": ("trials", 'sampler = "grid"\ntrials', ["`search_space.learning_rate`", "`points`"]),
    "name that is a path": ('"bad"', '"../bad"', ["`name` = '../bad'"]),
    "name left out": ('name = "bad"', "", ["`name` is missing"]),
    "table left out": ("[sweep]", "", ["workload.batch_sizes"]),
    "not TOML": ("trials = 2", "trials = = 2", ["not valid TOML", "line 11"]),
    "table twice": ("[search_space]", "[sweep]", ["not valid TOML", "twice"]),
}


@pytest.mark.parametrize("case", REFUSED_VALUES)
def test_a_bad_spec_is_refused_with_its_place(refused, tmp_path, case):
    old, new, words = REFUSED_VALUES[case]
    assert old in NQM_SPEC
    path = tmp_path / "bad.toml"
    path.write_text(NQM_SPEC.replace(old, new, 1))

    line = refused("run", path)

    assert line.startswith(f"batchlab: {path}: ")
    for word in words:
        assert word in line


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[4, 8]", "[4, 1298]", ["batch size 1298", "training set of digits (1297 examples)"]),
        ('"digits"', '{name = "digits", train_examples = 7}', ["batch size 8", "(7 examples)"]),
        (
            '"digits"',
            '{name = "digits", train_examples = 1298}',
            ["train_examples = 1298 of dataset digits", "1 to 1,297"],
        ),
        ('"fc_8"', '"fc8"', ['model "fc8"', "fc_128"]),
        ('"fc_8"', '{name = "fc_8", dropout = 0.5}', ['"dropout"', "fc_8"]),
        ('"momentum"', '"adan"', ['optimizer "adan"', "nesterov_momentum"]),
        ("val/classification_error", "val/clasification_error", ['Did you mean "val/classification_error"?']),
    ],
)
def test_a_bad_spec_of_a_network_is_refused_before_its_data_is_read(refused, tmp_path, old, new, words):
    path = tmp_path / "bad.toml"
    path.write_text(DIGITS_SPEC.replace(old, new, 1))

    line = refused("run", path)

    for word in words:
        assert word in line


def test_a_fixed_momentum_of_1_is_refused(refused, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(
        NQM_SPEC.replace('"momentum"', '{name = "momentum", momentum = 1.0}').replace(
            "momentum = {min = 0.0, max = 0.9}", ""
        )
    )

    assert "momentum = 1.0 must be at least 0 and below 1" in refused("run", path)


def test_a_grid_with_fewer_points_than_trials_is_refused(refused, small_spec):
    line = refused("run", small_spec, "--set", "sweep.trials=4")

    assert "3 points" in line
    assert "sweep.trials = 4" in line


@pytest.mark.parametrize("device", ["abacus", "cuda:99"])
def test_a_device_that_cannot_be_used_is_refused(refused, digits_spec, device):
    line = refused("run", digits_spec, "--set", f"engine.device={device}")

    assert f'engine.device = "{device}" is no device that PyTorch finds here' in line
    assert '"auto"' in line


def test_a_missing_spec_file_is_refused_with_the_built_in_studies(refused, tmp_path):
    line = refused("run", tmp_path / "digit.toml")

    assert "digit.toml" in line
    assert "Known: digits, fashion-cnn, mnist-cnn, mnist-fc, nqm, paper:NAME, small:NAME." in line


def test_a_misspelt_built_in_study_is_refused_with_the_nearest(refused):
    assert 'Unknown study "digist". Did you mean "digits"?' in refused("run", "digist")


def test_a_folder_is_no_spec(refused, tmp_path):
    assert str(tmp_path) in refused("run", tmp_path)


def test_a_spec_file_that_is_no_text_is_refused(refused, tmp_path):
    path = tmp_path / "picture.toml"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff")

    assert f"{path}: cannot be read" in refused("run", path)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("sweep.trials", ["--set sweep.trials", "KEY=VALUE", "sweep.trials=8"]),
        ("sweep.trails=8", ['"sweep.trails"', 'Did you mean "sweep.trials"?']),
        ("sweep.trials=0", ["--set: ", "`sweep.trials` = 0"]),
        ("extends=digits", ["--set extends=digits", "only a spec file"]),
        ("sweep.trials=many", ["`sweep.trials` = 'many'"]),
        ("name.first=3", ["--set name.first=3", "`name` is not a table"]),
        ("=8", ['Unknown key ""']),
    ],
)
def test_a_bad_setting_is_refused(refused, small_spec, setting, words):
    line = refused("run", small_spec, "--set", setting)

    for word in words:
        assert word in line


def test_a_bad_spec_ends_a_process_with_one_line_and_exit_code_2(batchlab_process, tmp_path):
    (tmp_path / "bad.toml").write_text(NQM_SPEC.replace("[4, 8]", "[0]"))
    answer = batchlab_process("run", "bad.toml")

    assert (answer.code, answer.out) == (2, "")
    assert answer.err == ("batchlab: bad.toml: `sweep.batch_sizes[0]` = 0: give at least 1.\n")
    assert not (tmp_path / "lab").exists()


def test_a_dry_run_prints_studies_points_and_cost_and_makes_no_lab(call, small_spec, tmp_path):
    """Risk 0.3 is met at B = 64 by learning rate 1; what B = 4 can do within 200 steps is its pilot's affair."""
    answer = call("run", small_spec, "--dry-run", "--workers", 3)
    title, header, *rows, total = [line for line in answer.out.splitlines() if not line.startswith("*")]

    assert answer.code == 0
    assert title == "Sweep small: nqm/quadratic/sgd, goal val/risk <= 0.3, race protocol"
    assert re.split(r"  +", header) == [
        "batch size",
        "trials",
        "points",
        "max steps",
        "us/trial-step",
        "expected steps",
        "expected (one core)",
        "at most (one core)",
        "first point",
    ]
    assert [re.split(r"  +", row.strip())[:4] for row in rows] == [["4", "3", "3", "200"], ["64", "3", "3", "200"]]
    assert all(row.endswith("learning_rate 0.1") for row in rows)
    assert re.match(r"About .* expected with 3 workers, going by a pilot of up to 3 .*; at most .* diverged\.", total)
    assert [line.split(":")[0] for line in answer.err.splitlines()] == ["batch size      4", "batch size     64"]
    assert not (tmp_path / "lab").exists()


def test_a_dry_run_of_the_full_protocol_does_not_speak_of_the_race(call, small_spec):
    answer = call("run", small_spec, "--dry-run", "--workers", 3, "--set", "sweep.protocol=full")

    assert answer.out.splitlines()[0].endswith("full protocol")
    assert "every trial trains to its budget" in answer.out.splitlines()[-1]
    assert "race" not in answer.out
    assert "at most" not in answer.out.splitlines()[-1]


def test_a_dry_run_whose_pilot_meets_no_goal_says_so(call, small_spec):
    answer = call("run", small_spec, "--dry-run", "--set", 'sweep.goal="val/risk <= 1e-9"')

    assert answer.out.splitlines()[-1].startswith(
        "No trial of the pilot met the goal: no time can be expected, at most"
    )
    assert "no goal met by 3 trials in 200 steps (val/risk " in answer.err


def test_a_dry_run_whose_goal_is_met_before_training_asks_about_it(call, small_spec):
    answer = call("run", small_spec, "--dry-run", "--set", 'sweep.goal="val/risk > 1e-9"')

    note = answer.out.splitlines()[-2]
    assert note.startswith("Note: At batch size 4 and 64 the goal was met at step 0, before any training: is val/risk")


def test_a_dry_run_as_json_holds_one_entry_for_each_study(call, small_spec, tmp_path):
    plan = json.loads(call("run", small_spec, "--dry-run", "--json").out)

    assert list(plan) == ["sweep", "workload", "workers", "protocol", "finished", "studies"]
    assert (plan["sweep"], plan["workload"], plan["workers"]) == ("small", "nqm/quadratic/sgd", usable_cores())
    assert plan["protocol"] == "race"
    assert [study["batch_size"] for study in plan["studies"]] == [4, 64]
    for study in plan["studies"]:
        assert (study["trials"], study["attempts"], study["max_steps"]) == (3, 3, 200)
        assert study["first_point"] == {"learning_rate": 0.1}
        assert study["max_seconds"] >= 600 * study["seconds_per_trial_step"] > 0
        assert study["expected_seconds"] <= study["max_seconds"]
        assert study["pilot"]["trials"] == 3
    assert plan["studies"][1]["pilot"]["goal_steps"] < plan["studies"][1]["expected_steps"] < 200
    assert not (tmp_path / "lab").exists()


def test_a_dry_run_leaves_out_what_is_finished_in_the_lab(call, small_spec):
    call("run", small_spec, "--workers", 1, "--set", "sweep.batch_sizes=[4]")
    answer = call("run", small_spec, "--dry-run")
    told = json.loads(call("run", small_spec, "--dry-run", "--json").out)
    finished = call("run", small_spec, "--dry-run", "--set", "sweep.batch_sizes=[4]")
    grown = json.loads(call("run", small_spec, "--dry-run", "--json", "--set", "sweep.max_steps=300").out)
    growing = call("run", small_spec, "--dry-run", "--set", "sweep.max_steps=300")

    assert "finished in lab and left out: batch size 4" in answer.err
    assert [line.split(":")[0] for line in answer.err.splitlines()][1:] == ["batch size     64"]
    assert (told["finished"], [study["batch_size"] for study in told["studies"]]) == ([4], [64])
    assert (finished.code, finished.out) == (0, "")
    assert 'sweep "small" is finished in lab as it is asked for: nothing would be trained' in finished.err
    assert (grown["finished"], [study["batch_size"] for study in grown["studies"]]) == ([], [4, 64])
    assert "begun in lab and counted whole, what is trained already included: batch size 4" in growing.err


def test_a_dry_run_of_some_points_only_is_refused(refused, small_spec):
    assert "a dry run counts all points of a study" in refused("run", small_spec, "--dry-run", "--only", "0..1")


def test_points_that_a_grid_has_not_are_refused(refused, grid_spec):
    """`max_attempts`, 5 for each trial, is not used by the grid."""
    assert "the points of this sweep are 0..4, FIRST not after LAST" in refused("run", grid_spec, "--only", "5..7")


def test_a_dry_run_of_another_spec_than_the_labs_is_refused_as_the_run_would_be(call, refused, small_spec):
    call("run", small_spec, "--workers", 1)

    assert "was begun with another spec; changed: seed: 0 -> 1" in refused(
        "run", small_spec, "--dry-run", "--set", "seed=1"
    )


def test_a_run_prints_its_curve_and_what_the_race_saved(batchlab_process, small_spec):
    """Results go to stdout and progress to stderr; the same command again trains nothing and answers the same."""
    answer = batchlab_process("run", small_spec, "--workers", 2)
    again = batchlab_process("run", small_spec)

    assert answer.code == again.code == 0
    assert answer.out.startswith("nqm/quadratic/sgd: steps to val/risk <= 0.3\nBatch size  Minimum")
    assert re.search(
        r"The race trained [\d,]+ steps; every trial to its budget would be 1,200 \(\d+ times\)\.", answer.out
    )
    assert answer.err.splitlines()[0].startswith("batch size ")
    assert again.out == answer.out
    assert again.err == ""


def test_a_run_as_json_prints_the_curve_alone(call, small_lab, small_spec):
    run, curve = call("run", small_spec, "--json"), call("curve", "--json")

    assert run.code == 0
    assert run.out == curve.out
    assert list(json.loads(run.out)) == ["workload", "goal", "headline", "protocol", "rows", "fit", "regimes"]


def test_a_built_in_study_runs_by_name_with_values_set(call):
    settings = ["sweep.batch_sizes=[4, 16]", "sweep.trials=2", 'sweep.goal="val/risk <= 1"', "sweep.max_steps=50"]
    settings += ["search_space.learning_rate={values = [0.1, 0.3]}"]
    answer = call("run", "nqm", "--json", *(part for setting in settings for part in ("--set", setting)))
    rows = json.loads(answer.out)["rows"]

    assert [(row["batch_size"], row["complete"]) for row in rows] == [(4, 2), (16, 2)]


def test_two_sweeps_share_a_lab(call, mixed_lab):
    rows = {row["sweep"]: row for row in json.loads(call("status", "--json").out)}

    assert list(rows) == ["digits-small", "small"]
    assert all(row["finished"] == row["studies"] == 2 for row in rows.values())
