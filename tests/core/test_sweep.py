from __future__ import annotations

import copy
import json
import tomllib

import pytest

from batchlab.core.evaluation import Evaluation
from batchlab.core.goal import Goal
from batchlab.core.sweep import Engine, Sweep, differences
from batchlab.errors import SpecError

SPEC = """
name = "digits"
seed = 3

[workload]
dataset = "digits"
model = "fc_128"
optimizer = "nesterov_momentum"

[sweep]
batch_sizes = [64, 1, 16]
trials = 8
max_steps = 20000
goal = "val/classification_error < 0.03"
evaluate = {growth = 1.1}

[search_space]
learning_rate = {min = 1e-3, max = 10.0, scale = "log"}
momentum = {min = 0.0, max = 0.999, scale = "reverse_log"}
decay = {values = [0.0, 0.1]}
steps = {min = 100, max = 900, type = "integer"}
"""
REMOVE = object()


def spec(changes=None) -> dict:
    """Return SPEC as data, with the values at dotted places changed."""
    data = tomllib.loads(SPEC)
    for place, value in (changes or {}).items():
        *tables, key = place.split(".")
        table = data
        for name in tables:
            table = table.setdefault(name, {})
        if value is REMOVE:
            del table[key]
        else:
            table[key] = value
    return data


def parse(changes=None) -> Sweep:
    return Sweep.parse(spec(changes), "digits.toml")


def failure(changes) -> str:
    with pytest.raises(SpecError) as error:
        parse(changes)
    return str(error.value)


@pytest.mark.parametrize(
    ("place", "suggestion"),
    [
        ("nam", "name"),
        ("workload.modle", "workload.model"),
        ("sweep.trails", "sweep.trials"),
        ("sweep.evaluate.grwth", "sweep.evaluate.growth"),
        ("search_space.learning_rate.scal", "search_space.learning_rate.scale"),
        ("search_space.decay.valeus", "search_space.decay.values"),
        ("engine.devise", "engine.device"),
        ("at.16.max_step", "at.16.max_steps"),
        ("at.16.search_space.momentum.scal", "at.16.search_space.momentum.scale"),
    ],
)
def test_an_unknown_key_is_refused_with_the_closest_one_at_every_level(place, suggestion):
    message = failure({place: 1})

    assert message.startswith(f'digits.toml: Unknown key "{place}". Did you mean "{suggestion}"? Known: ')


@pytest.mark.parametrize(("size", "expected"), [("auto", None), (128, 128)])
def test_a_microbatch_is_as_large_as_fits_or_as_told(size, expected):
    """What is not set is not stored, so that it does not change the spec of a lab."""
    engine = Engine.parse({"microbatch_size": size}, "spec")

    assert engine.microbatch_size == expected
    assert ("microbatch_size" in engine.plain()) == (size != "auto")


