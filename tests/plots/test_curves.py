from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batchlab.analysis import example_workload
from batchlab.core.confirmation import Confirmation, Replicate
from batchlab.core.goal import Goal
from batchlab.core.measurement import Measurements
from batchlab.core.protocol import Protocol
from batchlab.errors import InputError
from batchlab.plots import curves_data, curves_figure
from batchlab.plots.registry import FIGURES


def with_seconds(seconds):
    """The example's studies, every trial of which took `seconds`."""
    return [
        replace(study, trials=tuple(trial.model_copy(update={"wall_seconds": seconds}) for trial in study.trials))
        for study in example_workload()
    ]


def lines(data):
    """The points of every line, by its label."""
    return {series.label: [(p.x, p.y) for p in series.points] for series in data.panel.of_kind("measured")}


def words(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def caption(figure):
    return figure.get_suptitle().replace("\n", " ")


def test_each_line_is_the_trial_with_the_fewest_steps(make_trained):
    """Trial 3 is below 0.08 first, at its second measured step; it has no value at the first."""
    assert {
        "batch size 16": [(800, 0.07), (1200, 0.05)],
        "batch size 64": [(200, 0.07), (300, 0.05)],
        "batch size 256": [(100, 0.07), (150, 0.05)],
    } == lines(curves_data(make_trained()))


def test_examples_are_steps_times_batch_size(make_trained):
    data = curves_data(make_trained(), against="examples")

    assert [(12_800, 0.07), (19_200, 0.05)] == lines(data)["batch size 16"]
    assert [(25_600, 0.07), (38_400, 0.05)] == lines(data)["batch size 256"]
    assert "Examples (repeats counted)" == data.panel.x_axis.label


def test_seconds_are_the_trials_mean_time_per_step(make_trained):
    """6 s for 1,200, 300 and 150 steps: 5, 20 and 40 ms a step."""
    data = curves_data(make_trained(studies=with_seconds(6.0)), against="seconds")

    assert [(pytest.approx(4.0), 0.07), (pytest.approx(6.0), 0.05)] == lines(data)["batch size 16"]
    assert [(pytest.approx(4.0), 0.07), (pytest.approx(6.0), 0.05)] == lines(data)["batch size 256"]
    assert "Seconds, from the trial's mean time per step" == data.panel.x_axis.label
    assert "log10" == data.panel.x_axis.scale


@pytest.mark.parametrize("seconds", [None, 0.0])
def test_seconds_that_are_not_stored_are_refused_with_the_way_out(make_trained, seconds):
    with pytest.raises(
        InputError,
        match=r"^digits/fc_128/nesterov_momentum has no times: trial 3 of batch size 16 .* Draw them against steps or ",
    ):
        curves_data(make_trained(studies=with_seconds(seconds)), against="seconds")


def test_the_goal_and_where_it_was_first_met(make_trained):
    panel = curves_data(make_trained()).panel
    (goal,), (met,) = panel.of_kind("goal"), panel.of_kind("goal first met")

    assert ("goal: val/classification_error < 0.08", {0.08}) == (goal.label, {point.y for point in goal.points})
    assert [(800, 0.07), (200, 0.07), (100, 0.07)] == [(point.x, point.y) for point in met.points]


def test_another_metric_has_no_line_for_the_goal(make_trained):
    studies = []
    for study in example_workload():
        rows = study.measurements
        metrics = {**rows.metrics, "val/loss": 2 * rows.metrics["val/classification_error"]}
        studies.append(replace(study, measurements=Measurements(rows.trial_id, rows.step, metrics)))
    data = curves_data(make_trained(studies=studies), metric="val/loss")

    assert [(200, 0.14), (300, 0.1)] == lines(data)["batch size 64"]
    assert [] == data.panel.of_kind("goal")
    assert ["val/classification_error < 0.08 first met"] == [s.label for s in data.panel.of_kind("goal first met")]
    assert "val/loss" == data.panel.y_axis.label


def test_a_metric_that_was_not_measured_is_refused_with_those_that_were(make_trained):
    with pytest.raises(InputError, match=r'^Unknown metric "val/loss"\. Known: val/classification_error\.$'):
        curves_data(make_trained(), metric="val/loss")


def test_where_no_trial_met_the_goal_the_closest_one_is_shown_and_named(make_trained):
    data = curves_data(make_trained("val/classification_error < 0.01"))

    assert [0, 0, 0] == [one.best.trial.trial_id for one in data.curves]  # it came to 0.04
    assert [(100, 0.3), (200, 0.08), (300, 0.04)] == lines(data)["batch size 64 (goal not met)"]
    assert [] == data.panel.of_kind("goal first met")
    assert "Where none met it: the one that came closest." in data.caption


def test_the_confirmed_point_is_the_headlines(make_trained):
    """Trial 3 met the goal first, but the point of trial 0 has the smaller median over six seeds."""
    goal = Goal.read("val/classification_error < 0.08")
    replicates = [
        Replicate(trial_id=trial_id, replicate=i + 1, goal_step=step + i, last_step=step + i)
        for trial_id, step in ((3, 250), (0, 150))
        for i in range(6)
    ]
    made = Confirmation(goal=goal, seeds=6, trial_ids=(3, 0), end_step=800, replicates=replicates)
    data = curves_data(make_trained(confirmation=made, protocol=Protocol(kind="full", max_steps=300)))

    assert [0, 0, 0] == [one.best.trial.trial_id for one in data.curves]
    assert data.caption.startswith("Each line: the trial whose point was confirmed as best for ")


def test_other_trials_are_pale_lines_where_they_do_not_crowd(make_trained):
    three, two = make_trained(), make_trained().only([64, 256])
    data = curves_data(two)
    ax = curves_figure(data).axes[0]
    pale = [line for line in ax.lines if line.get_alpha() is not None]

    assert [()] * 3 == [one.others for one in curves_data(three).curves]
    assert [[0, 1]] * 2 == [[other.trial.trial_id for other in one.others] for one in data.curves]  # 2 diverged
    assert [[100, 200, 300]] * 2 + [[50, 100, 150]] * 2 == [line.get_xdata().tolist() for line in pale]
    assert "Pale: 2 of its other trials." in data.caption
    assert "Shown: 2 of 3 batch sizes." in data.caption


def test_the_axes_are_labelled_and_the_legend_names_what_is_drawn(make_trained):
    figure = curves_figure(curves_data(make_trained()))
    ax = figure.axes[0]

    assert ("log", "Steps (updates)", "val/classification_error") == (
        ax.get_xscale(),
        ax.get_xlabel(),
        ax.get_ylabel(),
    )
    assert ["batch size 16", "batch size 64", "batch size 256"] == words(figure)[:3]
    assert ["goal: val/classification_error < 0.08", "goal first met"] == words(figure)[3:]
    assert "of n = 3 complete trials at its batch size." in caption(figure)


def test_a_race_is_said_to_have_ended_the_lines(make_trained, race):
    raced = make_trained(studies=with_seconds(6.0), protocol=race)

    assert "Lines end where the race did." in curves_data(raced).caption
    assert "upper bound" not in curves_data(raced).caption
    assert "the seconds are an upper bound" in curves_data(raced, against="seconds").caption


def test_the_table_has_every_measured_step_even_the_first(make_trained):
    rows = curves_data(make_trained(studies=with_seconds(6.0)).only([64])).table()

    assert [(3, True)] * 3 + [(0, False)] * 4 + [(1, False)] * 4 == [(row["trial_id"], row["is_best"]) for row in rows]
    assert [0, 200, 300] == [row["step"] for row in rows[:3]]
    assert {
        "batch_size": 64,
        "trial_id": 3,
        "is_best": True,
        "step": 200,
        "examples": 12_800,
        "seconds": pytest.approx(4.0),
        "metric": "val/classification_error",
        "value": 0.07,
    } == rows[1]


def test_a_sweep_without_a_measured_trial_is_refused(make_trained):
    def cut(study):
        return replace(study, measurements=study.measurements.where(study.measurements.step == 0))

    sweep = make_trained("val/classification_error < 0.5", studies=[cut(study) for study in example_workload()])

    with pytest.raises(InputError, match=r"has no complete trial with a value of val/classification_error after step"):
        curves_data(sweep)


def test_the_registry_says_what_curves_take():
    assert {"metric", "against"} == FIGURES["curves"].takes
    assert 6 == FIGURES["curves"].most_batch_sizes


def test_values_that_are_not_finite_are_left_out(make_trained):
    studies = []
    for study in example_workload():
        rows = study.measurements
        values = rows.metrics["val/classification_error"].copy()
        values[(rows.trial_id == 3) & (rows.step == study.end_step)] = np.inf
        metrics = {"val/classification_error": values}
        studies.append(replace(study, measurements=Measurements(rows.trial_id, rows.step, metrics)))

    assert [(200, 0.07)] == lines(curves_data(make_trained(studies=studies)))["batch size 64"]
