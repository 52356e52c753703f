"""Units of metaparameters that they are not for, and values that a unit leads out of bounds."""

from __future__ import annotations

import pytest
import torch

from batchlab.core.space import Range
from batchlab.core.units import OF
from batchlab.engine.checks.study import LABEL_SMOOTHING
from batchlab.engine.quadratic import OPTIONAL
from batchlab.errors import SpecError
from batchlab.optim import registry
from batchlab.optim.metaparameter import LEARNING_RATE, POSITIVE, Metaparameter
from batchlab.optim.registry import OPTIMIZERS, OptimizerEntry, register_class
from batchlab.optim.unit_check import check_units

RATE = {"min": 0.1, "max": 1.0, "scale": "log"}
MOMENTUM = {"values": [0.9]}


def refusal(sweep, optional=(LABEL_SMOOTHING,)):
    with pytest.raises(SpecError) as caught:
        for study in sweep.studies():
            check_units(study, optional)
    return str(caught.value)


@pytest.mark.parametrize(
    ("optimizer", "name", "unit", "sentence"),
    [
        (
            "momentum",
            "momentum",
            "decay_examples",
            "unit = decay_examples is for weight_decay, not momentum: use half_life_examples, or leave it out.",
        ),
        (
            "momentum",
            "momentum",
            "linear_rule",
            "unit = linear_rule is for learning_rate, not momentum: use half_life_examples, or leave it out.",
        ),
        (
            "adam",
            "learning_rate",
            "half_life_examples",
            "unit = half_life_examples is for momentum, beta_1, beta_2 and ema_decay, not learning_rate:"
            " use linear_rule or sqrt_rule, or leave it out.",
        ),
        ("adam", "epsilon", "sqrt_rule", "unit = sqrt_rule is for learning_rate, not epsilon: leave it out."),
        ("adam", "label_smoothing", "half_life_examples", "and ema_decay, not label_smoothing: leave it out."),
        ("torch.optim.SGD", "momentum", "sqrt_rule", "is for learning_rate, not momentum"),
    ],
)
def test_a_unit_of_another_metaparameter_is_refused(make_digits, optimizer, name, unit, sentence):
    space = {"learning_rate": RATE, name: {"min": 0.1, "max": 0.19, "unit": unit}}
    sweep = make_digits({"workload.optimizer": optimizer, "search_space": space})

    line = refusal(sweep)
    assert line.startswith(f"search_space.{name}: ")
    assert sentence in line


def test_a_schedule_of_ours_has_metaparameters_without_a_unit(make_digits):
    schedule = {"name": "linear_decay", "end_learning_rate_factor": 0.1}
    steps = {"min": 10, "max": 50, "unit": "half_life_examples"}
    space = {"learning_rate": RATE, "momentum": MOMENTUM, "learning_rate_decay_steps": steps}

    line = refusal(make_digits({"workload.schedule": schedule, "search_space": space}))
    assert line.endswith("not learning_rate_decay_steps: leave it out.")


def test_a_table_of_one_batch_size_is_looked_at_too(make_digits):
    at = {"16": {"search_space": {"momentum": {"min": 0.1, "max": 0.2, "unit": "linear_rule"}}}}

    assert "is for learning_rate, not momentum" in refusal(make_digits({"at": at}))


@pytest.mark.parametrize("unit", OF)
def test_every_metaparameter_of_a_unit_is_one_that_batchlab_has(unit):
    entries = [entry for entry in OPTIMIZERS.values() if entry.module.startswith("batchlab.optim.")]
    names = {each.name for entry in entries for each in entry.metaparameters} | set(OPTIONAL)

    assert set(OF[unit]) <= names


class Trusting(torch.optim.SGD):
    def __init__(self, params, lr=0.1, trust=0.5):
        super().__init__(params, lr=lr)


