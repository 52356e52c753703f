"""How many training examples the paper's datasets have: what an epoch is."""

from __future__ import annotations

LM1B_SENTENCES = 30_301_028
MNIST_IMAGES = 55_000
"""Of Fashion MNIST too: 5,000 of the 60,000 official ones validate."""

_BY_DATASET = {"mnist": MNIST_IMAGES, "fashion_mnist": MNIST_IMAGES, "lm1b": LM1B_SENTENCES}


def published_train_examples(workload: str) -> int | None:
    """Return the training examples of a workload of the published data; None where they are not known here.

    >>> published_train_examples("lm1b/transformer_base/sgd")
    30301028
    >>> published_train_examples("solution_quality/mnist/simple_cnn_base/nesterov_momentum")
    55000
    """
    return _BY_DATASET.get(workload.removeprefix("solution_quality/").split("/")[0])
