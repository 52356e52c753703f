"""Goals, numbers of trials and sizes, as the paper has them (Shallue et al. 2019, JMLR 20(112))."""

from __future__ import annotations

import pytest

from batchlab.published.goals import paper_goal
from batchlab.published.inventory import inventory
from batchlab.published.sizes import LM1B_SENTENCES, MNIST_IMAGES
from batchlab.published.trials import paper_trials


@pytest.mark.parametrize(
    ("workload", "goal"),
    [
        ("mnist/fc_1024/sgd", "val/classification_error < 0.03"),
        ("mnist/simple_cnn_base/nesterov_momentum", "val/classification_error < 0.01"),
        ("open_images_v4/resnet_50/nesterov_momentum", "val/average_precision > 0.31"),
        ("lm1b/transformer_wide/nesterov_momentum", "val/cross_entropy_error < 4.2"),
        ("lm1b/transformer_base/nesterov_momentum", "val/cross_entropy_error < 3.9"),
    ],
)
def test_goals_of_the_paper(workload, goal):
    assert goal == str(paper_goal(workload))


def test_every_workload_of_the_archive_has_a_goal_and_others_have_none():
    assert all(paper_goal(study.workload) for study in inventory())
    assert paper_goal("digits/fc_128/sgd") is None


def test_three_workloads_have_half_as_many_trials():
    numbers = {study.workload: paper_trials(study.workload) for study in inventory()}

    assert {50, 100} == set(numbers.values())
    assert 3 == sum(number == 50 for number in numbers.values())


def test_sizes_of_the_training_sets():
    assert (30_301_028, 60_000 - 5_000) == (LM1B_SENTENCES, MNIST_IMAGES)
