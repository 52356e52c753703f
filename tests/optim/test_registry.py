"""Optimizers and schedules by name, their metaparameters and options."""

from __future__ import annotations

import math

import pytest

from batchlab.core.sweep import Sweep
from batchlab.core.workload import Named
from batchlab.errors import SpecError
from batchlab.optim.base import Optimizer
from batchlab.optim.layout import Layout
from batchlab.optim.metaparameter import Bounds
from batchlab.optim.registry import (
    OPTIMIZERS,
    SCHEDULES,
    load_optimizer,
    load_schedule,
    optimizer_entry,
    schedule_entry,
    with_defaults,
)

LAYOUT = Layout(("weight",), ((2, 3),))
ENTRIES = [*OPTIMIZERS.values(), *(schedule_entry(Named(name=name)) for name in SCHEDULES)]
KNOWN = {each.name: each for entry in ENTRIES for each in entry.metaparameters}


def names(entry):
    return tuple(each.name for each in entry.metaparameters)


def sweep_of(optimizer, **space):
    return Sweep.parse(
        {
            "name": "small",
            "workload": {"dataset": "digits", "model": "fc_128", "optimizer": optimizer},
            "sweep": {"batch_sizes": [8], "trials": 1, "max_steps": 9, "goal": "val/classification_error < 0.1"},
            "search_space": {name: {"values": values} for name, values in space.items()},
        },
        "spec.toml",
    )


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_every_optimizer_loads(name):
    assert isinstance(load_optimizer(Named(name=name), LAYOUT), Optimizer)
    assert "learning_rate" in names(optimizer_entry(Named(name=name)))


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_every_schedule_loads(name):
    assert callable(load_schedule(Named(name=name)))


def test_the_optimizers_read_what_they_say():
    assert {name: names(entry) for name, entry in OPTIMIZERS.items()} == {
        "sgd": ("learning_rate",),
        "momentum": ("learning_rate", "momentum"),
        "nesterov_momentum": ("learning_rate", "momentum"),
        "adam": ("learning_rate", "beta_1", "beta_2", "epsilon", "weight_decay"),
        "adamw": ("learning_rate", "beta_1", "beta_2", "epsilon", "weight_decay"),
    }


def test_an_unknown_optimizer_is_refused_with_the_closest_and_all_names():
    with pytest.raises(SpecError) as caught:
        optimizer_entry(Named(name="nesterov"))

    assert str(caught.value) == (
        'Unknown optimizer "nesterov". Did you mean "nesterov_momentum"? '
        "Known: adam, adamw, momentum, nesterov_momentum, sgd."
    )


def test_an_unknown_schedule_is_refused_with_the_closest_and_all_names():
    with pytest.raises(SpecError, match='Unknown schedule "linear". Did you mean "linear_decay"'):
        schedule_entry(Named(name="linear"))


def test_the_metaparameters_of_a_schedule_are_named_for_what_it_schedules():
    assert names(schedule_entry(Named(name="linear_decay"))) == (
        "end_learning_rate_factor",
        "learning_rate_decay_steps",
    )
    assert names(schedule_entry(Named(name="linear_decay", of="beta_1"))) == ("end_beta_1_factor", "beta_1_decay_steps")


@pytest.mark.parametrize(
    ("name", "value", "is_admitted"),
    [
        ("learning_rate", 0.0, False),
        ("learning_rate", -0.1, False),
        ("learning_rate", 1e-12, True),
        ("learning_rate", 1e12, True),
        ("learning_rate", math.inf, False),
        ("learning_rate", math.nan, False),
        ("momentum", 0.0, True),
        ("momentum", 0.999, True),
        ("momentum", 1.0, False),
        ("momentum", -0.1, False),
        ("beta_2", 1.0, False),
        ("epsilon", 0.0, True),
        ("weight_decay", -1e-4, False),
        ("end_learning_rate_factor", 0.0, True),
        ("learning_rate_decay_steps", 0, False),
        ("learning_rate_decay_steps", 1, True),
    ],
)
def test_bounds_admit_what_training_can_use(name, value, is_admitted):
    assert KNOWN[name].bounds.admits(value) is is_admitted


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_default_is_admitted(name):
    default = KNOWN[name].default

    assert default is None or KNOWN[name].bounds.admits(default)


@pytest.mark.parametrize(
    ("bounds", "sentence"),
    [
        (Bounds(0, is_open_below=True), "above 0"),
        (Bounds(0), "at least 0"),
        (Bounds(0, 1), "at least 0 and below 1"),
    ],
)
def test_bounds_say_what_they_admit(bounds, sentence):
    assert str(bounds) == sentence


def test_what_is_neither_fixed_nor_searched_is_written_into_the_spec():
    sweep = with_defaults(sweep_of({"name": "adamw", "epsilon": 1e-6}, learning_rate=[0.1], weight_decay=[0, 0.01]))

    assert sweep.workload.optimizer.options == {"epsilon": 1e-6, "beta_1": 0.9, "beta_2": 0.999}
    assert with_defaults(sweep) == sweep


def test_a_spec_without_defaults_stays_as_it_is():
    sweep = sweep_of("momentum", learning_rate=[0.1], momentum=[0.9])

    assert with_defaults(sweep).plain() == sweep.plain()
