"""What it takes K workers to add up their gradients: the two usual ways, as functions of K.

With n bytes, a bandwidth and a latency of the link (measurements.md, 10):

- ring: 2 (K - 1) / K * n / bandwidth + 2 (K - 1) * latency
- tree (halving and doubling): 2 (K - 1) / K * n / bandwidth + 2 log2(K) * latency, the logarithm rounded up
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["ring", "tree"]
FORMS: tuple[Form, ...] = ("ring", "tree")


@dataclass(frozen=True)
class AllReduce:
    """The exchange of gradients: how it is done and what the link takes."""

    form: Form
    latency: float
    """Seconds of one message, however short."""

    transfer_seconds: float
    """Bytes of the gradients over the bandwidth of the link: how long it takes to send them once."""

    def seconds(self, workers: int) -> float:
        """Return how long one exchange takes; a worker alone exchanges nothing.

        >>> link = AllReduce("ring", latency=0.001, transfer_seconds=0.4)
        >>> [round(link.seconds(workers), 4) for workers in (1, 2, 4)]
        [0.0, 0.402, 0.606]
        """
        return latencies(self.form, workers) * self.latency + transfers(workers) * self.transfer_seconds


def latencies(form: Form, workers: int) -> int:
    """Return how many messages follow each other.

    >>> [latencies("ring", workers) for workers in (1, 2, 8)], [latencies("tree", workers) for workers in (1, 2, 8)]
    ([0, 2, 14], [0, 2, 6])
    """
    return 2 * (workers - 1) if form == "ring" else 2 * (workers - 1).bit_length()


def transfers(workers: int) -> float:
    """Return how many times the bytes of the gradients pass a worker's link.

    >>> [transfers(workers) for workers in (1, 2, 4)]
    [0.0, 1.0, 1.5]
    """
    return 2 * (workers - 1) / workers
