from __future__ import annotations

from dataclasses import replace

import pytest
from matplotlib.figure import Figure

import batchlab.plots.style as style
from batchlab.plots.along_x import draw_axis_value
from batchlab.plots.draw import draw_panel, draw_sheet
from batchlab.plots.panel import Axis, AxisValue, Panel, Point, Series, Span
from batchlab.plots.sheet import Sheet

X, Y = Axis("Batch size", "log2", 0.7, 1500), Axis("Steps", "log2", 10, 5000)


def curve(label: str, points, **fields) -> Series:
    """Return a measured series of (x, y, low, high)."""
    made = tuple(Point(*point) for point in points)
    return Series(label=label, kind="measured", workload="w", quantity="q", points=made, bars="95 % interval", **fields)


def make_panel(*series: Series, **fields) -> Panel:
    """Return a panel of these series."""
    return Panel(**{"title": "t", "x_axis": X, "y_axis": Y, "series": series, "legend": None, **fields})


def drawn(panel: Panel):
    """Return the axes of a drawn panel and the legend's words."""
    ax = style.new_figure(6.4, 4).add_subplot()
    return ax, [handle.get_label() for handle in draw_panel(ax, panel)]


def bars(ax):
    """Return x, low and high of every interval."""
    return [
        (segment[0][0], segment[0][1], segment[1][1]) for lines in ax.collections for segment in lines.get_segments()
    ]


def arrows(ax):
    """Return where arrows stand."""
    return [text.xy for text in ax.texts if getattr(text, "arrow_patch", None)]


def test_published_points_have_the_colour_of_their_curve_where_there_are_several():
    one, two = (replace(curve(name, [(1, 400), (4, 100)]), workload=name) for name in ("one", "two"))
    rings = Series(label="published", kind="published", workload="two", quantity="q", points=(Point(1, 300),))

    def colours(*series):
        ax = style.new_figure(6.4, 4).add_subplot()
        handles = draw_panel(ax, make_panel(*series))
        lines = {line.get_label(): line.get_color() for line in ax.lines}
        (entry,) = [handle.get_color() for handle in handles if handle.get_label() == "published"]
        return lines["published"] == lines["two"], entry

    assert colours(one, two, rings) == (True, style.GREY)
    assert colours(two, rings) == (False, style.GREY)


def test_an_interval_is_a_bar_and_an_open_one_a_bar_with_an_arrow():
    ax, words = drawn(make_panel(curve("a", [(1, 400, 300, 500), (4, 100, 90, None), (16, 50, None, None)])))

    assert [(1, 300, 500), (4, 90, 100)] == bars(ax)
    assert [(4, 100)] == arrows(ax)
    assert ["a", "95 % interval", "interval open above"] == words


def test_the_legend_promises_only_what_is_drawn():
    without = curve("a", [(1, 400)])
    many = [curve(str(i), [(1, 400, 300, 500)]) for i in range(4)]

    assert ["a"] == drawn(make_panel(without))[1]
    assert ["0", "1", "2", "3"] == drawn(make_panel(*many))[1]
    assert [] == drawn(make_panel(curve("a", [(1, None)])))[1]


def test_bars_of_two_curves_stand_side_by_side():
    ax, words = drawn(make_panel(curve("a", [(4, 100, 90, 120)]), curve("b", [(4, 100, 90, 120)])))

    assert pytest.approx([4 * 2**-0.05, 4 * 2**0.05]) == [x for x, _, _ in bars(ax)]
    assert ["a", "b", "95 % interval", "95 % interval"] == words


def test_what_was_not_reached_is_a_mark_with_an_arrow_at_the_steps_trained():
    missed = Series(label="not reached", kind="not reached", workload="w", quantity="q", points=(Point(8, 2000),))
    ax, words = drawn(make_panel(missed))

    assert [(8, 2000)] == arrows(ax)
    assert ([8], [2000]) == (list(ax.lines[0].get_xdata()), list(ax.lines[0].get_ydata()))
    assert ["not reached"] == words


