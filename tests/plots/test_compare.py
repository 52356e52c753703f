from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.core.goal import Goal
from batchlab.errors import InputError
from batchlab.plots import compare_data, compare_figure


@pytest.fixture
def summaries(make_summary):
    summary = replace(make_summary(), workload="mnist/fc_9/sgd")
    return {"one": summary, "two": replace(make_summary(unreached=(1, 2)), workload="mnist/fc_9/momentum")}


def test_the_curves_hold_the_numbers_of_the_summaries(summaries):
    data = compare_data(summaries)

    assert data.panel.title == "mnist/fc_9"
    assert [series.label for series in data.panel.series] == ["sgd", "momentum", "perfect scaling"]
    for series, summary in zip(data.panel.series[:2], summaries.values(), strict=True):
        assert [(point.x, point.y) for point in series.points] == [(row.batch_size, row.steps) for row in summary.rows]


def test_every_point_has_a_row_and_a_goal_not_reached_no_steps(summaries):
    rows = compare_data(summaries).table()

    assert len(rows) == sum(len(series.points) for series in compare_data(summaries).panel.series)
    missed = [row for row in rows if row["series"] == "momentum" and row["batch_size"] in (1, 2)]
    assert [row["steps"] for row in missed] == [None, None]


def test_sweeps_of_one_workload_go_by_their_names(summaries):
    data = compare_data({"first": summaries["one"], "second": summaries["one"]})

    assert [series.label for series in data.panel.series[:2]] == ["first", "second"]


def test_different_goals_are_refused(summaries):
    other = replace(summaries["two"], goal=Goal.read("val/classification_error < 0.5"))

    with pytest.raises(InputError, match=r"^The sweeps have different goals: .*Give one with --goal\.$"):
        compare_data({"one": summaries["one"], "two": other})


def test_no_curve_at_all_is_told(make_summary):
    sizes = [row.batch_size for row in make_summary().rows]

    with pytest.raises(InputError, match=r"^No sweep reached .*Give an easier goal"):
        compare_data({"one": make_summary(unreached=sizes)})


def test_the_picture_has_both_curves_on_logarithmic_axes(summaries):
    (ax,) = compare_figure(compare_data(summaries)).axes

    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["sgd", "momentum"]
    assert ax.get_ylabel() == f"Steps to {summaries['one'].goal}"
