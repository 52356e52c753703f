from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.core.goal import Goal
from batchlab.core.protocol import Protocol
from batchlab.core.trial import Status
from batchlab.plots.paper import paper_data

WORKLOAD = "imagenet/resnet_50/nesterov_momentum"
GOAL = Goal.read("val/classification_error < 0.25")


def rows_of(study, smoothing):
    """(value, step) of all rows of the complete trials with that label smoothing; a missing one is 0."""
    trials = [
        trial.trial_id
        for trial in study.trials
        if trial.status is Status.COMPLETE and trial.metaparameters.get("label_smoothing", 0.0) == smoothing
    ]
    table = study.measurements
    rows = zip(table.trial_id.tolist(), table.metrics[GOAL.metric].tolist(), table.step.tolist(), strict=True)
    return trials, [(value, step) for trial_id, value, step in rows if trial_id in trials]


@pytest.mark.parametrize(("i", "smoothing"), [(0, 0.0), (1, 0.01), (2, 0.1)])
def test_both_panels_by_label_smoothing(i, smoothing, lab, paper):
    best, steps = (panel.of_kind("measured")[i] for panel in paper(7).panels)
    groups = {study.batch_size: rows_of(study, smoothing) for study in lab[WORKLOAD]}
    groups = {size: group for size, group in groups.items() if group[0]}

    assert best.label == steps.label == f"Label smoothing {smoothing:g}"
    assert {size: min(rows)[0] for size, (_, rows) in groups.items()} == {p.x: p.y for p in best.points}
    assert {
        size: min((step for value, step in rows if value < 0.25), default=None) for size, (_, rows) in groups.items()
    } == {p.x: p.y for p in steps.points}
    assert {size: len(trials) for size, (trials, _) in groups.items()} == {p.x: p.num_trials for p in best.points}


def test_the_groups_share_the_first_complete_trials(paper):
    points = [point for series in paper(7).panels[0].of_kind("measured") for point in series.points]
    totals = {size: sum(p.num_trials for p in points if p.x == size) for size in (64, 128, 1024, 8192)}

    assert totals == {64: 12, 128: 12, 1024: 12, 8192: 12}


def test_perfect_scaling_is_anchored_to_the_strongest_smoothing(paper):
    panel = paper(7).panels[1]
    (guide,) = panel.of_kind("perfect scaling")
    strongest = panel.of_kind("measured")[2]

    assert (strongest.points[0].y, strongest.points[0].y / 2) == (guide.points[0].y, guide.points[1].y)
    assert not paper(7).panels[0].of_kind("perfect scaling")


def test_trials_with_another_smoothing_are_left_out_and_counted(lab):
    def changed(workload):
        return [study_with(study, 0.05) for study in lab[workload]]

    panel = paper_data(7, changed).panels[0]
    num_others = sum(len(rows_of(study, 0.1)[0]) for study in lab[WORKLOAD])

    assert [series.label for series in panel.series] == ["Label smoothing 0", "Label smoothing 0.01"]
    assert panel.notes == (f"{num_others} trials with another label smoothing are left out",)


def study_with(study, smoothing):
    """The study with `smoothing` in the place of 0.1."""
    trials = [
        trial.model_copy(update={"metaparameters": trial.metaparameters | {"label_smoothing": smoothing}})
        if trial.metaparameters.get("label_smoothing") == 0.1
        else trial
        for trial in study.trials
    ]
    return type(study)(**{**vars(study), "trials": tuple(trials)})


def test_axes(drawn):
    left, right = drawn(7).axes

    assert (left.get_xscale(), left.get_yscale(), left.get_ylabel()) == ("log", "linear", "Validation error")
    assert (right.get_yscale(), right.yaxis.get_transform().base, right.get_ylabel()) == ("log", 2, "Steps to the goal")


def test_the_best_value_of_a_raced_lab_is_refused_and_the_steps_are_shown(lab):
    def raced(workload):
        return [replace(study, protocol=Protocol(kind="race", race_factor=1.5)) for study in lab[workload]]

    left, right = paper_data(7, raced).panels

    assert () == left.series
    assert left.notes[0].startswith("The best value without a budget is not known of a race that ended at step ")
    assert f'run {WORKLOAD} with protocol = "full"' in left.notes[0]
    assert ["Label smoothing 0", "Label smoothing 0.01", "Label smoothing 0.1"] == [
        series.label for series in right.of_kind("measured")
    ]
