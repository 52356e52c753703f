from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.analysis import TunedPoint
from batchlab.errors import InputError
from batchlab.plots import metaparameters_data, metaparameters_figure


@pytest.fixture
def with_points(make_summary):
    """Return a function that makes a summary whose best metaparameters are these, by batch size."""

    def make(points, top=()):
        tuned = tuple(TunedPoint(size, point, (), tuple(top)) for size, point in points.items())
        return replace(make_summary(sizes=tuple(points)), tuned=tuned)

    return make


def words(figure):
    """Return the words of the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_learning_rate_and_momentum_with_their_values(make_summary):
    learning_rate, momentum, effective = metaparameters_data(make_summary(sizes=(1, 4, 16))).quantities

    assert pytest.approx((0.01, 0.02, 0.04)) == learning_rate.values
    assert pytest.approx((0.1, 0.1, 0.1)) == momentum.values
    assert pytest.approx((0.1, 0.2, 0.4)) == effective.values
    assert pytest.approx((0.01, 0.04, 0.16)) == learning_rate.guides.linear
    assert pytest.approx((0.1, 0.2, 0.4)) == effective.guides.square_root
    assert momentum.guides is None


def test_regions_span_the_top_trials(make_summary):
    """The top trials have 1, 0.7 and 1.6 times the rate of the best, at the same momentum."""
    learning_rate, momentum, effective = metaparameters_data(make_summary(sizes=(1, 4))).quantities

    assert [pytest.approx((0.007, 0.016)), pytest.approx((0.014, 0.032))] == list(learning_rate.regions)
    assert [pytest.approx((0.1, 0.1))] * 2 == list(momentum.regions)
    assert pytest.approx((0.07, 0.16)) == effective.regions[0]
    assert (3, 3) == learning_rate.num_top


def test_a_rate_by_another_name_has_its_rules_and_its_effective_rate(with_points):
    data = metaparameters_data(with_points({1: {"lr": 0.1, "momentum": 0.5}, 4: {"lr": 0.2, "momentum": 0.75}}))
    rate, momentum, effective = data.quantities

    assert ["lr", "1 - momentum", "effective_learning_rate"] == [quantity.name for quantity in data.quantities]
    assert pytest.approx((0.1, 0.4)) == rate.guides.linear
    assert pytest.approx((0.5, 0.25)) == momentum.values
    assert pytest.approx((0.2, 0.8)) == effective.values
    assert ["Learning rate", "1 \u2212 momentum", "Learning rate / (1 \u2212 momentum)"] == [
        ax.get_ylabel() for ax in metaparameters_figure(data).axes
    ]


def test_every_metaparameter_has_a_panel(with_points):
    points = {1: {"learning_rate": 0.1, "weight_decay": 0.0}, 4: {"learning_rate": 0.2, "weight_decay": 1e-4}}
    data = metaparameters_data(with_points({**points, 16: {"trust": 0.01}}))
    figure = metaparameters_figure(data)

    assert ["Learning rate", "Weight decay", "Trust"] == [ax.get_ylabel() for ax in figure.axes]
    assert ["log", "linear", "log"] == [ax.get_yscale() for ax in figure.axes]
    assert [(1, 4), (1, 4), (16,)] == [quantity.batch_sizes for quantity in data.quantities]


def test_a_rate_that_is_zero_has_no_rules(with_points):
    (rate,) = metaparameters_data(with_points({1: {"learning_rate": 0.0}, 4: {"learning_rate": 0.2}})).quantities

    assert rate.guides is None
    assert not rate.is_positive


def test_five_metaparameters_take_two_rows(with_points):
    point = {f"knob_{i}": 0.1 * (i + 1) for i in range(5)}
    figure = metaparameters_figure(metaparameters_data(with_points({1: point, 4: point})))

    assert (2, 3) == figure.axes[0].get_subplotspec().get_gridspec().get_geometry()
    assert 5 == len(figure.axes)


def test_a_workload_without_momentum_has_one_panel(make_summary):
    data = metaparameters_data(make_summary(momentum=None))

    assert ["learning_rate"] == [quantity.name for quantity in data.quantities]
    assert 1 == len(metaparameters_figure(data).axes)


def test_nothing_reached_is_told_with_the_way_out(make_summary):
    data = metaparameters_data(make_summary(sizes=(1, 2), unreached=(1, 2)))

    assert () == data.panels
    with pytest.raises(
        InputError, match=r"^digits/fc_128/nesterov_momentum has no best metaparameters.*easier goal\.$"
    ):
        metaparameters_figure(data)


def test_points_at_the_edge_are_flagged_where_they_matter_and_drawn_hollow(make_summary):
    data = metaparameters_data(make_summary(sizes=(1, 4), at_boundary=("momentum",)))
    figure = metaparameters_figure(data)
    hollow = [[line for line in ax.lines if line.get_markerfacecolor() == "#ffffff"] for ax in figure.axes]

    assert [(False, False), (True, True), (True, True)] == [quantity.is_at_boundary for quantity in data.quantities]
    assert [0, 1, 1] == [len(lines) for lines in hollow]
    assert "at the edge of what was tried" in words(figure)


def test_axes_are_logarithmic_and_labelled(make_summary):
    figure = metaparameters_figure(metaparameters_data(make_summary()))

    assert {("log", "log")} == {(ax.get_xscale(), ax.get_yscale()) for ax in figure.axes}
    assert {"Batch size (examples per update)"} == {ax.get_xlabel() for ax in figure.axes}
    assert [
        "trial with the fewest steps",
        "range of the top 3 trials",
        "linear rule",
        "square-root rule",
    ] == words(figure)
    assert (
        "digits/fc_128/nesterov_momentum: best metaparameters for val/classification_error < 0.03, n = 32 trials at a "
        "batch size." == figure.get_suptitle().replace("\n", " ")
    )


def test_the_point_is_the_confirmed_one_where_there_is_one(make_summary):
    assert "confirmed point" == words(metaparameters_figure(metaparameters_data(make_summary(seeds=6))))[0]


def test_the_table_has_a_row_for_each_quantity_and_batch_size(make_summary):
    rows = metaparameters_data(make_summary(sizes=(1, 4))).table()

    assert 6 == len(rows)
    assert {
        "quantity": "1 - momentum",
        "batch_size": 1,
        "value": pytest.approx(0.1),
        "region_low": pytest.approx(0.1),
        "region_high": pytest.approx(0.1),
        "num_top": 3,
        "is_at_boundary": False,
        "linear_rule": None,
        "square_root_rule": None,
    } == rows[2]


def test_a_momentum_of_one_has_no_effective_rate(with_points):
    data = metaparameters_data(with_points({1: {"lr": 0.1, "momentum": 1.0}, 4: {"lr": 0.2, "momentum": 0.75}}))

    assert ["lr", "1 - momentum"] == [quantity.name for quantity in data.quantities]
    assert ["log", "linear"] == [ax.get_yscale() for ax in metaparameters_figure(data).axes]


def test_one_batch_size_shows_no_rules(make_summary):
    (panel, *_) = metaparameters_data(make_summary(sizes=(64,))).panels
    (several, *_) = metaparameters_data(make_summary(sizes=(16, 64))).panels

    assert [series.label for series in panel.series] == ["trial with the fewest steps"]
    assert "linear rule" in [series.label for series in several.series]
