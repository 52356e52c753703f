from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batchlab.analysis import example_workload
from batchlab.core.trial import Status
from batchlab.errors import InputError
from batchlab.plots import points_data, points_figure


def with_points(*points):
    """The example's studies with these metaparameters for its four trials."""
    return [
        replace(
            study,
            trials=tuple(
                trial.model_copy(update={"metaparameters": point})
                for trial, point in zip(study.trials, points, strict=True)
            ),
        )
        for study in example_workload()
    ]


def marks(panel):
    return {series.kind: [(p.x, p.y) for p in series.points] for series in panel.series}


def words(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_trial_is_in_its_class_at_its_place(make_trained):
    """Below 0.06 come trials 0 (0.04) and 3 (0.05), both at the last step; trial 1 stays at 0.06; 2 diverges."""
    panel = points_data(make_trained("val/classification_error < 0.06")).panels[1]

    assert {
        "infeasible": [(1.0, pytest.approx(0.01))],
        "goal not met": [(0.03, pytest.approx(0.1))],
        "goal met": [(0.01, pytest.approx(0.1)), (0.03, pytest.approx(0.05))],
        "best": [(0.01, pytest.approx(0.1))],
    } == marks(panel)
    assert "B = 64, 300 steps" == panel.title


def test_the_axes_are_those_of_the_search_and_the_same_in_all_panels(make_trained):
    figure = points_figure(points_data(make_trained()))

    assert 3 == len(figure.axes)
    assert {("Learning rate", "1 \u2212 momentum", "log", "log")} == {
        (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale(), ax.get_yscale()) for ax in figure.axes
    }
    assert 1 == len({(ax.get_xlim(), ax.get_ylim()) for ax in figure.axes})
    assert "3 goal met, 0 goal not met, 1 infeasible" in [text.get_text() for text in figure.axes[0].texts]


def test_lines_of_constant_effective_learning_rate_are_powers_of_ten(make_trained):
    """Rate over 1 - momentum is 0.1, 0.3, 100 and 0.6."""
    assert (0.1, 1.0, 10.0, 100.0) == points_data(make_trained()).panels[0].contours


def test_what_was_searched_and_is_not_shown_is_told(make_trained):
    assert "Searched too, and not shown: label_smoothing." in points_data(make_trained()).caption


def test_a_race_is_drawn_and_marked(make_trained, race):
    data = points_data(make_trained("val/classification_error < 0.06", protocol=race))
    figure = points_figure(data)

    assert "B = 64, race ended at 300 steps" == data.panels[1].title
    assert "A race ended the trials early" in data.caption
    assert "goal not met before the race ended" in words(figure)
    assert "goal not met" not in words(figure)
    assert {"race"} == {row["ended_by"] for row in data.table()}


def test_with_one_metaparameter_the_other_axis_is_the_best_value(make_trained):
    points = [{"learning_rate": rate} for rate in (0.01, 0.1, 1.0, 10.0)]
    data = points_data(make_trained("val/classification_error < 0.045", studies=with_points(*points)))
    panel = data.panels[0]

    assert [(1.0, 0.05)] == marks(panel)["infeasible"]
    assert [(0.1, 0.06), (10.0, 0.05)] == marks(panel)["goal not met"]
    assert [(0.01, 0.04)] == marks(panel)["goal met"]
    assert "Best val/classification_error" == panel.y_axis.label
    assert ["goal: val/classification_error < 0.045"] == [series.label for series in panel.of_kind("goal")]
    assert () == panel.contours


def test_a_trial_that_diverged_before_any_value_stands_at_the_worst(make_trained):
    """Trial 2 diverges; of the others the worst best value is 0.06."""
    studies = []
    for study in with_points(*({"learning_rate": rate} for rate in (0.1, 0.2, 0.3, 0.4))):
        rows = study.measurements
        metrics = {name: np.where(rows.trial_id == 2, np.nan, each) for name, each in rows.metrics.items()}
        studies.append(replace(study, measurements=replace(rows, metrics=metrics)))

    data = points_data(make_trained("val/classification_error < 0.045", studies=studies))

    assert [[(0.3, 0.06)]] * len(studies) == [marks(panel)["infeasible"] for panel in data.panels]
    assert "Trials that diverged before any value stand at the worst one." in data.caption


def test_other_metaparameters_are_axes_as_they_were_searched(make_trained):
    points = [{"momentum": 0.9, "beta": 0.1 * i, "decay": 10.0 ** (-i)} for i in range(1, 5)]
    panel = points_data(make_trained(studies=with_points(*points))).panels[0]

    assert ("Beta", "linear") == (panel.x_axis.label, panel.x_axis.scale)
    assert ("Decay", "log10") == (panel.y_axis.label, panel.y_axis.scale)


def test_points_that_are_all_alike_are_refused(make_trained):
    with pytest.raises(InputError, match=r"^digits/fc_128/nesterov_momentum has no points to tell apart: all trials "):
        points_data(make_trained(studies=with_points(*[{"learning_rate": 0.1}] * 4)))


def test_incomplete_trials_count_for_nothing(make_trained):
    studies = [
        replace(
            study,
            trials=tuple(
                trial.model_copy(update={"status": Status.INCOMPLETE}) if trial.trial_id == 1 else trial
                for trial in study.trials
            ),
        )
        for study in example_workload()
    ]
    data = points_data(make_trained(studies=studies))

    assert [0, 2, 3] == [row["trial_id"] for row in data.table() if row["batch_size"] == 64]
    assert 2 == len(marks(data.panels[0])["goal met"])


def test_the_table_has_a_row_for_each_trial(make_trained):
    rows = points_data(make_trained("val/classification_error < 0.06")).table()

    assert 12 == len(rows)
    assert ["goal met", "goal not met", "infeasible", "goal met"] == [row["outcome"] for row in rows[4:8]]
    assert {
        "batch_size": 64,
        "trial_id": 0,
        "outcome": "goal met",
        "is_best": True,
        "steps_to_goal": 300,
        "trained_steps": 300,
        "ended_by": "budget",
        "learning_rate": 0.01,
        "momentum": 0.9,
        "label_smoothing": 0.0,
    } == rows[4]
    assert (None, None) == (rows[5]["label_smoothing"], rows[5]["steps_to_goal"])
