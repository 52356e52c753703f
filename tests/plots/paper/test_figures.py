"""What holds for all eleven figures."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

from batchlab.errors import InputError
from batchlab.plots import svg_text
from batchlab.plots.draw import draw_sheet
from batchlab.plots.export import csv_text
from batchlab.plots.paper import PAPER_FIGURES, paper_data

NUMBERS = list(range(1, 12))
COLUMNS = [
    "figure",
    "panel",
    "title",
    "series",
    "kind",
    "workload",
    "quantity",
    "x",
    "y",
    "low",
    "high",
    "num_trials",
    "note",
]


def test_there_are_eleven_figures_with_the_papers_panels():
    assert NUMBERS == list(PAPER_FIGURES)
    assert [9, 3, 6, 3, 3, 2, 2, 9, 12, 4, 8] == [len(figure.panels) for figure in PAPER_FIGURES.values()]


@pytest.mark.parametrize("number", NUMBERS)
def test_every_svg_parses_and_is_nine_inches_wide(number, drawn):
    root = ET.fromstring(svg_text(drawn(number)))

    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["width"] == "648pt"


@pytest.mark.parametrize("number", NUMBERS)
def test_every_panel_has_points_and_no_note_where_the_lab_has_everything(number, paper):
    for panel in paper(number).panels:
        assert panel.notes == ()
        assert any(series.drawn for series in panel.series)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_lab_without_any_of_the_workloads_is_refused_with_what_it_takes(number):
    with pytest.raises(InputError) as refused:
        paper_data(number, lambda workload: None)

    assert str(refused.value).startswith(f"Figure {number} of the paper needs a workload that this lab does not have")
    assert " or ".join(PAPER_FIGURES[number].needs) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("number", [1, 3, 4, 5, 8])
def test_panels_without_a_curve_are_empty_and_say_why(number, lab):
    data = paper_data(number, lambda workload: lab[workload] if workload.startswith("mnist/") else None)
    figure = draw_sheet(data)

    for panel, ax in zip(data.panels, figure.axes, strict=True):
        if not panel.series:
            assert any(text.get_text().replace("\n", " ").endswith("is not in this lab") for text in ax.texts)
            assert list(ax.get_xticks()) == []
    assert any(panel.series for panel in data.panels)
    assert [row["note"] for row in data.table() if row["note"]] == [n for panel in data.panels for n in panel.notes]


@pytest.mark.parametrize("number", NUMBERS)
def test_the_table_holds_every_mark(number, paper):
    data = paper(number)
    rows = list(csv.DictReader(io.StringIO(csv_text(data))))
    marks = [
        (panel.name, series.label, float(point.x), point.y)
        for panel in data.panels
        for series in panel.series
        for point in series.points
    ]

    assert list(rows[0]) == COLUMNS
    assert marks == [(r["panel"], r["series"], float(r["x"]), float(r["y"]) if r["y"] else None) for r in rows]
    assert {str(number)} == {row["figure"] for row in rows}


@pytest.mark.parametrize("number", NUMBERS)
def test_needs_are_what_is_asked_for_one_after_another(number, lab):
    asked = []

    def results(workload):
        asked.append(workload)
        metrics = PAPER_FIGURES[number].needs[workload]
        assert all(metric in study.measurements.metrics for study in lab[workload] for metric in metrics)
        return lab[workload]

    paper_data(number, results)

    assert set(PAPER_FIGURES[number].needs) == set(asked)
    assert all(before != after for before, after in pairwise(asked))


def test_panels_of_one_workload_read_it_once(lab):
    asked = []
    for number in (2, 7, 9, 11):
        paper_data(number, lambda workload: asked.append(workload) or lab[workload])

    assert len(asked) == 3 + 1 + 1 + 4


def test_the_caption_tells_the_figure_and_how_many_trials(paper, drawn):
    title = drawn(1).get_suptitle().replace("\n", " ")

    assert title.startswith("Figure 1. Steps to result against batch size")
    assert title.endswith("n = 12 trials.")
    assert "trials." not in paper(9).caption


def test_an_unknown_figure_is_refused():
    with pytest.raises(InputError, match=r"The paper has no Figure 12\. Choose 1 to 11\."):
        paper_data(12, lambda workload: None)


def test_the_same_data_give_the_same_bytes(paper):
    assert svg_text(draw_sheet(paper(6))) == svg_text(draw_sheet(paper(6)))
