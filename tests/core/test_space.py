from __future__ import annotations

from collections import Counter

import pytest
from pydantic import ValidationError

from batchlab.core.space import Range, SearchSpace, Values

LINEAR = Range(min=-1.0, max=3.0)
LOG = Range(min=1e-4, max=10.0, scale="log")
REVERSE_LOG = Range(min=0.0, max=0.999, scale="reverse_log")
WHOLE = Range(min=3, max=6, type="integer")


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        (LINEAR, [-1.0, 0.0, 1.0, 2.0, 3.0]),
        (Range(min=1e-4, max=1.0, scale="log"), [1e-4, 1e-3, 1e-2, 1e-1, 1.0]),
        (Range(min=0.0, max=0.9999, scale="reverse_log"), [0.9999, 0.999, 0.99, 0.9, 0.0]),
    ],
)
def test_quarters_of_the_unit_interval(dimension, values):
    assert [dimension.at(i / 4) for i in range(5)] == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("dimension", [LINEAR, LOG, REVERSE_LOG])
@pytest.mark.parametrize("unit", [0.0, 1e-9, 0.05, 0.5, 0.95, 1.0])
def test_unit_is_the_inverse_of_at(dimension, unit):
    assert dimension.share(dimension.at(unit)) == pytest.approx(unit, abs=1e-12)


@pytest.mark.parametrize("value", [3, 4, 5, 6])
def test_at_is_the_inverse_of_unit_for_whole_numbers(value):
    assert WHOLE.at(WHOLE.share(value)) == value


@pytest.mark.parametrize("dimension", [LINEAR, LOG, REVERSE_LOG, WHOLE, Range(min=0.1, max=0.3, scale="log")])
def test_no_value_is_outside_the_range(dimension):
    values = [dimension.at(i / 1000) for i in range(1001)]

    assert dimension.min <= min(values)
    assert max(values) <= dimension.max
    assert sorted([values[0], values[-1]]) == pytest.approx([dimension.min, dimension.max])


def test_whole_numbers_are_equally_likely_and_the_ends_too():
    counts = Counter(WHOLE.at((i + 0.5) / 4000) for i in range(4000))

    assert counts == {3: 1000, 4: 1000, 5: 1000, 6: 1000}


def test_whole_numbers_on_a_log_scale_keep_both_ends():
    dimension = Range(min=1, max=100, scale="log", type="integer")
    values = [dimension.at(i / 1000) for i in range(1001)]

    assert (values[0], values[-1]) == (1, 100)
    assert all(float(value).is_integer() for value in values)
    assert values == sorted(values)


@pytest.mark.parametrize("scale", ["linear", "log", "reverse_log"])
def test_a_range_of_one_value_gives_that_value(scale):
    dimension = Range(min=0.3, max=0.3, scale=scale)

    assert [dimension.at(unit) for unit in (0.0, 0.4, 1.0)] == [0.3, 0.3, 0.3]
    assert dimension.share(0.3) == 0.5


@pytest.mark.parametrize("dimension", [LINEAR, LOG, REVERSE_LOG])
def test_the_ends_are_at_zero_and_one_unit(dimension):
    assert sorted([dimension.share(dimension.min), dimension.share(dimension.max)]) == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"min": 2, "max": 1}, "min = 2 is greater than max = 1; exchange them"),
        ({"min": 0, "max": 1, "scale": "log"}, "min = 0 cannot be on a log scale"),
        ({"min": -1, "max": 1, "scale": "log"}, "min = -1 cannot be on a log scale"),
        ({"min": 0, "max": 1, "scale": "reverse_log"}, "max = 1 cannot be on a reverse_log scale"),
        ({"min": 0.5, "max": 3, "type": "integer"}, "an integer range needs whole ends, not 0.5 and 3"),
        ({"min": 0, "max": 0, "scale": "reverse_log", "type": "integer"}, "cannot be on a reverse_log scale"),
        ({"min": 0, "max": float("inf")}, "finite number"),
        ({"min": float("nan"), "max": 1}, "finite number"),
        ({"min": 0, "max": 1, "points": 0}, "greater than or equal to 1"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(fields, message):
    with pytest.raises(ValidationError, match=message):
        Range(**fields)


def test_a_range_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        LINEAR.min = 0.0


@pytest.mark.parametrize(
    ("dimension", "grid"),
    [
        (Range(min=0.01, max=1.0, scale="log", points=3), [0.01, 0.1, 1.0]),
        (Range(min=0.0, max=1.0, points=5), [0.0, 0.25, 0.5, 0.75, 1.0]),
        (Range(min=0.0, max=0.99, scale="reverse_log", points=3), [0.99, 0.9, 0.0]),
        (Range(min=0.0, max=1.0, points=1), [0.5]),
        (Range(min=1, max=3, type="integer", points=3), [1, 2, 3]),
        (Range(min=0, max=10, type="integer", points=3), [0, 5, 10]),
        (Range(min=1, max=1000, scale="log", type="integer", points=4), [1, 10, 100, 1000]),
        (Values(values=(0.3, 0.1)), [0.3, 0.1]),
    ],
)
def test_a_grid_holds_both_ends(dimension, grid):
    assert dimension.grid() == pytest.approx(grid, abs=1e-12)


def test_a_grid_needs_points():
    with pytest.raises(ValueError, match="the grid sampler needs `points`"):
        LINEAR.grid()


def test_listed_values_share_the_unit_interval():
    dimension = Values(values=(0.5, 0.1, 0.1, 7.0))

    assert [dimension.at(unit) for unit in (0.0, 0.2499, 0.25, 0.5, 0.75, 1.0)] == [0.5, 0.5, 0.1, 0.1, 7.0, 7.0]


def test_a_space_keeps_the_order_of_its_spec():
    space = SearchSpace.model_validate({"momentum": {"values": [0.9]}, "a": {"min": 0, "max": 4}})

    assert space.names == ["momentum", "a"]
    assert space.point([0.7, 0.25]) == {"momentum": 0.9, "a": 1.0}
    assert space["a"] == Range(min=0, max=4)


def test_a_point_needs_one_unit_for_each_dimension():
    space = SearchSpace.model_validate({"a": {"min": 0, "max": 4}})

    with pytest.raises(ValueError, match="longer"):
        space.point([0.1, 0.2])


def test_half_lives_far_below_the_batch_size_lie_at_the_end_of_their_range():
    """At 262,144 examples an update, a half-life of 100 leaves nothing: momentum is 0, whose half-life is none."""
    half_life = Range(min=100, max=1e6, scale="log", unit="half_life_examples").read_at(262_144)

    assert half_life.ends[0] == 0.0
    assert half_life.share(0.0) == 0.0
    assert half_life.share(half_life.at(0.9)) == pytest.approx(0.9)