def test_the_known_keys_are_those_of_the_table():
    assert failure({"engine.colour": "red"}).endswith(
        "Known: engine.checkpoint_seconds, engine.cpus_per_trial, engine.device, engine.gpus_per_trial, "
        "engine.keep_states, engine.microbatch_size, engine.pack_size, engine.precision, "
        "engine.worker_timeout_seconds, engine.workers_per_trial."
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": REMOVE}, "`name` is missing."),
        ({"workload.model": REMOVE}, "`workload.model` is missing."),
        ({"name": "../digits"}, "`name` = '../digits': begin with a letter or digit"),
        ({"seed": -1}, "`seed` = -1: give at least 0."),
        ({"engine.workers_per_trial": 0}, "`engine.workers_per_trial` = 0: give at least 1."),
        ({"engine.workers_per_trial": 1.5}, "`engine.workers_per_trial` = 1.5: give a whole number."),
        ({"engine.workers_per_trial": 5000}, "`engine.workers_per_trial` = 5000: give at most 1024."),
        ({"engine.worker_timeout_seconds": 0.1}, "`engine.worker_timeout_seconds` = 0.1: give at least 1"),
        (
            {"engine.workers_per_trial": 2, "workload": {"dataset": "nqm", "model": "quadratic", "optimizer": "sgd"}},
            "`engine.workers_per_trial` = 2: nqm/quadratic/sgd is computed by formulas",
        ),
        (
            {"engine.workers_per_trial": 2, "workload": {"command": "train"}},
            "`engine.workers_per_trial` is not for a loop of your own",
        ),
        # batch sizes
        ({"sweep.batch_sizes": [16, 0]}, "`sweep.batch_sizes[1]` = 0: give at least 1."),
        ({"sweep.batch_sizes": [-4]}, "`sweep.batch_sizes[0]` = -4: give at least 1."),
        ({"at.32.max_steps": 5}, "`at.32`: 32 is not among `sweep.batch_sizes`"),
        ({"sweep.sampler_version": 4}, "`sweep.sampler_version` = 4: give 1, 2 or 3."),
        ({"at.16.max_steps": 0}, "`at.16.max_steps` = 0: give at least 1."),
        ({"at.16.max_examples": 15}, "`at.16`: max_examples = 15 ends before the first update"),
        (
            {"at.16.search_space.momentun": {"values": [0.9]}},
            "`at.16.search_space`: `momentun` is not in [search_space]; add it there",
        ),
        ({"sweep.batch_sizes": 16}, "`sweep.batch_sizes` = 16: give a list, such as [16, 64]."),
        ({"sweep.batch_sizes": []}, "`sweep.batch_sizes` = []: give at least 1."),
        ({"sweep.goal": 0.03}, '`sweep.goal[0]` = 0.03: give text, such as "val/classification_error < 0.03".'),
        ({"sweep": 3}, "`sweep` = 3: give a table, such as {batch_sizes = [16, 64], trials = 8, "),
        ({"sweep.confirm": True}, "`sweep.confirm` = True: give a table, such as {seeds = 6, points = 3}."),
        ({"sweep.evaluate": 10}, "`sweep.evaluate` = 10: give a table, such as {every = 10, growth = 1.03}."),
        ({"at.16.evaluate": 10}, "`at.16.evaluate` = 10: give a table, such as {every = 10, growth = 1.03}."),
        ({"at.16": 10}, "`at.16` = 10: give a table, such as {max_steps = 500}."),
        ({"at": 16}, "`at` = 16: give a table, such as {name = value}."),
        ({"engine": "cpu"}, "`engine` = 'cpu': give a table, such as {device = \"cpu\"}."),
        ({"workload": "digits"}, "`workload` = 'digits': give a table, such as {dataset = \"digits\", "),
        ({"sweep.goal": [3]}, '`sweep.goal[0]` = 3: give text, such as "val/classification_error < 0.03".'),
        (
            {"search_space": 3},
            "`search_space` = 3: give a table, such as {learning_rate = {min = 0.1, max = 1.0}}.",
        ),
        ({"sweep.batch_sizes": [2.5]}, "`sweep.batch_sizes[0]` = 2.5: give a whole number"),
        ({"sweep.batch_sizes": []}, "`sweep.batch_sizes` = []: "),
        ({"sweep.batch_sizes": [4, 8, 4]}, "`sweep.batch_sizes`: batch size 4 is listed twice"),
        # budget
        ({"sweep.trials": 0}, "`sweep.trials` = 0: give at least 1."),
        ({"sweep.max_steps": REMOVE}, "`sweep`: a trial needs an end: give `max_steps`, `max_examples` or both"),
        ({"sweep.max_examples": 63}, "`sweep`: max_examples = 63 ends before the first update at batch size 64"),
        ({"sweep.max_attempts": 7}, "`sweep`: max_attempts = 7 cannot complete trials = 8"),
        ({"sweep.race_factor": 0.9}, "`sweep.race_factor` = 0.9: give at least 1."),
        ({"sweep.protocol": "fast"}, "`sweep.protocol` = 'fast': give 'race' or 'full'."),
        ({"sweep.sampler": "bayes"}, "`sweep.sampler` = 'bayes': give 'halton'"),
        # goals
        ({"sweep.goal": "error < 0.03"}, '`sweep.goal[0]`: "error < 0.03" is no goal; write one like'),
        ({"sweep.goal": []}, "`sweep.goal` = []: "),
        (
            {"sweep.goal": ["val/a < 0.1", "val/b < 0.1"]},
            '`sweep`: goals "val/b < 0.1" and "val/a < 0.1" cannot be ordered; use one metric and one direction',
        ),
        (
            {"sweep.goal": ["val/a < 0.1", "val/a > 0.05"]},
            '`sweep`: goals "val/a > 0.05" and "val/a < 0.1" cannot be ordered',
        ),
        # ranges
        ({"search_space.steps.min": 901}, "`search_space.steps`: min = 901 is greater than max = 900; exchange them"),
        ({"search_space.learning_rate.min": 0}, "`search_space.learning_rate`: min = 0 cannot be on a log scale"),
        ({"search_space.momentum.max": 1}, "`search_space.momentum`: max = 1 cannot be on a reverse_log scale"),
        ({"search_space.steps.max": 900.5}, "`search_space.steps`: an integer range needs whole ends"),
        ({"search_space.momentum.max": REMOVE}, "`search_space.momentum.max` is missing."),
        ({"search_space.momentum.min": REMOVE}, "`search_space.momentum.min` is missing."),
        ({"search_space.decay.values": []}, "`search_space.decay.values` = []: "),
        ({"search_space.momentum.scale": "lin"}, "`search_space.momentum.scale` = 'lin': give 'linear'"),
        (
            {"search_space.momentum": 0.9},
            "`search_space.momentum` = 0.9: give a table, such as {min = 0.1, max = 1.0} or {values = [0.9]}, "
            "or fix it as an option of the optimizer.",
        ),
        (
            {"at.16.search_space": {"momentum": 0.9}},
            "`at.16.search_space.momentum` = 0.9: give a table, such as {min = 0.1, max = 1.0} or {values",
        ),
        (
            {"search_space.momentum": {"values": [0.5], "min": 0.1}},
            "`search_space.momentum`: `min` beside `values`: give `values`, or `min` and `max`, not both",
        ),
        (
            {"search_space.momentum": {"values": [0.5], "scale": "log"}},
            "`search_space.momentum`: `scale` beside `values`: give `values`, or `min` and `max`, not both",
        ),
        (
            {"at": {64: {"search_space": {"momentum": {"min": 0.1, "max": 0.9, "batch_size": 3}}}}},
            "`at.64.search_space.momentum.batch_size` is that of each study; leave it out",
        ),
        (
            {"workload.optimizer": {"name": "momentum", "momentum": 0.9}},
            "`momentum` is both fixed in the workload and in the search space; drop one",
        ),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused_with_place_and_value(changes, message):
    assert failure(changes).startswith(f"digits.toml: {message}")


def test_one_study_for_each_batch_size_in_ascending_order():
    sweep = parse()

    assert [study.batch_size for study in sweep.studies()] == [1, 16, 64]
    assert sweep.study(16) == sweep.studies()[1]


def test_a_study_takes_over_what_the_sweep_says():
    study = parse({"sweep.race_factor": 2}).study(16)

    assert (study.seed, study.trials, study.attempts, study.max_steps) == (3, 8, 40, 20000)
    assert study.goal == Goal.read("val/classification_error < 0.03")
    assert (study.race_factor, study.sampler, study.evaluation.growth) == (2, "halton", 1.1)
    assert study.workload.name == "digits/fc_128/nesterov_momentum"


def test_one_batch_size_may_be_evaluated_at_other_steps():
    sweep = parse({"at.16.evaluate": {"every": 100, "growth": 1.03}})

    assert sweep.study(16).evaluation == Evaluation(every=100, growth=1.03)
    assert sweep.study(64).evaluation == Evaluation(growth=1.1)


@pytest.mark.parametrize(("changes", "version"), [({}, 3), ({"sweep.sampler_version": 1}, 1)])
def test_the_newest_sampler_draws_unless_an_older_one_is_asked_for(changes, version):
    assert parse(changes).study(16).sampler_version == version


def test_the_full_protocol_has_no_race():
    assert parse({"sweep.protocol": "full"}).study(1).race_factor is None


def test_attempts_can_be_set():
    assert parse({"sweep.max_attempts": 9}).study(1).attempts == 9


@pytest.mark.parametrize(
    ("max_steps", "max_examples", "expected"),
    [
        (REMOVE, 1000, {1: 1000, 16: 62, 64: 15}),
        (100, 1000, {1: 100, 16: 62, 64: 15}),
        (100, 10**6, {1: 100, 16: 100, 64: 100}),
        (REMOVE, 64, {1: 64, 16: 4, 64: 1}),
    ],
)
def test_the_first_limit_reached_ends_a_trial(max_steps, max_examples, expected):
    sweep = parse({"sweep.max_steps": max_steps, "sweep.max_examples": max_examples})

    assert {study.batch_size: study.max_steps for study in sweep.studies()} == expected


@pytest.mark.parametrize(
    "goals",
    [
        ["val/a < 0.1", "val/a < 0.05", "val/a < 0.2"],
        ["val/a <= 0.05", "val/a < 0.05"],
        ["val/a < 0.05"],
        ["val/a < 0.05", "val/a < 0.05"],
    ],
)
def test_the_race_is_for_the_hardest_goal(goals):
    assert parse({"sweep.goal": goals}).study(1).goal == Goal.read("val/a < 0.05")


def test_for_a_metric_that_should_grow_the_highest_goal_is_the_hardest():
    assert parse({"sweep.goal": ["val/a > 0.5", "val/a >= 0.7"]}).study(1).goal == Goal.read("val/a >= 0.7")


def test_an_empty_search_space_is_allowed():
    assert parse({"search_space": {}}).search_space.names == []


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"workload.dataset": {"name": "mnist", "train_examples": 10000}, "sweep.max_examples": 10**6},
        {
            "sweep.goal": ["val/a < 0.1", "val/a < 0.0123456789"],
            "sweep.evaluate": {"every": 5, "splits": ["train", "val"]},
        },
        {"engine": {"device": "cpu", "pack_size": 16}, "search_space.learning_rate.points": 5},
    ],
)
def test_a_sweep_is_read_back_from_json(changes):
    sweep = parse(changes)

    assert Sweep.parse(json.loads(json.dumps(sweep.plain())), "sweep.json") == sweep


