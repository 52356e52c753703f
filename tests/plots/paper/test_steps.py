"""Figures 1 to 6."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from batchlab.core.trial import Status
from batchlab.plots.draw import draw_sheet
from batchlab.plots.paper import PAPER_FIGURES, paper_data
from batchlab.published.points import published_curve


def slow_steps(study, goal, num_trials):
    """The fewest steps to a strict goal over the first complete trials, row by row; None where it was not met."""
    complete = [trial.trial_id for trial in study.trials if trial.status is Status.COMPLETE][:num_trials]
    rows = zip(
        study.measurements.trial_id.tolist(),
        study.measurements.step.tolist(),
        study.measurements.metrics[goal.metric].tolist(),
        strict=True,
    )
    beyond = {"<": lambda value: value < goal.threshold, ">": lambda value: value > goal.threshold}[goal.comparison]
    return min((step for trial_id, step, value in rows if trial_id in complete and beyond(value)), default=None)


LINES = [
    (number, i, line) for number in range(1, 7) for i, p in enumerate(PAPER_FIGURES[number].panels) for line in p.lines
]


@pytest.mark.parametrize(("number", "i", "line"), LINES, ids=lambda value: getattr(value, "label", str(value)))
def test_every_curve_is_the_fewest_steps_at_every_batch_size(number, i, line, lab, paper):
    panel, spec = paper(number).panels[i], PAPER_FIGURES[number].panels[i]
    series = next(one for one in panel.of_kind("measured") if one.label == line.label)
    expected = {study.batch_size: slow_steps(study, line.goal, line.num_trials) for study in lab[line.workload]}
    unit = 1 if spec.normalise_at is None else expected[spec.normalise_at]

    assert any(expected.values())
    assert {size: steps and pytest.approx(steps / unit) for size, steps in expected.items()} == {
        point.x: point.y for point in series.points
    }
    assert {12} == {point.num_trials for point in series.points}


def test_the_table_has_the_papers_workloads_and_goals():
    # Read off the reference's table of figures and its list of goals.
    figure_1 = {panel.title: (panel.lines[0].workload, panel.lines[0].goal_text) for panel in PAPER_FIGURES[1].panels}

    assert figure_1["ResNet-50 on Open Images"] == (
        "open_images_v4/resnet_50/nesterov_momentum",
        "val/average_precision > 0.31",
    )
    assert figure_1["VGG-11 on ImageNet"] == ("imagenet/vgg_11/nesterov_momentum", "val/classification_error < 0.35")
    assert [panel.normalise_at for panel in PAPER_FIGURES[3].panels] == [1, 64, 16, 2, 2, 16]
    assert [panel.normalise_at for panel in PAPER_FIGURES[4].panels] == [None, None, None]
    assert [panel.normalise_at for panel in PAPER_FIGURES[5].panels] == [2, 128, 32]
    assert [panel.normalise_at for panel in PAPER_FIGURES[6].panels] == [2, 64]
    assert [len(panel.lines) for number in (2, 3, 4, 5, 6) for panel in PAPER_FIGURES[number].panels] == [
        *(5, 6, 4),
        *(2, 2, 2, 6, 3, 4),
        *(3, 3, 2),
        *(2, 2, 2),
        *(4, 3),
    ]
    assert [line.goal.threshold for line in PAPER_FIGURES[6].panels[1].lines] == [0.25, 0.3, 0.3]
    assert {line.goal.threshold for panel in PAPER_FIGURES[3].panels[:2] for line in panel.lines} == {0.03, 0.35}


def test_a_hundred_trials_are_used_and_fifty_where_the_paper_had_fewer():
    numbers = {
        line.workload: line.num_trials
        for figure in range(1, 7)
        for p in PAPER_FIGURES[figure].panels
        for line in p.lines
    }

    assert {workload for workload, number in numbers.items() if number == 50} == {
        "common_crawl/transformer_base/nesterov_momentum",
        "lm1b/lstm/nesterov_momentum",
        "lm1b/transformer_shallow/sgd",
    }
    assert {50, 100} == set(numbers.values())


def test_perfect_scaling_starts_at_the_first_point_or_at_the_batch_size_that_is_one(paper):
    first, normalised = paper(1).panels[0], paper(3).panels[3]
    (guide,) = first.of_kind("perfect scaling")
    (guide_of_one,) = normalised.of_kind("perfect scaling")

    anchor = first.of_kind("measured")[0].points[0]
    assert [anchor.y * anchor.x / size for size in (1, 2, 16, 128, 1024, 8192)] == [point.y for point in guide.points]
    assert pytest.approx({1: 2.0, 2: 1.0, 16: 1 / 8, 128: 1 / 64, 1024: 1 / 512, 8192: 1 / 4096}) == {
        point.x: point.y for point in guide_of_one.points
    }
    assert not any(panel.of_kind("perfect scaling") for panel in paper(2).panels)


def test_perfect_scaling_of_optimizers_is_anchored_to_nesterov(paper):
    for panel in paper(4).panels:
        nesterov = next(series for series in panel.of_kind("measured") if series.label == "Nesterov momentum")

        assert panel.of_kind("perfect scaling")[0].points[0].y == nesterov.points[0].y


def test_curves_are_minima_without_intervals_and_no_legend_promises_one(paper, drawn):
    for number in range(1, 7):
        series = [one for panel in paper(number).panels for one in panel.of_kind("measured")]
        legends = [*drawn(number).legends, *(ax.get_legend() for ax in drawn(number).axes if ax.get_legend())]

        assert {(None, None)} == {(point.low, point.high) for one in series for point in one.points}
        assert not [text for legend in legends for text in legend.get_texts() if "interval" in text.get_text()]


def test_published_points_lie_over_every_curve_with_their_workload_and_goal(paper, results):
    numbers = [len(panel.of_kind("published")) for number in range(1, 7) for panel in paper(number).panels]

    assert numbers == [*[1] * 9, *(1, 1, 1), *(1, 1, 2, 2, 0, 0), *(1, 0, 1), *(2, 2, 2), *(0, 1)]
    assert not any(panel.of_kind("published") for panel in paper_data(1, results).panels)


def test_a_part_of_a_dataset_has_no_published_points_beside_it(results):
    def parts(workload):
        return [replace(study, has_whole_data=False) for study in results(workload)]

    assert not any(panel.of_kind("published") for panel in paper_data(1, parts, published=True).panels)


def test_published_points_are_normalised_by_themselves(paper):
    line = PAPER_FIGURES[6].panels[1].lines[0]
    (series,) = paper(6).panels[1].of_kind("published")
    steps = published_curve(line.workload, line.goal).steps

    assert {size: value / steps[64] for size, value in steps.items()} == {point.x: point.y for point in series.points}


def test_a_missing_workload_leaves_an_empty_panel_that_says_so(lab):
    name = "mnist/simple_cnn_base/nesterov_momentum"
    data = paper_data(1, lambda workload: None if workload == name else lab[workload])

    assert data.panels[0].series == ()
    assert data.panels[0].notes == (f"{name} is not in this lab",)
    assert all(panel.series and not panel.notes for panel in data.panels[1:])


def test_a_missing_curve_leaves_the_others_and_their_names(lab):
    data = paper_data(3, lambda workload: None if "vgg" in workload else lab[workload])
    panel = data.panels[1]

    assert [series.label for series in panel.of_kind("measured")] == ["ResNet-50"]
    assert panel.notes == ("imagenet/vgg_11/nesterov_momentum is not in this lab",)
    ax = draw_sheet(replace(data, panels=(panel,))).axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ResNet-50"]
    assert any("is not in this" in text.get_text() for text in ax.texts)


def test_another_batch_size_serves_where_the_papers_is_not_in_the_lab(lab):
    def without_two(workload):
        return [study for study in lab[workload] if study.batch_size != 2]

    panel = paper_data(5, without_two).panels[0]

    assert panel.y_axis.label == "Steps / (steps at B = 16)"
    assert [next(p.y for p in series.points if p.x == 16) for series in panel.of_kind("measured")] == [1.0, 1.0]
    assert panel.notes == ()


def test_curves_without_a_common_batch_size_cannot_be_compared(lab):
    def odd(workload):
        return lab[workload][:1] if "fashion" in workload else lab[workload][2:]

    panel = paper_data(5, odd).panels[0]

    assert panel.series == ()
    assert panel.notes == ("the curves have no batch size in common at which their goals were met",)


def test_a_goal_never_met_and_a_metric_never_measured_say_so(lab):
    def poor(workload):
        return [replace(study, trials=()) for study in lab[workload]] if "mnist" in workload else lab["lm1b/lstm/sgd"]

    panels = paper_data(1, poor).panels

    assert panels[0].notes == ("mnist/simple_cnn_base/nesterov_momentum did not reach val/classification_error < 0.01",)
    assert panels[3].notes == (
        "val/classification_error was not measured for imagenet/resnet_50/nesterov_momentum in this lab",
    )


def test_a_batch_size_that_missed_the_goal_is_in_the_table_without_a_value(lab):
    workload = "mnist/simple_cnn_base/nesterov_momentum"
    studies = [lab[workload][0], replace(lab[workload][1], trials=()), *lab[workload][2:]]
    (series,) = paper_data(1, lambda name: studies if name == workload else None).panels[0].of_kind("measured")

    assert [(point.x, point.y) for point in series.points[:2]] == [(1, series.points[0].y), (2, None)]
    assert series.points[1].num_trials == 0


def test_axes_are_powers_of_two_and_hold_all_points(paper, drawn):
    for number in range(1, 7):
        for panel, ax in zip(paper(number).panels, drawn(number).axes, strict=True):
            assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
            assert (ax.xaxis.get_transform().base, ax.yaxis.get_transform().base) == (2, 2)
            assert ax.get_xlabel() == "Batch size (examples per update)"
            assert ax.get_title() == f"({panel.name}) {panel.title}"
            points = [point for series in panel.of_kind("measured") for point in series.drawn]
            assert all(panel.x_axis.low < p.x < panel.x_axis.high for p in points)
            assert all(panel.y_axis.low < p.y < panel.y_axis.high for p in points)
    assert {ax.get_ylabel() for ax in drawn(1).axes} == {"Steps to the goal"}
    assert [ax.get_ylabel() for ax in drawn(6).axes] == ["Steps / (steps at B = 2)", "Steps / (steps at B = 64)"]


def test_curves_are_triangles_joined_by_lines_and_guides_are_dashed(paper, drawn):
    ax, panel = drawn(4).axes[0], paper(4).panels[0]
    curves = [line for line in ax.lines if line.get_marker() in "^v<>"]
    (guide,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    (circles,) = [line for line in ax.lines if line.get_marker() == "o"]

    assert [line.get_label() for line in curves] == ["SGD", "Momentum", "Nesterov momentum"]
    assert {"-"} == {line.get_linestyle() for line in curves}
    assert list(curves[0].get_ydata()) == [point.y for point in panel.of_kind("measured")[0].points]
    assert guide.get_label() == "perfect scaling"
    assert (circles.get_label(), circles.get_markerfacecolor()) == ("published (read off the picture)", "none")
    assert circles.get_linestyle() == "None"


def test_goals_are_told_by_the_order_of_their_colours(drawn):
    lines = [line for line in drawn(2).axes[0].lines if line.get_marker() == "^"]

    assert [line.get_label() for line in lines] == ["goal 0.008", "goal 0.01", "goal 0.012", "goal 0.014", "goal 0.016"]
    assert len({line.get_color() for line in lines}) == 5


def test_a_goal_met_before_the_first_update_is_in_the_table_and_not_on_the_log_axis(lab):
    workload = "mnist/simple_cnn_base/nesterov_momentum"
    study = lab[workload][0]
    values = {name: column * 0 for name, column in study.measurements.metrics.items()}
    at_once = replace(study, measurements=replace(study.measurements, metrics=values))
    data = paper_data(1, lambda name: [at_once, *lab[workload][1:]] if name == workload else None)
    ax = draw_sheet(data).axes[0]

    assert data.panels[0].of_kind("measured")[0].points[0].y == 0
    assert math.isclose(data.panels[0].of_kind("perfect scaling")[0].points[0].x, 2)
    assert ax.lines[0].get_xdata()[0] == 2
