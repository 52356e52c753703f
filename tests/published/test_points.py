from __future__ import annotations

import csv
from importlib.resources import files

from batchlab.core.goal import Goal
from batchlab.plots.paper.lines import MAIN_LINES
from batchlab.published.points import published_steps


def test_all_points_of_figure_1_are_bundled():
    found = [published_steps(line.workload, line.goal) for line in MAIN_LINES.values()]

    assert [10, 9, 13, 11, 10, 12, 6, 11, 7] == [len(steps) for steps in found]
    assert found[0][1] == 66910
    assert found[-1][32768] == 197600


def test_they_are_the_digitised_ones(shared_data):
    lines = files("batchlab.published").joinpath("figure_1.csv").read_text().splitlines()
    source = (shared_data / "batch_science" / "figure1_steps_to_result_digitised.csv").read_text().splitlines()

    assert source == [line for line in lines if not line.startswith("#")]
    assert len(list(csv.DictReader(source))) == 89


def test_the_file_tells_where_its_numbers_come_from():
    comment = files("batchlab.published").joinpath("figure_1.csv").read_text().splitlines()[:2]

    assert "read off the published picture" in comment[0]
    assert "CC BY 4.0" in comment[1]


def test_another_goal_or_workload_has_no_published_points():
    line = MAIN_LINES["Simple CNN on MNIST"]

    assert published_steps(line.workload, Goal.read("val/classification_error < 0.02")) == {}
    assert published_steps("digits/fc_128/sgd", line.goal) == {}
