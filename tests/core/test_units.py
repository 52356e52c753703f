"""One range for all batch sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from batchlab.analysis.answers.boundary import at_boundary
from batchlab.core.space import Range
from batchlab.core.sweep import Sweep
from batchlab.core.trial import Trial
from batchlab.core.units import CONVERSIONS, convert_decay, from_native, to_native
from batchlab.errors import SpecError
from batchlab.search.samplers import draw_points

HALF_LIFE = {"min": 1e3, "max": 1e6, "scale": "log", "unit": "half_life_examples"}


def sweep_of(momentum=HALF_LIFE, batch_sizes=(8, 512)):
    return Sweep.parse(
        {
            "name": "small",
            "workload": {"dataset": "digits", "model": "fc_128", "optimizer": "momentum"},
            "sweep": {
                "batch_sizes": list(batch_sizes),
                "trials": 16,
                "max_steps": 9,
                "goal": "val/classification_error < 0.1",
            },
            "search_space": {"learning_rate": {"min": 0.1, "max": 1.0, "unit": "linear_rule"}, "momentum": momentum},
        },
        "spec.toml",
    )


@pytest.mark.parametrize("unit", CONVERSIONS)
@pytest.mark.parametrize("batch_size", [1, 256, 8192])
def test_a_unit_goes_both_ways(unit, batch_size):
    for value in (0.5, 20_000.0, 1e6) if unit == "half_life_examples" and batch_size < 256 else (20_000.0, 1e6):
        assert from_native(to_native(value, unit, batch_size), unit, batch_size) == pytest.approx(value, rel=1e-6)


def test_half_of_a_velocity_is_left_after_the_half_life():
    """However many updates these examples are."""
    for batch_size in (1, 10, 100):
        momentum = to_native(1000, "half_life_examples", batch_size)

        assert momentum ** (1000 / batch_size) == pytest.approx(0.5)


def test_a_study_draws_the_metaparameter_itself():
    for study in sweep_of().studies():
        for point in draw_points(study):
            half_life = from_native(point["momentum"], "half_life_examples", study.batch_size)
            assert 1e3 <= half_life * (1 + 1e-9) and half_life <= 1e6 * (1 + 1e-6)
            assert 0.1 <= point["learning_rate"] * 256 / study.batch_size <= 1.0


def test_a_share_of_the_range_is_the_same_at_all_batch_sizes():
    spaces = [study.search_space["momentum"] for study in sweep_of().studies()]

    for share in (0.0, 0.3, 1.0):
        assert [space.share(space.at(share)) for space in spaces] == pytest.approx([share, share], abs=1e-6)


def test_the_ends_are_those_of_the_metaparameter():
    momentum = sweep_of().study(512).search_space["momentum"]

    assert momentum.ends == pytest.approx((0.5 ** (512 / 1e3), 0.5 ** (512 / 1e6)))


DECAY = {"min": 1e4, "max": 1e6, "scale": "log", "unit": "decay_examples"}


def decaying(**changes):
    data = sweep_of(DECAY).plain()
    data["workload"] = {"dataset": "digits", "model": "fc_128", "optimizer": {"name": "adamw"}}
    data["search_space"]["weight_decay"] = data["search_space"].pop("momentum")
    data["sweep"] |= changes
    return data


@pytest.mark.parametrize("sampler", ["halton", "grid"])
def test_a_weight_is_left_to_one_part_in_e_after_the_time_scale_of_decay(sampler):
    data = decaying(sampler=sampler)
    for dimension in data["search_space"].values():
        dimension["points"] = 4

    for study in Sweep.parse(data, "spec.toml").studies():
        scales = [study.batch_size / (p["learning_rate"] * p["weight_decay"]) for p in draw_points(study)]
        assert all(1e4 * (1 - 1e-9) <= scale <= 1e6 * (1 + 1e-9) for scale in scales)
        assert max(scales) / min(scales) > 10
    point = draw_points(study)[0]
    left = (1 - point["learning_rate"] * point["weight_decay"]) ** (
        1 / (point["learning_rate"] * point["weight_decay"])
    )
    assert left == pytest.approx(np.exp(-1), rel=0.2)


def test_a_time_scale_of_decay_needs_a_learning_rate_beside_it():
    data = decaying()
    data["search_space"].pop("learning_rate")

    with pytest.raises(SpecError, match=r"`search_space.weight_decay.unit` = decay_examples needs a learning_rate"):
        Sweep.parse(data, "spec.toml")


def test_the_edge_of_a_time_scale_is_that_of_the_scale():
    """A decay in the middle of all decays lies at the edge, where its scale is the longest that was tried."""
    study = Sweep.parse(decaying(), "spec.toml").study(8)
    trials = [
        Trial(
            trial_id=i,
            status="COMPLETE",
            metaparameters={"learning_rate": rate, "weight_decay": 8 / (rate * scale)},
            last_step=1,
        )
        for i, (rate, scale) in enumerate([(0.004, 2e4), (0.004, 9.9e5), (0.03, 5e4), (0.0125, 3e5), (0.03, 1e5)])
    ]

    edges = [at_boundary(trial, study.search_space, trials) for trial in trials]
    assert ["weight_decay" in edge for edge in edges] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("dimension", "sentence"),
    [
        ({**HALF_LIFE, "unit": "half_life"}, "half_life_examples"),
        ({**HALF_LIFE, "min": 0.0, "scale": "linear"}, "needs a min above 0"),
        ({**HALF_LIFE, "type": "integer"}, "needs a min above 0 and no type"),
        ({**HALF_LIFE, "batch_size": 64}, "is that of each study; leave it out"),
    ],
)
def test_a_unit_that_makes_no_sense_is_refused(dimension, sentence):
    with pytest.raises(SpecError) as caught:
        sweep_of(dimension)

    assert sentence in str(caught.value)


def test_a_stored_sweep_whose_unit_makes_no_sense_is_still_read():
    """What is about to be run is refused elsewhere: `optim.unit_check`."""
    momentum = {"min": 0.1, "max": 0.19, "unit": "decay_examples"}

    assert sweep_of(momentum).plain()["search_space"]["momentum"]["unit"] == "decay_examples"


def test_a_decay_of_next_to_no_learning_rate_is_beyond_all_numbers():
    assert convert_decay(1e-200, 1e-200, batch_size=8) == math.inf


def test_a_range_without_a_unit_stays_as_it_is():
    plain = Range(min=0.1, max=1.0)

    assert plain.read_at(64) is plain
    assert plain.ends == (0.1, 1.0)
