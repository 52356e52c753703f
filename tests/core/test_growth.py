"""What of a sweep may become more, and what must stay."""

from __future__ import annotations

import pytest

from batchlab.core.growth import continued, fixed_digest, not_grown
from batchlab.core.sweep import Sweep


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sweep.trials": 8},
        {"sweep.batch_sizes": [4, 8, 16]},
        {"sweep.race_factor": 2.0},
        {"sweep.max_steps": 200},
        {"sweep.protocol": "full"},
        {"sweep.confirm": {"seeds": 6, "points": 3}},
        {"sweep.max_attempts": 40},
        {"engine.keep_states": True},
        {"engine.checkpoint_seconds": 1.0},
        {"engine.workers_per_trial": 2, "engine.worker_timeout_seconds": 60.0},
        {"sweep.batch_sizes": [8, 16], "at": {"16": {"max_steps": 10}}},
        {"at": {"8": {"max_steps": 150}}},
    ],
)
def test_more_is_growth_and_less_is_not(make_scripted, changes):
    small, large = make_scripted(), make_scripted(changes)

    assert not_grown(small, large) == []
    assert bool(not_grown(large, small)) == bool(changes) or any("engine" in name for name in changes)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"seed": 1}, "seed: 0 -> 1"),
        ({"sweep.goal": "val/loss < 0.4"}, "sweep.goal: ['val/loss < 0.5'] -> ['val/loss < 0.4']"),
        ({"sweep.batch_sizes": [16]}, "sweep.batch_sizes: [8] -> [16]"),
        ({"sweep.evaluate": {"every": 5}}, "sweep.evaluate.every: 10 -> 5"),
        ({"search_space.learning_rate": {"min": 0.1, "max": 2.0}}, "search_space.learning_rate.max: 1.0 -> 2.0"),
        ({"at": {"8": {"max_steps": 50}}}, "at batch size 8: max_steps: 100 -> 50"),
        ({"at": {"8": {"evaluate": {"every": 5}}}}, "at batch size 8: evaluation.every: 10 -> 5"),
    ],
)
def test_anything_else_is_no_growth(make_scripted, changes, line):
    assert not_grown(make_scripted(), make_scripted(changes)) == [line]


def test_what_a_spec_leaves_open_is_as_it_was(make_scripted):
    stored = make_scripted({"sweep.sampler_version": 1, "sweep.confirm": {"seeds": 8}})

    again = continued(make_scripted(), stored).search
    assert (again.sampler_version, again.confirm.seeds) == (1, 8)

    other = continued(make_scripted({"sweep.sampler_version": 2}), stored).search
    assert other.sampler_version == 2


def test_the_budget_of_a_program_that_is_told_it_does_not_grow():
    def sweep(max_steps, command):
        data = {"name": "own", "workload": {"command": command}, "search_space": {"rate": {"values": [0.1]}}}
        search = {"batch_sizes": [8], "trials": 1, "max_steps": max_steps, "goal": "val/loss < 1"}
        return Sweep.parse({**data, "sweep": search}, "")

    plain, told = "train {batch_size} {seed} {rate}", "train {batch_size} {seed} {rate} {max_steps}"

    assert not_grown(sweep(10, plain), sweep(20, plain)) == []
    assert not_grown(sweep(10, told), sweep(20, told)) == ["sweep.max_steps: 10 -> 20"]


def test_a_digest_outlives_a_new_default_of_the_sampler(make_scripted):
    """Labs begun before a version became the default hold digests without it."""
    digests = [fixed_digest(make_scripted({"sweep.sampler_version": version})) for version in (1, 2, 3)]

    assert digests[0] != digests[1] == digests[2] == fixed_digest(make_scripted())
