"""What it takes K workers to add up their gradients: the two usual ways, and gloo's, as functions of K.

With n bytes, a bandwidth and a latency of the link:

- ring: 2 (K - 1) / K * n / bandwidth + 2 (K - 1) * latency
- tree (halving and doubling): 2 (K - 1) / K * n / bandwidth + 2 log2(K) * latency, the logarithm rounded up
- gloo: a ring in which the receiver of every segment asks for it first, and two segments are under way at a time. A
  worker's chunk has p >= 2 segments of 1 MiB at the most, which take s seconds each to send. Then a sum takes
  4 latency + 4 s + ((K - 1) p - 2) max(2 s, s + 2 latency): with small n that is twice the latencies of a ring, with
  large n its transfer. (gloo/allreduce.cc and its TCP transport; held against a link of known latency and bandwidth in
  docs/results/link.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Form = Literal["ring", "tree"]
FORMS: tuple[Form, ...] = ("ring", "tree")

_SEGMENT_BYTES = 1 << 20
_ELEMENT_BYTES = 4


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


def gloo_seconds(workers: int, num_bytes: float, latency: float, bandwidth: float) -> float:
    """Return how long gloo takes to sum so many bytes; see the top of this file.

    Of fewer elements than two for each worker most segments are empty, and nobody waits for them: a plain ring.

    >>> [round(gloo_seconds(workers, 4096, 0.001, 1e9), 4) for workers in (1, 2, 4)]
    [0.0, 0.004, 0.012]
    >>> [round(gloo_seconds(workers, 4e6, 0.001, 1e7), 3) for workers in (2, 4)]
    [0.404, 0.604]
    """
    if workers == 1:
        return 0.0
    if num_bytes < 2 * _ELEMENT_BYTES * workers:
        return latencies("ring", workers) * latency
    per_worker = max(2, math.ceil(num_bytes / _SEGMENT_BYTES / workers))
    segment = num_bytes / bandwidth / (per_worker * workers)
    two = max(2 * segment, segment + 2 * latency)
    return 4 * latency + 4 * segment + ((workers - 1) * per_worker - 2) * two
