from __future__ import annotations

import pytest

from batchlab.plots import metaparameters_data, metaparameters_figure


def test_three_panels_with_their_values(make_summary):
    learning_rate, momentum, effective = metaparameters_data(make_summary(sizes=(1, 4, 16))).panels

    assert pytest.approx(learning_rate.values) == (0.01, 0.02, 0.04)
    assert pytest.approx(momentum.values) == (0.1, 0.1, 0.1)
    assert pytest.approx(effective.values) == (0.1, 0.2, 0.4)
    assert pytest.approx(learning_rate.guides.linear) == (0.01, 0.04, 0.16)
    assert pytest.approx(effective.guides.square_root) == (0.1, 0.2, 0.4)
    assert momentum.guides is None


def test_a_workload_without_momentum_has_one_panel(make_summary):
    data = metaparameters_data(make_summary(momentum=None))

    assert [panel.name for panel in data.panels] == ["learning_rate"]
    assert len(metaparameters_figure(data).axes) == 1


def test_nothing_reached_has_no_panel(make_summary):
    assert metaparameters_data(make_summary(sizes=(1, 2), unreached=(1, 2))).panels == ()


def test_points_at_the_edge_are_flagged_where_they_matter_and_drawn_hollow(make_summary):
    data = metaparameters_data(make_summary(sizes=(1, 4), at_boundary=("momentum",)))
    figure = metaparameters_figure(data)
    hollow = [[line for line in ax.lines if line.get_markerfacecolor() == "#ffffff"] for ax in figure.axes]

    assert [panel.is_at_boundary for panel in data.panels] == [(False, False), (True, True), (True, True)]
    assert [len(lines) for lines in hollow] == [0, 1, 1]
    assert "at the edge of its search range" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_axes_are_logarithmic_and_labelled(make_summary):
    figure = metaparameters_figure(metaparameters_data(make_summary()))

    assert [ax.get_ylabel() for ax in figure.axes] == [
        "Learning rate",
        "1 \u2212 momentum",
        "Learning rate / (1 \u2212 momentum)",
    ]
    assert {("log", "log")} == {(ax.get_xscale(), ax.get_yscale()) for ax in figure.axes}
    assert {"Batch size (examples per update)"} == {ax.get_xlabel() for ax in figure.axes}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "best trial",
        "linear rule",
        "square-root rule",
    ]


def test_the_table_has_a_row_for_each_panel_and_batch_size(make_summary):
    rows = metaparameters_data(make_summary(sizes=(1, 4))).table()

    assert len(rows) == 6
    assert {
        "quantity": "1 - momentum",
        "batch_size": 1,
        "value": pytest.approx(0.1),
        "is_at_boundary": False,
        "linear_rule": None,
        "square_root_rule": None,
    } == rows[2]
