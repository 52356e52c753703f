from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from batchlab.core.goal import Goal


@pytest.mark.parametrize(
    ("comparison", "below", "at", "above"),
    [
        ("<", True, False, False),
        ("<=", True, True, False),
        (">", False, False, True),
        (">=", False, True, True),
    ],
)
def test_the_comparison_is_taken_as_written(comparison, below, at, above):
    goal = Goal.read(f"val/classification_error {comparison} 0.03")

    assert [goal.is_met(value) for value in (0.029, 0.03, 0.031)] == [below, at, above]


@pytest.mark.parametrize("comparison", ["<", "<=", ">", ">="])
def test_nan_meets_no_goal(comparison):
    goal = Goal.read(f"val/risk {comparison} 1")

    assert not goal.is_met(float("nan"))
    assert goal.is_met(np.array([np.nan, 1.0])).tolist() == [False, "=" in comparison]


def test_infinity_is_compared_like_any_value():
    assert not Goal.read("val/risk < 1").is_met(float("inf"))
    assert Goal.read("val/risk > 1").is_met(float("inf"))


def test_an_array_is_compared_elementwise():
    met = Goal.read("val/risk <= 0.5").is_met(np.array([[0.4, 0.5], [0.6, np.inf]]))

    assert met.tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize(
    ("harder", "easier"),
    [
        ("val/a < 0.1", "val/a < 0.2"),
        ("val/a < 0.1", "val/a <= 0.1"),
        ("val/a <= 0.1", "val/a < 0.2"),
        ("val/a > 0.9", "val/a > 0.8"),
        ("val/a > 0.9", "val/a >= 0.9"),
        ("val/a < -2", "val/a < -1"),
    ],
)
def test_a_harder_goal_implies_the_easier_one(harder, easier):
    assert Goal.read(harder).is_harder_than(Goal.read(easier))
    assert not Goal.read(easier).is_harder_than(Goal.read(harder))


@pytest.mark.parametrize("other", ["val/a < 0.1", "val/b < 0.2", "test/a < 0.2", "val/a > 0.2"])
def test_goals_that_are_equal_or_of_another_kind_are_not_ordered(other):
    assert not Goal.read("val/a < 0.1").is_harder_than(Goal.read(other))


@pytest.mark.parametrize(
    "text",
    [
        "val/classification_error < 0.03",
        "val/classification_error <= 0.03",
        "test/average_precision > 0.3",
        "train/cross_entropy_error >= 1e-07",
        "val/cross_entropy_error < -1.5",
        "val/top_5_error < 0.25",
    ],
)
def test_a_goal_prints_as_it_was_written(text):
    assert str(Goal.read(text)) == text


@pytest.mark.parametrize("threshold", [0.1 + 0.2, 0.123456789, 1234567.0, 1e300, 5e-324])
def test_no_digit_of_the_threshold_is_lost_in_print(threshold):
    goal = Goal(metric="val/risk", comparison="<", threshold=threshold)

    assert Goal.read(str(goal)) == goal


def test_spaces_do_not_matter():
    assert Goal.read("  val/risk<=.05 ") == Goal(metric="val/risk", comparison="<=", threshold=0.05)


@pytest.mark.parametrize(
    "text", ["", "val/risk", "val/risk = 0.1", "risk < 0.1", "val/risk < ", "val/risk == 0.1", "0.1 > val/risk"]
)
def test_what_is_no_goal_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r'is no goal; write one like "val/classification_error < 0\.03"'):
        Goal.read(text)


def test_a_threshold_that_is_no_number_is_named():
    with pytest.raises(ValueError, match='the threshold "low" of goal "val/risk < low" is no number'):
        Goal.read("val/risk < low")


def test_a_percentage_is_told_how_it_is_written():
    with pytest.raises(ValueError, match=r'"2\.5%" of goal "val/risk < 2\.5%" is no number; write 0\.025'):
        Goal.read("val/risk < 2.5%")


@pytest.mark.parametrize("text", ["val/risk < nan", "val/risk < inf"])
def test_the_threshold_is_finite(text):
    with pytest.raises(ValidationError, match="finite number"):
        Goal.read(text)


def test_lower_is_better_for_less_than():
    assert [Goal.read(f"val/a {sign} 1").is_lower_better for sign in ("<", "<=", ">", ">=")] == [
        True,
        True,
        False,
        False,
    ]
