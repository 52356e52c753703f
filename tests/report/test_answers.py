"""A stored lab and its answers."""

from __future__ import annotations

import dataclasses
import shutil

import pytest

from batchlab.core.goal import Goal
from batchlab.errors import InputError, LabError
from batchlab.report.answers import read_results, shortfalls, summarise_results, summarise_sweep
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab


@pytest.fixture(scope="module")
def digits(tmp_path_factory, make_digits):
    """Two studies of a network, read only."""
    folder = tmp_path_factory.mktemp("digits")
    run_sweep(make_digits({"sweep.max_steps": 3, "sweep.trials": 1}), folder / "lab", num_workers=1)
    return Lab.open(folder / "lab")


def test_the_one_sweep_of_a_lab_is_summarised_for_its_own_goal(lab):
    results, summary = summarise_sweep(lab)

    assert results.sweep.name == "nqm"
    assert str(summary.goal) == "val/risk <= 0.1"
    assert [row.batch_size for row in summary.rows] == [1, 16, 256]


def test_another_goal_is_answered_from_the_same_curves(lab):
    _, summary = summarise_sweep(lab, goal=Goal.read("val/risk <= 0.2"))

    assert str(summary.goal) == "val/risk <= 0.2"


@pytest.mark.parametrize(
    ("goal", "metric", "read"),
    [
        (None, None, ["val/classification_error"]),
        ("val/cross_entropy_error < 1", None, ["val/cross_entropy_error"]),
        (None, "val/cross_entropy_error", ["val/cross_entropy_error", "val/classification_error"]),
        ("val/los < 1", None, ["val/cross_entropy_error", "val/classification_error"]),
        (None, "val/los", ["val/cross_entropy_error", "val/classification_error"]),
    ],
)
def test_what_is_asked_for_is_read_and_all_where_it_was_not_measured(digits, goal, metric, read):
    results = read_results(digits, digits.find(), Goal.read(goal) if goal else None, metric)

    assert [read] * 2 == [list(result.measurements.metrics) for result in results.results]


def test_what_is_not_finished_and_too_few_trials_are_told(lab):
    shutil.rmtree(lab.folder / "sweeps" / "nqm" / "16")
    results, summary = summarise_sweep(lab, trials=99)

    assert shortfalls(results, summary, 99) == [
        "not finished yet: batch size 16 of sweep nqm; `batchlab run` goes on",
        "fewer than 99 complete trials at batch size 1, 256; those that there are were used",
    ]


def test_a_sweep_without_a_finished_study_says_so(lab):
    for batch_size in (1, 16, 256):
        shutil.rmtree(lab.folder / "sweeps" / "nqm" / str(batch_size))

    with pytest.raises(InputError, match="Sweep nqm: none of its 3 studies is finished yet; `batchlab run` goes on"):
        summarise_sweep(lab)


def test_nothing_is_missing_from_a_whole_sweep(lab):
    assert [] == shortfalls(*summarise_sweep(lab))


def test_a_sweep_of_which_nothing_can_be_read_is_an_error(lab):
    for batch_size in (1, 16, 256):
        (lab.folder / "sweeps" / "nqm" / str(batch_size) / "study.json").write_text("")

    with pytest.raises(LabError, match="study.json"):
        summarise_sweep(lab)


def test_a_sweep_without_a_goal_asks_for_one(lab):
    results = lab.results(lab.find())
    without = dataclasses.replace(results, sweep=dataclasses.replace(results.sweep, goal=None))

    with pytest.raises(InputError, match="No goal is known for nqm/quadratic/sgd; give one"):
        summarise_results(without)
