from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.core.goal import Goal
from batchlab.errors import InputError
from batchlab.plots import compare_data, compare_figure


@pytest.fixture
def summaries(make_summary):
    summary = replace(make_summary(seeds=6), workload="mnist/fc_9/sgd")
    return {"one": summary, "two": replace(make_summary(unreached=(1, 2), seeds=6), workload="mnist/fc_9/momentum")}


def test_the_curves_hold_the_headline_of_the_summaries(summaries):
    data = compare_data(summaries)
    curves = data.panel.of_kind("measured")

    assert ("mnist/fc_9", "confirmed") == (data.panel.title, data.headline)
    assert ["sgd", "momentum"] == [series.label for series in curves]
    for series, summary in zip(curves, summaries.values(), strict=True):
        assert [(row.batch_size, row.confirmed.steps if row.confirmed else None) for row in summary.rows] == [
            (point.x, point.y) for point in series.points
        ]


def test_all_curves_show_the_best_answer_that_all_can_give(summaries, make_summary):
    unconfirmed = replace(make_summary(), workload="mnist/fc_9/momentum")
    few = replace(make_summary(num_trials=4), workload="mnist/fc_9/momentum")

    assert "best_of" == compare_data({**summaries, "two": unconfirmed}).headline
    assert "minimum" == compare_data({**summaries, "two": few}).headline


def test_the_caption_tells_the_answer_and_its_numbers(summaries):
    figure = compare_figure(compare_data(summaries))

    assert "Each point: confirmed median of 6 seeds, of the best points of 32 trials." == figure.get_suptitle()


def test_a_sweep_that_reached_the_goal_nowhere_is_named(summaries, make_summary):
    never = replace(make_summary(sizes=(1, 2), unreached=(1, 2), num_trials=4), workload="mnist/fc_9/nesterov_momentum")

    assert compare_data({**summaries, "three": never}).caption.endswith(
        "of the best points of 32 trials. Nowhere reached by nesterov_momentum."
    )


def test_every_point_has_a_row_and_a_goal_not_reached_no_steps(summaries):
    rows = compare_data(summaries).table()
    missed = [row for row in rows if row["series"] == "momentum" and row["batch_size"] in (1, 2)]
    trained = [row for row in rows if row["kind"] == "not reached"]

    assert [None, None] == [row["steps"] for row in missed]
    assert [(1, 20_000), (2, 20_000)] == [(row["batch_size"], row["steps"]) for row in trained]


def test_sweeps_of_one_workload_go_by_their_names(summaries):
    data = compare_data({"first": summaries["one"], "second": summaries["one"]})

    assert ["first", "second"] == [series.label for series in data.panel.series[:2]]


def test_different_goals_are_refused(summaries):
    other = replace(summaries["two"], goal=Goal.read("val/classification_error < 0.5"))

    with pytest.raises(InputError, match=r"^The sweeps have different goals: .*or choose among the sweeps\.$"):
        compare_data({"one": summaries["one"], "two": other})


def test_no_curve_at_all_is_told(make_summary):
    sizes = [row.batch_size for row in make_summary().rows]

    with pytest.raises(InputError, match=r"^No sweep reached .*Give an easier goal"):
        compare_data({"one": make_summary(unreached=sizes)})


def test_published_points_lie_beside_the_curve_they_belong_to(make_summary):
    """Figure 3 of the paper has 0.091 of the steps at batch size 32 for this network."""
    summary = make_summary(workload="mnist/fc_256_256_256/sgd", sizes=(2, 32))
    (rings,) = compare_data({"one": summary}, published=True).panel.of_kind("published")
    at_two = summary.rows[0].best_of.steps

    assert pytest.approx(at_two * 0.091 / 1.001) == next(point.y for point in rings.points if point.x == 32)
    assert [] == compare_data({"one": summary}).panel.of_kind("published")


def test_the_picture_has_both_curves_on_logarithmic_axes(summaries):
    figure = compare_figure(compare_data(summaries))
    (ax,) = figure.axes

    assert ("log", "log") == (ax.get_xscale(), ax.get_yscale())
    assert ["sgd", "momentum"] == [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"Steps to {summaries['one'].goal}" == ax.get_ylabel()
    assert ["95 % interval", "not reached: takes more steps than this", "perfect scaling"] == [
        text.get_text() for text in figure.legends[0].get_texts()
    ]