def test_a_value_of_the_axis_is_a_line_and_a_bar_that_ends_with_the_axis():
    panel = make_panel(curve("a", [(1, 400)]), axis_values=(AxisValue("critical", 100, 50, None, top=80),))
    ax, words = drawn(panel)
    line, bar = ax.lines[1:]

    assert ([100, 100], [10, 80]) == (list(line.get_xdata()), list(line.get_ydata()))
    assert ([50, 1500], [10, 10]) == (list(bar.get_xdata()), list(bar.get_ydata()))
    assert ["a", "critical"] == words


def test_a_value_without_bounds_has_no_bar():
    panel = make_panel(curve("a", [(1, 400)]), axis_values=(AxisValue("critical", None, None, None, top=80),))

    assert 1 == len(drawn(panel)[0].lines)


def test_parts_of_the_axis_are_shaded_under_the_longest_name_that_fits():
    spans = (
        Span(("a long name of this part", "short"), style.GREEN, 0.7, 100),
        Span(("a long name of this part", "short"), style.ORANGE, 100, 700),
        Span(("hatched",), None, 700, 1500),
    )
    ax, _ = drawn(make_panel(curve("a", [(1, 400)]), spans=spans))

    assert ["a long name of this part", "short", "hatched"] == [text.get_text() for text in ax.texts]
    assert [None, None, "///"] == [patch.get_hatch() for patch in ax.patches]


def test_a_panel_without_series_says_why():
    ax, words = drawn(make_panel(notes=("nothing was found",)))

    assert [] == words
    assert ["nothing was found"] == [text.get_text() for text in ax.texts]


def test_a_sheet_shares_one_legend_in_a_fixed_order():
    rule = Series(label="perfect scaling", kind="perfect scaling", workload="w", quantity="q", points=(Point(1, 100),))
    panel = make_panel(rule, curve("a", [(1, 400)]))
    sheet = Sheet(caption="What it shows.", columns=2, panel_aspect=1.0, panels=(panel, replace(panel, name="b")))
    figure = draw_sheet(sheet)

    assert ["a", "perfect scaling"] == [text.get_text() for text in figure.legends[0].get_texts()]
    assert "What it shows." == figure.get_suptitle()
    assert ["t", "(b) t"] == [ax.get_title() for ax in figure.axes]
    assert 9.0 == figure.get_figwidth()


def test_a_long_legend_takes_more_rows_and_the_figure_grows():
    heights = []
    for words in ("short", "a label that is so long that two of them do not fit beside each other"):
        series = [curve(f"{words} {i}", [(1, 400)]) for i in range(4)]
        figure = draw_sheet(Sheet(caption="", columns=1, panel_aspect=1.5, panels=(make_panel(*series),), width=6.0))
        heights.append(figure.get_figheight())

    assert pytest.approx([6 / 1.5 + 0.9, 6 / 1.5 + 0.9 + 3 * 0.18]) == heights


def test_dollars_in_names_are_no_formula():
    panel = replace(make_panel(curve("$a_1$", [(1, 400)])), title="$b_1$", legend="upper right")
    figure = draw_sheet(Sheet(caption="$c_1$", columns=1, panel_aspect=1.0, panels=(panel,)))
    (ax,) = figure.axes

    assert not ax.title.get_parse_math()
    assert not ax.get_legend().get_texts()[0].get_parse_math()


@pytest.mark.parametrize(
    ("value", "look"),
    [
        (AxisValue("critical", 100, 50, 200, top=80), ":"),
        (AxisValue("critical", None, 50, None, top=80), "-"),
        (AxisValue("critical", None, None, None, top=80), "None"),
    ],
)
def test_the_entry_of_a_value_looks_like_what_is_drawn_of_it(value, look):
    entry = draw_axis_value(Figure().subplots(), value, Axis("x", "log2", 1, 1000))

    assert entry.get_linestyle() == look
