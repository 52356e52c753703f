"""How many complete trials of each study the paper uses."""

from __future__ import annotations

TRIALS = 100
"""For each batch size of most workloads."""

_FEWER = {
    "common_crawl/transformer_base/nesterov_momentum": 50,
    "lm1b/lstm/nesterov_momentum": 50,
    "lm1b/transformer_shallow/sgd": 50,
}


def paper_trials(workload: str) -> int:
    """Return how many complete trials the paper uses of each study of a workload.

    >>> paper_trials("mnist/fc_1024/sgd"), paper_trials("lm1b/lstm/nesterov_momentum")
    (100, 50)
    """
    return _FEWER.get(workload, TRIALS)
