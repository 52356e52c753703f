from __future__ import annotations

import math

import pytest

from batchlab.plots import steps_curve_data, steps_curve_figure


def texts(figure):
    """Return all words on the only axes of a figure."""
    (ax,) = figure.axes
    return [text.get_text() for text in [*ax.texts, *ax.get_legend().get_texts()]]


def test_data_hold_the_numbers_of_the_summary(make_summary):
    summary = make_summary()
    data = steps_curve_data(summary)
    first = data.points[0]

    assert [row.steps for row in summary.rows] == [point.steps for point in data.points]
    assert (1, 32, summary.rows[0].interval.high) == (first.batch_size, first.num_trials, first.high)
    assert first.steps == pytest.approx(first.perfect_steps)
    assert first.steps / 2048 == pytest.approx(data.points[-1].perfect_steps)
    assert summary.fit.b_crit == data.fit.b_crit
    assert summary.fit.s_min + summary.fit.e_min / 64 == pytest.approx(data.points[6].fitted_steps)


def test_regimes_meet_half_way_between_batch_sizes_and_fill_the_axis(make_summary):
    data = steps_curve_data(make_summary())
    ends = {regime: [p.batch_size for p in data.points if p.regime == regime] for regime in ("perfect", "diminishing")}

    assert [span.regime for span in data.spans] == ["perfect", "diminishing", "maximal"]
    assert data.x_limits == (data.spans[0].left, data.spans[-1].right)
    assert data.spans[0].right == data.spans[1].left
    assert math.sqrt(2) * ends["perfect"][-1] == pytest.approx(data.spans[0].right)


def test_perfect_scaling_is_anchored_at_the_smallest_reached_batch_size(make_summary):
    data = steps_curve_data(make_summary(unreached=(1, 2)))

    assert [None, None, data.points[2].steps] == [point.steps for point in data.points[:3]]
    assert data.points[2].steps == pytest.approx(data.points[2].perfect_steps)
    assert [span.regime for span in data.spans] == ["perfect", "diminishing", "maximal"]
    assert math.sqrt(2 * 4) == pytest.approx(data.spans[0].left)


def test_the_figure_has_the_axes_of_the_paper(make_summary):
    (ax,) = steps_curve_figure(steps_curve_data(make_summary())).axes

    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.xaxis.get_transform().base, ax.yaxis.get_transform().base) == (2, 2)
    assert ax.get_xlabel() == "Batch size (examples per update)"
    assert ax.get_ylabel() == "Steps to val/classification_error < 0.03"
    assert ax.get_title() == "digits/fc_128/nesterov_momentum"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "4", "16", "64", "256", "1,024"]


def test_the_legend_tells_trials_fit_and_critical_batch_size(make_summary):
    summary = make_summary()
    words = texts(steps_curve_figure(steps_curve_data(summary)))

    assert "measured, best of 32 trials" in words
    assert "95 % interval" in words
    assert "perfect scaling" in words
    assert any(word.startswith(f"critical batch size {summary.fit.b_crit:.3g} (") for word in words)
    assert {"perfect\nscaling", "diminishing\nreturns", "maximal\nparallelism"} <= set(words)
    assert "interval open above" not in words


def test_an_open_interval_is_an_arrow_and_has_no_number(make_summary):
    data = steps_curve_data(make_summary(is_open=(8, 16)))
    figure = steps_curve_figure(data)
    arrows = [text for text in figure.axes[0].texts if getattr(text, "arrow_patch", None)]

    assert [arrow.xy[0] for arrow in arrows] == [8, 16]
    assert [point.high for point in data.points[3:5]] == [None, None]
    assert "interval open above" in texts(figure)


def test_unreached_batch_sizes_are_marked_at_the_top(make_summary):
    figure = steps_curve_figure(steps_curve_data(make_summary(unreached=(1, 2048))))
    marks = next(line for line in figure.axes[0].lines if line.get_marker() == "x")

    assert list(marks.get_xdata()) == [1, 2048]
    assert "not reached within 20,000 steps" in texts(figure)


@pytest.mark.parametrize("unreached", [(1, 2), (1,), ()])
def test_two_batch_sizes_or_none_reached_are_drawn_without_a_fit(make_summary, unreached):
    data = steps_curve_data(make_summary(sizes=(1, 2), unreached=unreached))
    words = texts(steps_curve_figure(data))

    assert data.fit is None
    assert not any(word.startswith(("fit", "critical")) for word in words)
    assert bool(unreached) == ("not reached within 20,000 steps" in words)


def test_dollars_in_a_name_are_no_formula(make_summary):
    (ax,) = steps_curve_figure(steps_curve_data(make_summary(workload="a/$b_1$/c"))).axes

    assert not ax.title.get_parse_math()


def test_the_table_has_one_row_for_each_batch_size(make_summary):
    rows = steps_curve_data(make_summary()).table()

    assert len(rows) == 12
    assert {"batch_size", "steps", "low", "high", "perfect_steps", "fitted_steps", "regime"} <= set(rows[0])
