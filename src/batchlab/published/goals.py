"""The goals that the paper sets its workloads."""

from __future__ import annotations

from batchlab.core.goal import Goal

_GOALS = {  # by how a workload's name begins; where figures differ, the goal of Figure 1
    "mnist/fc_": "val/classification_error < 0.03",
    "mnist/simple_cnn_": "val/classification_error < 0.01",
    "mnist_subsets/": "val/classification_error < 0.02",
    "fashion_mnist/": "val/classification_error < 0.1",
    "cifar_10/": "val/classification_error < 0.3",
    "imagenet/resnet_50/": "val/classification_error < 0.25",
    "imagenet/vgg_11/": "val/classification_error < 0.35",
    "imagenet_subsets/": "val/classification_error < 0.3",
    "open_images_v4/": "val/average_precision > 0.31",
    "lm1b/transformer_wide/": "val/cross_entropy_error < 4.2",
    "lm1b/transformer_narrow_and_shallow/": "val/cross_entropy_error < 4.2",
    "lm1b/": "val/cross_entropy_error < 3.9",
    "common_crawl/": "val/cross_entropy_error < 3.9",
    "solution_quality/mnist/": "val/classification_error < 0.01",
    "solution_quality/fashion_mnist/": "val/classification_error < 0.1",
}


def paper_goal(workload: str) -> Goal | None:
    """Return the goal that the paper sets a workload, or None for one that is not the paper's.

    >>> str(paper_goal("cifar_10/resnet_8/sgd"))
    'val/classification_error < 0.3'
    """
    return next((Goal.read(goal) for start, goal in _GOALS.items() if workload.startswith(start)), None)
