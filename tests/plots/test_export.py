from __future__ import annotations

import csv
import xml.etree.ElementTree as ET

import pytest

from batchlab.plots import save, steps_curve_data, steps_curve_figure, svg_text


@pytest.fixture
def data(make_summary):
    return steps_curve_data(make_summary(sizes=(1, 4, 16, 64), unreached=(64,)))


def test_three_files_are_written_and_nothing_else(tmp_path, data):
    paths = save(steps_curve_figure(data), data, tmp_path / "figures" / "digits.v2")

    assert [path.name for path in paths] == ["digits.v2.svg", "digits.v2.png", "digits.v2.csv"]
    assert sorted(paths) == sorted((tmp_path / "figures").iterdir())


def test_the_png_has_two_hundred_dots_for_an_inch(tmp_path, data):
    png = save(steps_curve_figure(data), data, tmp_path / "steps")[1].read_bytes()
    width, height = int.from_bytes(png[16:20]), int.from_bytes(png[20:24])

    inches = steps_curve_figure(data).get_size_inches()

    assert 6.4 == inches[0]
    assert (round(200 * inches[0]), round(200 * inches[1])) == (width, height)


def test_the_csv_holds_the_numbers_and_leaves_the_unknown_empty(tmp_path, data):
    with save(steps_curve_figure(data), data, tmp_path / "steps")[2].open(newline="") as file:
        rows = list(csv.DictReader(file))

    assert [row["batch_size"] for row in rows] == ["1", "4", "16", "64"]
    assert str(data.points[0].steps) == rows[0]["steps"]
    assert rows[3]["steps"] == ""


def test_the_same_figure_gives_the_same_bytes(tmp_path, data):
    first = [path.read_bytes() for path in save(steps_curve_figure(data), data, tmp_path / "a")]
    second = [path.read_bytes() for path in save(steps_curve_figure(data), data, tmp_path / "b")]

    assert first == second


def test_the_svg_needs_no_font_and_has_no_date(data):
    svg = svg_text(steps_curve_figure(data))
    root = ET.fromstring(svg)

    assert not list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert "<dc:date>" not in svg
