from __future__ import annotations

from dataclasses import replace

import pytest

from batchlab.analysis import example_workload
from batchlab.core.goal import Goal
from batchlab.errors import InputError
from batchlab.plots import budgets_data, budgets_figure
from batchlab.plots.budgets import Budget, spaced_budgets

GOAL = Goal.read("val/classification_error < 0.08")


def curves(panel):
    """The value by batch size, for each budget."""
    return {series.label: {point.x: point.y for point in series.points} for series in panel.series}


def test_the_best_value_within_a_budget_of_steps(make_trained):
    """Batch size 16 is measured every 400 steps, 64 every 100, 256 every 50 and only up to step 150.

    Before that they have the 0.9 of networks that were not trained, which is the best of no budget.
    """
    found = curves(budgets_data(make_trained()).panels[0])

    assert ["50 steps", "100 steps", "200 steps"] == list(found)
    assert {16: None, 64: None, 256: 0.2} == found["50 steps"]
    assert {16: None, 64: 0.2, 256: 0.07} == found["100 steps"]
    assert {16: None, 64: 0.07, 256: None} == found["200 steps"]


def test_a_budget_of_nothing_has_the_networks_as_they_start():
    points = Budget(0, "steps").series(example_workload(), GOAL).points

    assert {16: 0.9, 64: 0.9, 256: 0.9} == {point.x: point.y for point in points}


def test_a_trial_that_diverged_does_not_make_a_batch_size_take_part():
    """Of batch size 64 only the trial that diverged, number 2, is measured after step 0 here."""
    study = example_workload()[1]
    rows = study.measurements
    early = replace(study, measurements=rows.where((rows.step == 0) | (rows.trial_id == 2)))

    assert () == Budget(100, "steps").series([early], GOAL).points
    assert [0.2] == [point.y for point in Budget(100, "steps").series([study], GOAL).points]


def test_the_best_value_within_a_budget_of_epochs(make_trained):
    """An epoch of 6,400 examples is 400, 100 or 25 steps; the studies trained for 3, 3 and 6 epochs."""
    sheet = budgets_data(make_trained(num_train_examples=6400))
    found = curves(sheet.panels[1])

    assert "Epoch budgets" == sheet.panels[1].title
    assert ["1 epoch", "2 epochs"] == list(found)
    assert {16: 0.2, 64: 0.2, 256: None} == found["1 epoch"]
    assert {16: 0.07, 64: 0.07, 256: 0.2} == found["2 epochs"]
    assert "An epoch is 6,400 examples." in sheet.caption


def test_without_the_size_of_an_epoch_budgets_are_of_examples(make_trained):
    sheet = budgets_data(make_trained())

    assert "Example budgets" == sheet.panels[1].title
    assert {16: 0.2, 64: 0.2, 256: None} == curves(sheet.panels[1])["10,000 examples"]


def test_a_race_tells_of_budgets_up_to_its_end_and_is_marked(make_trained, race):
    full, raced = budgets_data(make_trained()), budgets_data(make_trained(protocol=race))

    assert curves(full.panels[0]) == curves(raced.panels[0])
    assert "A race ended studies early: of longer budgets they tell nothing." in raced.caption
    assert "race" not in full.caption


def test_no_line_leads_over_a_study_that_did_not_train_that_long(make_trained):
    """Batch size 64 between 16 and 256 ends at step 60 here."""
    studies = [replace(study, end_step=60 if study.batch_size == 64 else 4000) for study in example_workload()]
    figure = budgets_figure(budgets_data(make_trained(studies=studies)))
    line = next(line for line in figure.axes[0].lines if line.get_label() == "2,000 steps")

    assert [16, 64, 256] == line.get_xdata().tolist()
    assert [False, True, False] == [value != value for value in line.get_ydata()]


def test_axes_and_caption(make_trained):
    figure = budgets_figure(budgets_data(make_trained()))

    assert {("Batch size (examples per update)", "Best val/classification_error", "log")} == {
        (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) for ax in figure.axes
    }
    assert "n = 3 complete trials" in figure.get_suptitle().replace("\n", " ")


def test_high_is_best_where_the_goal_says_so(make_trained):
    """The highest error of batch size 64 within 200 steps is that at step 0, and it was evaluated at step 100."""
    found = curves(budgets_data(make_trained("val/classification_error > 0.5")).panels[0])

    assert {16: None, 64: 0.9, 256: None} == found["200 steps"]


def test_budgets_are_spaced_up_to_what_two_studies_share():
    assert [20, 50, 100, 200, 500, 1000, 2000] == spaced_budgets([2000, 4999, 2000])
    assert [5, 10, 20, 50, 100, 200, 500] == spaced_budgets([999])
    assert [] == spaced_budgets([0])


def test_budgets_have_names():
    assert [
        "1 step",
        "500 steps",
        "5,000 steps",
        "2,000,000 steps",
        "3,000,000,000 examples",
        "0.2 epochs",
        "10,000 epochs",
    ] == [
        Budget(amount, unit).label
        for amount, unit in (
            (1, "steps"),
            (500, "steps"),
            (5e3, "steps"),
            (2e6, "steps"),
            (3e9, "examples"),
            (0.2, "epochs"),
            (1e4, "epochs"),
        )
    ]


def test_a_sweep_without_a_value_is_refused(make_trained):
    studies = [replace(study, trials=study.trials[2:3]) for study in example_workload()]  # the one that diverged

    with pytest.raises(
        InputError, match=r"has no complete trial with a value of val/classification_error after step 0\.$"
    ):
        budgets_data(make_trained(studies=studies))


def test_budgets_that_all_end_before_the_first_evaluation_are_refused(make_trained):
    """Batch size 16 is measured every 400 steps; the largest budget below its end, 399, is 200."""
    study = replace(example_workload()[0], end_step=399)

    with pytest.raises(InputError, match="has no value of val/classification_error between step 0 and the largest"):
        budgets_data(make_trained(studies=[study]))
