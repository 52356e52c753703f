"""The improving rows beside an imported sweep: equal to the studies, made again where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.best_so_far import BestSoFar
from batchlab.core.goal import Goal
from batchlab.errors import LabError
from batchlab.store.archive.importer import import_archive
from batchlab.store.best_so_far import FILE, read_best_so_far
from batchlab.store.lab import Lab

WORKLOAD = "mnist/simple_cnn_base/sgd"
GOAL = Goal.read("val/classification_error < 0.3")


@pytest.fixture
def lab(tree, tmp_path) -> Lab:
    import_archive(tree, tmp_path / "lab", processes=1)
    return Lab.open(tmp_path / "lab")


def from_studies(lab, goal):
    results = lab.results(lab.find(WORKLOAD)).results
    return BestSoFar.join(BestSoFar.of(result, goal.metric, goal.is_lower_better) for result in results)


def check_equal(one, other):
    assert (one.metric, one.is_lower_better, one.end_steps) == (other.metric, other.is_lower_better, other.end_steps)
    for name in ("batch_size", "order", "trial_id", "step", "value"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def stored_file(lab):
    return lab.folder / "sweeps" / WORKLOAD.replace("/", "--") / FILE


def test_an_import_keeps_them(lab):
    assert stored_file(lab).exists()
    check_equal(read_best_so_far(lab, lab.find(WORKLOAD), GOAL), from_studies(lab, GOAL))


def test_they_are_read_from_their_file(lab, monkeypatch):
    monkeypatch.setattr(Lab, "results", None)

    assert len(read_best_so_far(lab, lab.find(WORKLOAD), GOAL)) > 0


@pytest.mark.parametrize("goal", ["train/cross_entropy_error < 1", "val/classification_error > 0.3"])
def test_another_metric_or_direction_comes_from_the_studies(lab, goal):
    goal = Goal.read(goal)

    check_equal(read_best_so_far(lab, lab.find(WORKLOAD), goal), from_studies(lab, goal))


@pytest.mark.parametrize("content", [None, b"", b"ARROW1\0\0 and no more"])
def test_a_lost_or_broken_file_is_done_without(lab, content):
    stored_file(lab).unlink()
    if content is not None:
        stored_file(lab).write_bytes(content)

    check_equal(read_best_so_far(lab, lab.find(WORKLOAD), GOAL), from_studies(lab, GOAL))


def test_a_sweep_without_a_finished_study_is_named(lab):
    for study in stored_file(lab).parent.glob("*/study.json"):
        study.unlink()
    stored_file(lab).unlink()

    with pytest.raises(LabError, match="mnist--simple_cnn_base--sgd .* no finished study"):
        read_best_so_far(lab, lab.find(WORKLOAD), GOAL)