@pytest.mark.parametrize("unit", OF)
def test_a_metaparameter_of_ones_own_may_have_any_unit(make_digits, monkeypatch, unit):
    monkeypatch.setattr(registry, "OPTIMIZERS", dict(OPTIMIZERS))
    name = register_class(Trusting)
    own = (LEARNING_RATE, Metaparameter("momentum", POSITIVE))
    registry.OPTIMIZERS["own"] = OptimizerEntry("own", "my_optimizers", "own", own)
    written = {"min": 10, "max": 19, "unit": unit}

    for optimizer, own_name in ((name, "trust"), ("own", "momentum"), ("torch.optim.RMSprop", "alpha")):
        space = {"learning_rate": RATE, own_name: written}
        for study in make_digits({"workload.optimizer": optimizer, "search_space": space}).studies():
            check_units(study)


@pytest.mark.parametrize(
    ("name", "written", "sentence"),
    [
        (
            "beta_1",
            {"min": 1e3, "max": 1e18, "scale": "log", "unit": "half_life_examples"},
            "search_space.beta_1: 1e+18 in half_life_examples is beta_1 = 1 at batch size 16,"
            " and must be at least 0 and below 1.",
        ),
        (
            "beta_1",  # 0.5^(16/1e9) = 1 - 1.1e-8, and single precision has steps of 6e-8 below 1
            {"min": 1e3, "max": 1e9, "scale": "log", "unit": "half_life_examples"},
            "1e+09 in half_life_examples is beta_1 = 0.999999989, in float32 1, at batch size 16",
        ),
        (
            "learning_rate",
            {"min": 1e-46, "max": 1.0, "scale": "log", "unit": "linear_rule"},
            "1e-46 in linear_rule is learning_rate = 6.25e-48, in float32 0, at batch size 16, and must be above 0.",
        ),
        (
            "learning_rate",
            {"min": 1.0, "max": 1e50, "scale": "log", "unit": "linear_rule"},
            "1e+50 in linear_rule is learning_rate = 6.25e+48, in float32 inf, at batch size 16, and must be above 0"
            " and finite.",
        ),
        (
            "weight_decay",
            {"min": 1e-300, "max": 1e6, "scale": "log", "unit": "decay_examples"},
            "1e-300 in decay_examples is weight_decay = 1.6e+302, in float32 inf,"
            " at batch size 16 and learning_rate = 0.1, and must be at least 0 and finite.",
        ),
    ],
)
def test_what_a_unit_leads_out_of_bounds_is_refused_with_the_batch_size(make_digits, name, written, sentence):
    space = {"learning_rate": RATE, name: written}

    assert sentence in refusal(make_digits({"workload.optimizer": "adamw", "search_space": space}))


def test_a_batch_size_at_which_the_bounds_hold_passes(make_digits):
    """0.5^(B/2e8) is below 1 in single precision at batch size 64, and not at 1."""
    space = {"learning_rate": RATE, "momentum": {"min": 1e3, "max": 2e8, "scale": "log", "unit": "half_life_examples"}}
    sweep = make_digits({"search_space": space, "sweep.batch_sizes": [1, 64]})

    check_units(sweep.study(64))
    assert "at batch size 1, and must be" in refusal(sweep)


def test_a_decay_whose_learning_rates_are_too_small_is_refused_and_not_divided_by_zero(make_digits):
    decay = {"min": 1e-200, "max": 1e-190, "unit": "decay_examples"}
    space = {"learning_rate": {"values": [1e-200, 0.1]}, "weight_decay": decay}

    line = refusal(make_digits({"workload.optimizer": "adamw", "search_space": space}))
    assert "1e-200 in decay_examples is weight_decay = inf at batch size 16 and learning_rate = 1e-200" in line


def test_the_quadratic_model_is_computed_in_double_precision(make_nqm):
    """0.5^(4/1e9) is 1 in single precision."""
    ema = Range(min=1e3, max=1e9, scale="log", points=2, unit="half_life_examples").plain()
    sweep = make_nqm({"search_space.ema_decay": ema})

    for study in sweep.studies():
        check_units(study, OPTIONAL.values())


def test_an_average_of_the_quadratic_model_is_in_no_other_unit(make_nqm):
    sweep = make_nqm({"search_space.ema_decay": {"min": 0.1, "max": 0.2, "points": 2, "unit": "linear_rule"}})

    assert "is for learning_rate, not ema_decay: use half_life_examples" in refusal(sweep, OPTIONAL.values())
