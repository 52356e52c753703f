from __future__ import annotations

import csv
from importlib.resources import files

import pytest

from batchlab.core.goal import Goal
from batchlab.plots.paper.lines import MAIN_LINES
from batchlab.published.points import published_curve, published_curves, published_steps

FC = "mnist/fc_256_256_256/sgd"
FC_GOAL = Goal.read("val/classification_error < 0.03")


def table(name: str) -> list[str]:
    """Return the lines of a bundled file."""
    return files("batchlab.published").joinpath(name).read_text().splitlines()


def test_all_points_of_figure_1_are_bundled():
    found = [published_curve(line.workload, line.goal) for line in MAIN_LINES.values()]

    assert [10, 9, 13, 11, 10, 12, 6, 11, 7] == [len(curve.points) for curve in found]
    assert 66910 == found[0].steps[1]
    assert 197600 == found[-1].steps[32768]
    assert {("Figure 1", None, "high")} == {(curve.source, curve.relative_to, curve.confidence) for curve in found}


def test_figure_1_holds_the_digitised_points(shared_data):
    source = (shared_data / "batch_science" / "figure1_steps_to_result_digitised.csv").read_text().splitlines()

    assert source == [line for line in table("figure_1.csv") if not line.startswith("#")]
    assert 89 == len(list(csv.DictReader(source)))


def test_figure_3_holds_the_digitised_points(shared_data):
    source = shared_data / "batch_science" / "figure3_fully_connected_digitised.csv"
    rows = list(csv.DictReader(source.read_text().splitlines()))
    expected = [
        (row["workload"], f"steps/steps(B={curve.relative_to})", point.batch_size, point.steps, point.confidence)
        for curve in published_curves()
        if curve.source == "Figure 3"
        for point, row in zip(curve.points, [row for row in rows if row["workload"] == curve.workload], strict=True)
    ]

    assert expected == [
        (row["workload"], row["quantity"], int(row["batch_size"]), float(row["value"]), row["confidence"])
        for row in rows
    ]
    assert {"goal=0.03"} == {row["condition"] for row in rows}


@pytest.mark.parametrize("name", ["figure_1.csv", "figure_3_fully_connected.csv"])
def test_the_files_tell_where_their_numbers_come_from(name):
    comment = " ".join(line for line in table(name) if line.startswith("#"))

    assert "published picture" in comment.replace("the # published", "the published")
    assert "Shallue et al." in comment
    assert "CC BY 4.0" in comment


def test_a_relative_curve_says_so():
    curve = published_curve(FC, FC_GOAL)

    assert (2, "Figure 3", "low") == (curve.relative_to, curve.source, curve.confidence)
    assert 16 == len(curve.points)
    assert 0.091 == curve.steps[32]


def test_another_goal_or_workload_has_no_published_curve():
    line = MAIN_LINES["Simple CNN on MNIST"]

    assert published_curve(line.workload, Goal.read("val/classification_error < 0.02")) is None
    assert published_curve("digits/fc_128/sgd", line.goal) is None


def test_steps_are_those_that_were_published_as_such():
    line = MAIN_LINES["Simple CNN on MNIST"]

    assert 66910 == published_steps(line.workload, line.goal)[1]
    assert {} == published_steps(FC, FC_GOAL)
    assert {} == published_steps("digits/fc_128/sgd", line.goal)