def test_the_order_of_the_search_space_survives():
    assert list(parse().plain()["search_space"]) == ["learning_rate", "momentum", "decay", "steps"]


# Differences between two resolved specs


def test_equal_specs_have_no_differences():
    assert differences(parse().plain(), copy.deepcopy(parse().plain())) == []


def test_every_difference_is_one_line_with_its_place():
    changes = {
        "seed": 4,
        "sweep.trials": 32,
        "sweep.max_examples": 10**6,
        "search_space.momentum.max": 0.99,
        "search_space.decay": REMOVE,
    }

    assert differences(parse().plain(), parse(changes).plain()) == [
        "search_space.decay: {'values': [0.0, 0.1]} -> (not set)",
        "search_space.momentum.max: 0.999 -> 0.99",
        "seed: 3 -> 4",
        "sweep.max_examples: (not set) -> 1000000",
        "sweep.trials: 8 -> 32",
    ]


def test_a_table_in_place_of_a_value_is_one_difference():
    assert differences({"a": {"b": 1}}, {"a": 1}) == ["a: {'b': 1} -> 1"]


def test_one_batch_size_may_have_ranges_and_limits_of_its_own():
    sweep = parse(
        {
            "sweep.max_examples": 6400,
            "at.16.max_steps": 500,
            "at.16.search_space.learning_rate": {"min": 0.01, "max": 0.1, "scale": "log"},
            "at.64.max_examples": 640,
        }
    )
    usual, changed, limited = sweep.studies()

    assert [study.max_steps for study in (usual, changed, limited)] == [6400, 400, 10]  # the first limit ends a trial
    assert usual.search_space == limited.search_space == sweep.search_space
    assert changed.search_space["learning_rate"].max == 0.1
    assert changed.search_space.names == sweep.search_space.names
    assert changed.search_space["momentum"] == sweep.search_space["momentum"]


