"""The points of a study: inside the space, reproducible, well spread, and the grid in order."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from scipy.stats import qmc

from batchlab.core.seeds import Stream, generator
from batchlab.core.study import Study
from batchlab.core.sweep import Sweep
from batchlab.errors import SpecError
from batchlab.search.samplers import draw_points

UNIT = {"min": 0.0, "max": 1.0}
QUASIRANDOM = ["halton", "sobol"]
SEEDED = ["halton", "sobol", "random"]


BATCH_SIZES = [2**exponent for exponent in range(12)]
VERSIONS = [1, 2, 3]


def make_study(
    search_space, sampler="halton", attempts=64, trials=1, seed=0, batch_size=16, sampler_version=3
) -> Study:
    data = {
        "name": "test",
        "seed": seed,
        "workload": {"dataset": "digits", "model": "fc_128", "optimizer": "momentum"},
        "sweep": {
            "batch_sizes": [batch_size],
            "trials": trials,
            "max_attempts": attempts,
            "max_steps": 100,
            "goal": "val/classification_error < 0.03",
            "sampler": sampler,
            "sampler_version": sampler_version,
        },
        "search_space": search_space,
    }
    return Sweep.parse(data, "test").study(batch_size)


def column(points, name):
    return np.array([point[name] for point in points])


def test_importing_the_module_does_not_import_scipy():
    code = "import sys, batchlab.search.samplers; sys.exit('scipy' in sys.modules)"

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    assert subprocess.run([sys.executable, "-c", code], check=False, env=environment).returncode == 0


@pytest.mark.parametrize("sampler", SEEDED)
def test_points_are_inside_the_box(sampler):
    space = {
        "learning_rate": {"min": 1e-3, "max": 10.0, "scale": "log"},
        "momentum": {"min": 0.0, "max": 0.999, "scale": "reverse_log"},
        "learning_rate_decay_steps": {"min": 100, "max": 900, "type": "integer"},
    }
    points = draw_points(make_study(space, sampler, attempts=200))

    assert len(points) == 200
    assert all(list(point) == list(space) for point in points)
    for name, dimension in space.items():
        values = column(points, name)
        assert np.all((dimension["min"] <= values) & (values <= dimension["max"]))


@pytest.mark.parametrize("sampler", SEEDED)
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("attempts", [1, 2, 3, 8, 9, 16, 17, 50, 64, 100])
def test_the_first_points_do_not_depend_on_the_number_of_attempts(sampler, version, attempts):
    space = {"a": UNIT, "b": UNIT, "c": UNIT}
    many = draw_points(make_study(space, sampler, attempts=128, sampler_version=version))

    assert draw_points(make_study(space, sampler, attempts=attempts, sampler_version=version)) == many[:attempts]


def correlations(sampler: str, version: int, num_seeds: int) -> np.ndarray:
    """Return how the first metaparameter of equal trials goes together: all pairs of 12 batch sizes, 32 trials."""
    pairs = []
    for seed in range(num_seeds):
        settings = {"attempts": 32, "seed": seed, "sampler_version": version}
        studies = [make_study({"a": UNIT, "b": UNIT}, sampler, batch_size=size, **settings) for size in BATCH_SIZES]
        matrix = np.corrcoef([column(draw_points(study), "a") for study in studies])
        pairs.append(matrix[np.triu_indices(len(BATCH_SIZES), 1)])
    return np.concatenate(pairs)


@pytest.mark.parametrize("sampler", SEEDED)
def test_equal_trials_of_two_batch_sizes_have_nothing_in_common(sampler):
    """Of independent pairs at n = 32, 95 % have |r| below 0.35: the bound of a test at 5 %."""
    r = correlations(sampler, 2, num_seeds=12)

    assert np.mean(np.abs(r) < 0.35) > 0.92
    assert np.std(r) == pytest.approx(1 / np.sqrt(31), abs=0.02)


@pytest.mark.parametrize("sampler", QUASIRANDOM)
def test_points_of_the_first_version_went_together(sampler):
    """Studies that were begun with it go on with it, so it stays; 0.77 is from the simulation that found it."""
    r = correlations(sampler, 1, num_seeds=6)

    assert np.mean(np.abs(r) < 0.35) < 0.1
    assert np.std(r) == pytest.approx(0.77, abs=0.05)


def test_the_first_version_draws_the_points_it_always_drew():
    points = draw_points(make_study({"a": UNIT, "b": UNIT}, attempts=2, sampler_version=1))

    expected = qmc.Halton(2, scramble=True, rng=generator(0, Stream.DESIGN, 16)).random(2)
    assert [list(point.values()) for point in points] == expected.tolist()


def discrepancy(sampler: str, version: int, num_points: int) -> float:
    """Return the mean over 20 seeds of the root of the centred discrepancy in two dimensions."""
    found = []
    for seed in range(20):
        study = make_study({"a": UNIT, "b": UNIT}, sampler, num_points, seed=seed, sampler_version=version)
        found.append(qmc.discrepancy([list(point.values()) for point in draw_points(study)]) ** 0.5)
    return float(np.mean(found))


@pytest.mark.parametrize("sampler", QUASIRANDOM)
@pytest.mark.parametrize("num_points", [8, 16, 32, 64])
def test_whole_blocks_are_spread_about_as_well_as_the_plain_sequence(sampler, num_points):
    plain, independent, random = (
        discrepancy(*design, num_points) for design in ((sampler, 1), (sampler, 2), ("random", 2))
    )

    assert independent < 1.5 * plain
    assert independent < 0.65 * random


@pytest.mark.parametrize("sampler", QUASIRANDOM)
@pytest.mark.parametrize("num_points", [12, 24, 48])
def test_half_a_block_is_still_spread_better_than_at_random(sampler, num_points):
    assert discrepancy(sampler, 2, num_points) < 0.75 * discrepancy("random", 2, num_points)


@pytest.mark.parametrize("sampler", SEEDED)
def test_points_depend_on_seed_and_batch_size_alone(sampler):
    space = {"a": UNIT}
    points = draw_points(make_study(space, sampler))

    assert points == draw_points(make_study(space, sampler))
    assert points != draw_points(make_study(space, sampler, seed=1))
    assert points != draw_points(make_study(space, sampler, batch_size=32))


@pytest.mark.parametrize("sampler", QUASIRANDOM)
@pytest.mark.parametrize("seed", range(5))
def test_quasirandom_points_are_spread_better_than_random_ones(sampler, seed):
    space = {"a": UNIT, "b": UNIT}
    units = {
        name: [list(point.values()) for point in draw_points(make_study(space, name, seed=seed))]
        for name in (sampler, "random")
    }

    assert qmc.discrepancy(units[sampler]) < 0.5 * qmc.discrepancy(units["random"])


@pytest.mark.parametrize("sampler", SEEDED)
@pytest.mark.parametrize(
    ("dimension", "quartiles"),
    [
        ({"min": 1e-4, "max": 1.0, "scale": "log"}, [1e-3, 1e-2, 1e-1]),
        ({"min": 0.0, "max": 0.9999, "scale": "reverse_log"}, [0.9, 0.99, 0.999]),
        ({"min": -1.0, "max": 1.0}, [-0.5, 0.0, 0.5]),
    ],
)
def test_the_scale_decides_where_the_points_lie(sampler, dimension, quartiles):
    values = column(draw_points(make_study({"x": dimension}, sampler, attempts=1024)), "x")

    assert [np.mean(values < quartile) for quartile in quartiles] == pytest.approx([0.25, 0.5, 0.75], abs=0.05)


@pytest.mark.parametrize("sampler", SEEDED)
@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        ({"min": 3, "max": 6, "type": "integer"}, {3.0, 4.0, 5.0, 6.0}),
        ({"values": [0.5, 0.1, 7.0, 8.0]}, {0.1, 0.5, 7.0, 8.0}),
    ],
)
def test_whole_numbers_and_listed_values_are_equally_likely(sampler, dimension, values):
    counts = Counter(column(draw_points(make_study({"x": dimension}, sampler, attempts=1024)), "x").tolist())

    assert set(counts) == values
    assert min(counts.values()) > 0.8 * 256


@pytest.mark.parametrize("sampler", [*SEEDED, "grid"])
def test_where_nothing_is_searched_the_one_point_is_repeated(sampler):
    assert draw_points(make_study({}, sampler, attempts=3)) == [{}, {}, {}]


GRID = {"b": {"values": [3.0, 1.0]}, "a": {"min": 0.01, "max": 1.0, "scale": "log", "points": 3}}


def test_a_grid_is_the_product_of_its_dimensions():
    points = draw_points(make_study(GRID, "grid", attempts=4, trials=4))

    assert [list(point) for point in points] == [["b", "a"]] * 6
    expected = [(1.0, 0.01), (1.0, 0.1), (1.0, 1.0), (3.0, 0.01), (3.0, 0.1), (3.0, 1.0)]
    assert sorted((point["b"], round(point["a"], 12)) for point in points) == expected


def test_few_trials_of_a_grid_are_spread_over_it():
    """In the order of their values 25 of 100 points would reach a quarter of the first dimension."""
    space = {name: {"min": 0.0, "max": 1.0, "points": 10} for name in ("a", "b")}
    for batch_size in BATCH_SIZES:
        points = draw_points(make_study(space, "grid", trials=25, batch_size=batch_size))[:25]

        assert all(np.ptp(column(points, name)) >= 0.8 for name in space)
        assert all(len(set(column(points, name))) >= 6 for name in space)


def test_the_order_of_a_grid_is_that_of_its_study():
    orders = {
        tuple(column(draw_points(make_study({"a": {"min": 0.0, "max": 1.0, "points": 20}}, "grid", **study)), "a"))
        for study in ({}, {"seed": 3}, {"batch_size": 2})
    }

    assert len(orders) == 3
    assert all(sorted(order) == pytest.approx(np.linspace(0, 1, 20)) for order in orders)


@pytest.mark.parametrize("version", [1, 2])
def test_a_grid_of_an_older_version_is_in_the_order_of_its_values(version):
    points = draw_points(make_study(GRID, "grid", attempts=4, trials=4, sampler_version=version))

    assert column(points, "b").tolist() == [3.0, 3.0, 3.0, 1.0, 1.0, 1.0]
    assert column(points, "a") == pytest.approx([0.01, 0.1, 1.0] * 2)


@pytest.mark.parametrize(("version", "values"), [(3, [1, 10, 100, 1000]), (2, [1, 6, 79, 1000])])
def test_whole_numbers_of_a_grid_are_evenly_spaced(version, values):
    space = {"steps": {"min": 1, "max": 1000, "scale": "log", "type": "integer", "points": 4}}
    points = draw_points(make_study(space, "grid", sampler_version=version))

    assert sorted(column(points, "steps").tolist()) == values


def test_a_grid_of_fewer_points_than_trials_is_refused_with_both_numbers():
    space = {"a": {"values": [1.0, 2.0]}, "b": {"min": 0.0, "max": 1.0, "points": 3}}

    assert len(draw_points(make_study(space, "grid", trials=6))) == 6
    with pytest.raises(SpecError, match=r"The grid has 6 points, but sweep\.trials = 7\."):
        draw_points(make_study(space, "grid", trials=7))


def test_a_grid_over_a_range_without_points_names_the_range():
    with pytest.raises(SpecError, match=r"`search_space\.a`: the grid sampler needs `points`"):
        draw_points(make_study({"a": UNIT}, "grid"))


def test_an_unknown_sampler_is_refused():
    study = make_study({"a": UNIT}).model_copy(update={"sampler": "sobl"})

    with pytest.raises(SpecError, match=r'Unknown sampler "sobl"\. Did you mean "sobol"\?'):
        draw_points(study)
