"""Optimizers and schedules by name, and the values that their metaparameters may take."""

from __future__ import annotations

import math

import pytest

from batchlab.errors import SpecError
from batchlab.optim.base import Optimizer
from batchlab.optim.registry import (
    BOUNDS,
    OPTIMIZERS,
    SCHEDULES,
    Bounds,
    load_optimizer,
    load_schedule,
    optimizer_entry,
    schedule_entry,
)


@pytest.mark.parametrize("name", sorted(OPTIMIZERS))
def test_every_optimizer_loads(name):
    assert isinstance(load_optimizer(name), Optimizer)
    assert "learning_rate" in optimizer_entry(name).metaparameters


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_every_schedule_loads(name):
    assert load_schedule(name).__name__ == name


@pytest.mark.parametrize("entry", [*OPTIMIZERS.values(), *SCHEDULES.values()], ids=lambda entry: entry.attribute)
def test_every_metaparameter_has_bounds(entry):
    assert set(entry.metaparameters) <= set(BOUNDS)


def test_the_three_optimizers_read_what_they_say():
    assert optimizer_entry("sgd").metaparameters == ("learning_rate",)
    assert optimizer_entry("momentum").metaparameters == ("learning_rate", "momentum")
    assert optimizer_entry("nesterov_momentum").metaparameters == ("learning_rate", "momentum")
    assert load_optimizer("momentum").update is not load_optimizer("nesterov_momentum").update


def test_an_unknown_optimizer_is_refused_with_the_closest_and_all_names():
    with pytest.raises(SpecError) as caught:
        load_optimizer("nesterov")

    assert str(caught.value) == (
        'Unknown optimizer "nesterov". Did you mean "nesterov_momentum"? Known: momentum, nesterov_momentum, sgd.'
    )


def test_an_unknown_schedule_is_refused_with_the_closest_and_all_names():
    with pytest.raises(SpecError, match='Unknown schedule "linear". Did you mean "linear_decay"'):
        schedule_entry("linear")


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
        ("end_learning_rate_factor", 0.0, True),
        ("learning_rate_decay_steps", 0, False),
        ("learning_rate_decay_steps", 1, True),
    ],
)
def test_bounds_admit_what_training_can_use(name, value, is_admitted):
    assert BOUNDS[name].admits(value) is is_admitted


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
