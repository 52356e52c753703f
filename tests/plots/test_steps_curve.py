from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.plots import steps_curve_data, steps_curve_figure

CNN = "mnist/simple_cnn_base/nesterov_momentum"


def of_kind(data, kind):
    """Return the only series of a kind, or None."""
    found = data.panel.of_kind(kind)
    assert len(found) < 2
    return found[0] if found else None


def marks(series):
    """Return the places of a series' points."""
    return [(point.x, point.y) for point in series.points]


def words(figure):
    """Return the words of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def cnn_summary(make_summary, **options):
    """Return a summary that Figure 1 of the paper has points for."""
    return replace(make_summary(workload=CNN, **options), goal=Goal.read("val/classification_error < 0.01"))


def test_the_confirmed_median_stands_first_with_its_interval(make_summary):
    summary = make_summary(seeds=6)
    data = steps_curve_data(summary)
    measured = of_kind(data, "measured")

    assert "confirmed median of 6 seeds" == measured.label
    assert [(row.batch_size, row.confirmed.steps) for row in summary.rows] == marks(measured)
    assert [(row.confirmed.interval.low, row.confirmed.interval.high) for row in summary.rows] == [
        (point.low, point.high) for point in measured.points
    ]


def test_the_minimum_is_a_small_mark_beside_another_headline(make_summary):
    summary = make_summary(seeds=6)
    minima = of_kind(steps_curve_data(summary), "minimum")

    assert "minimum of 32 trials" == minima.label
    assert [(row.batch_size, row.steps) for row in summary.rows] == marks(minima)


def test_without_a_confirmation_best_of_m_stands_first(make_summary):
    summary = make_summary()
    measured = of_kind(steps_curve_data(summary), "measured")

    assert "best of 6 (median), from 32 trials" == measured.label
    assert [(row.batch_size, row.best_of.steps) for row in summary.rows] == marks(measured)


def test_the_published_archive_shows_minima_without_an_interval(make_summary):
    summary = make_summary(protocol=Protocol(kind="imported"))
    data = steps_curve_data(summary)
    measured = of_kind(data, "measured")

    assert "minimum of 32 trials" == measured.label
    assert {(None, None)} == {(point.low, point.high) for point in measured.points}
    assert of_kind(data, "minimum") is None
    assert "95 % interval" not in words(steps_curve_figure(data))


def test_perfect_scaling_starts_at_the_smallest_reached_batch_size(make_summary):
    data = steps_curve_data(make_summary(seeds=6, unreached=(1, 2)))
    first = of_kind(data, "measured").points[2]
    guide = of_kind(data, "perfect scaling")

    assert (4, first.y) == marks(guide)[0]
    assert pytest.approx(first.y * 4 / 2048) == guide.points[-1].y
    assert [None, None, pytest.approx(first.y)] == [point.perfect_steps for point in data.points[:3]]


def test_the_fitted_curve_spans_the_batch_sizes_that_were_fitted(make_summary):
    summary = make_summary(unreached=(1,))
    fitted = of_kind(steps_curve_data(summary), "fit")

    assert [pytest.approx(2), pytest.approx(2048)] == [fitted.points[0].x, fitted.points[-1].x]
    assert pytest.approx(summary.fit.s_min + summary.fit.e_min / 2) == fitted.points[0].y
    assert fitted.label.startswith("fit of minima: ")


def test_the_critical_batch_size_is_a_value_of_the_axis_with_its_interval(make_summary):
    summary = make_summary(seeds=6)
    (value,) = steps_curve_data(summary).panel.axis_values

    assert (summary.fit.b_crit, summary.fit.b_crit_ci.low, summary.fit.b_crit_ci.high) == (
        value.value,
        value.low,
        value.high,
    )
    assert value.label.startswith("critical batch size ")
    assert 2 * summary.fit.s_min == value.top


def test_a_bound_alone_is_no_place_on_the_axis(make_summary):
    summary = make_summary(seeds=6)
    bounded = replace(summary, fit=replace(summary.fit, b_crit_ci=replace(summary.fit.b_crit_ci, high=None)))
    (value,) = steps_curve_data(bounded).panel.axis_values

    assert (None, summary.fit.b_crit_ci.low, None) == (value.value, value.low, value.high)


def test_what_was_not_reached_stands_at_the_steps_that_were_trained(make_summary):
    data = steps_curve_data(make_summary(unreached=(1, 2048)))
    missed = of_kind(data, "not reached")

    assert [(1, 20_000), (2048, 20_000)] == marks(missed)
    assert data.panel.y_axis.high > 20_000 * 1.5
    assert ["budget", None, "budget"] == [data.points[i].ended_by for i in (0, 1, 11)]


def test_an_interval_open_above_is_an_arrow_and_has_no_number(make_summary):
    """Seven of 32 trials reached: the eighth is the upper bound of best of 6, the fourth or fifth its estimate."""
    summary = make_summary()
    row = summary.rows[3]
    opened = replace(row, best_of=replace(row.best_of, interval=replace(row.best_of.interval, high=None)))
    data = steps_curve_data(replace(summary, rows=(*summary.rows[:3], opened, *summary.rows[4:])))
    figure = steps_curve_figure(data)
    arrows = [text.xy for text in figure.axes[0].texts if getattr(text, "arrow_patch", None)]

    assert (row.best_of.interval.low, None) == (data.points[3].low, data.points[3].high)
    assert [(8, row.best_of.steps)] == arrows
    assert "interval open above" in words(figure)


def test_regimes_fill_the_axis(make_summary):
    panel = steps_curve_data(make_summary(seeds=6)).panel

    assert (panel.x_axis.low, panel.x_axis.high) == (panel.spans[0].left, panel.spans[-1].right)
    assert ["perfect\nscaling", "diminishing\nreturns", "maximal\nparallelism"] == [
        span.labels[-1] for span in panel.spans if span.colour
    ]


def test_the_figure_has_logarithmic_axes_with_units(make_summary):
    figure = steps_curve_figure(steps_curve_data(make_summary(seeds=6)))
    (ax,) = figure.axes

    assert ("log", "log") == (ax.get_xscale(), ax.get_yscale())
    assert (2, 2) == (ax.xaxis.get_transform().base, ax.yaxis.get_transform().base)
    assert "Batch size (examples per update)" == ax.get_xlabel()
    assert "Steps to val/classification_error < 0.03" == ax.get_ylabel()
    assert "digits/fc_128/nesterov_momentum" == ax.get_title()
    assert ["1", "4", "16", "64", "256", "1,024"] == [label.get_text() for label in ax.get_xticklabels()]


def test_batch_sizes_that_change_on_the_way_are_told_by_their_first(make_summary):
    panel = steps_curve_data(replace(make_summary(), has_one_batch_size=False)).panel

    assert "First batch size (examples per update); it changes on the way" == panel.x_axis.label


def test_the_legend_names_everything_that_is_drawn(make_summary):
    summary = make_summary(seeds=6, unreached=(2048,))
    found = words(steps_curve_figure(steps_curve_data(summary)))

    assert [
        "confirmed median of 6 seeds",
        "95 % interval",
        "minimum of 32 trials",
        "not reached: takes more steps than this",
        "perfect scaling",
    ] == found[:5]
    assert [True, True] == [found[5].startswith("fit of confirmed medians"), found[6].startswith("critical batch size")]
    assert 7 == len(found)


@pytest.mark.parametrize("unreached", [(1, 2), (1,), ()])
def test_two_batch_sizes_or_none_reached_are_drawn_without_a_fit(make_summary, unreached):
    data = steps_curve_data(make_summary(sizes=(1, 2), unreached=unreached))
    figure = steps_curve_figure(data)

    assert (None, (), ()) == (of_kind(data, "fit"), data.panel.axis_values, data.panel.spans)
    assert (len(unreached) > 0) == ("not reached: takes more steps than this" in words(figure))
    assert (len(unreached) < 2) == ("perfect scaling" in words(figure))


def test_a_goal_met_before_the_first_update_is_said_and_not_drawn(make_summary):
    summary = make_summary(protocol=Protocol(kind="imported"))
    at_once = replace(summary.rows[0], steps=0)
    data = steps_curve_data(replace(summary, rows=(at_once, *summary.rows[1:])))

    assert ("met before the first update at batch size 1",) == data.panel.notes
    assert 0 == data.points[0].steps
    assert 2 == steps_curve_figure(data).axes[0].lines[0].get_xdata()[0]


def test_published_points_are_rings_with_a_column_and_a_ratio(make_summary):
    """Figure 1 of the paper has 66,910 steps at batch size 1, 8,965 at 8 and none at 4."""
    data = steps_curve_data(cnn_summary(make_summary, seeds=6), published=True)
    rings = of_kind(data, "published")
    by_size = {point.batch_size: point for point in data.points}

    assert (1, 66_910) == marks(rings)[0]
    assert (66_910, None, 8_965) == tuple(by_size[size].published_steps for size in (1, 4, 8))
    assert pytest.approx(by_size[1].headline_steps / 66_910) == by_size[1].published_ratio
    assert by_size[4].published_ratio is None
    assert "published (read off Figure 1)" in words(steps_curve_figure(data))


def test_regimes_end_where_batch_sizes_were_tried_though_published_points_lie_beyond(make_summary):
    panel = steps_curve_data(cnn_summary(make_summary, sizes=(8, 32, 128, 512)), published=True).panel

    assert panel.x_axis.low < 1 < panel.spans[0].left == pytest.approx(8 / 2**0.5)
    assert panel.x_axis.high > 65_536 > panel.spans[-1].right == pytest.approx(512 * 2**0.5)


def test_published_batch_sizes_that_were_not_measured_are_in_the_table(make_summary):
    rows = steps_curve_data(cnn_summary(make_summary, sizes=(1, 8)), published=True).table()

    assert [1, 8, 2, 32] == [row["batch_size"] for row in rows[:4]]
    assert (31_380, None, None) == (rows[2]["published_steps"], rows[2]["steps"], rows[2]["published_ratio"])


def test_without_published_points_nothing_is_laid_over(make_summary):
    data = steps_curve_data(make_summary(), published=True)

    assert of_kind(data, "published") is None
    assert of_kind(steps_curve_data(cnn_summary(make_summary)), "published") is None
    assert {None} == {point.published_steps for point in data.points}


def test_the_table_has_the_numbers_of_the_summary(make_summary):
    summary = make_summary(seeds=6)
    rows = steps_curve_data(summary).table()
    efficiency = summary.regimes.efficiencies[6]

    assert 12 == len(rows)
    assert {
        "batch_size": 64,
        "headline": "confirmed",
        "headline_steps": summary.rows[6].confirmed.steps,
        "low": summary.rows[6].confirmed.interval.low,
        "high": summary.rows[6].confirmed.interval.high,
        "steps": summary.rows[6].steps,
        "best_of_m": 6,
        "best_of_steps": summary.rows[6].best_of.steps,
        "confirmed_steps": summary.rows[6].confirmed.steps,
        "seeds": 6,
        "num_trials": 32,
        "end_step": 20_000,
        "ended_by": None,
        "efficiency": efficiency.value,
        "efficiency_low": efficiency.low,
        "efficiency_high": efficiency.high,
        "regime": "diminishing",
        "perfect_steps": pytest.approx(summary.rows[0].confirmed.steps / 64),
        "fitted_steps": pytest.approx(summary.fit.s_min + summary.fit.e_min / 64),
        "published_steps": None,
        "published_ratio": None,
    } == rows[6]


def test_thin_data_have_no_regime(make_summary):
    data = steps_curve_data(make_summary(num_trials=3))

    assert {None} == {point.regime for point in data.points}
    assert ["none"] == [span.colour for span in data.panel.spans]


def test_a_batch_size_that_did_not_meet_the_goal_is_in_no_regime(make_summary):
    points = steps_curve_data(make_summary(unreached=(1,))).points

    assert [None, "perfect"] == [point.regime for point in points[:2]]


def test_a_batch_size_at_which_all_diverged_is_no_bound_on_its_steps(make_summary):
    summary = make_summary(sizes=(1, 4, 16), unreached=(4,))
    diverged = tuple(replace(row, num_trials=0) if row.batch_size == 4 else row for row in summary.rows)

    assert [series.kind for series in steps_curve_data(summary).panel.series].count("not reached") == 1
    without = steps_curve_data(replace(summary, rows=diverged)).panel.series
    assert "not reached" not in [series.kind for series in without]