def test_changes_at_a_batch_size_survive_storage():
    sweep = parse({"at.16.search_space.learning_rate": {"min": 0.01, "max": 0.1, "scale": "log"}})
    stored = Sweep.parse(json.loads(json.dumps(sweep.plain())), "sweep.json")

    assert stored == sweep
    assert differences(stored.plain(), sweep.plain()) == []
    assert "at" not in parse().plain()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"workload": {"command": "a", "model": "fc_8"}}, "`model` beside a command: the program knows it alone"),
        ({"workload": {"command": "a", "loop": "b"}}, "`loop` is of a file of Python"),
        ({"engine": {"pack_size": 4}}, "`engine.pack_size` is not for a loop of your own"),
        ({"engine": {"precision": "bfloat16"}}, "`engine.precision` is not for a loop of your own"),
        ({"at": {"8": {"evaluate": {"every": 5}}}}, "`sweep.evaluate`: a loop of your own evaluates when it likes"),
        (
            {"workload": {"dataset": "digits", "model": "fc_8", "optimizer": "sgd"}, "engine": {"cpus_per_trial": 2}},
            "`engine.cpus_per_trial` is for a command or a loop of your own",
        ),
    ],
)
def test_what_a_loop_cannot_be_asked_is_one_sentence(changes, sentence):
    data = {
        "name": "own",
        "workload": {"command": "train {batch_size} {seed}"},
        "sweep": {"batch_sizes": [8], "trials": 2, "max_steps": 100, "goal": "val/loss < 0.1"},
        "search_space": {},
    }

    with pytest.raises(SpecError) as caught:
        Sweep.parse(data | changes, "own.toml")

    assert sentence in str(caught.value)


def test_a_loop_goes_by_the_name_of_its_sweep_and_is_read_back():
    data = {
        "name": "own",
        "workload": {"command": "train {batch_size} {seed}"},
        "sweep": {"batch_sizes": [8], "trials": 2, "max_steps": 100, "goal": "val/loss < 0.1"},
        "search_space": {},
    }
    sweep = Sweep.parse(data, "own.toml")

    assert sweep.workload.name == "own" and sweep.workload.is_own_loop
    assert Sweep.parse(sweep.plain(), "again") == sweep
