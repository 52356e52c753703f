"""The gradients of one trial, summed over its workers bucket by bucket while the backward pass goes on."""

from __future__ import annotations

from collections import Counter

from torch import Tensor

from batchlab.engine.gang.exchange import Exchange, Sum
from batchlab.errors import TrainerError
from batchlab.optim.layout import Layout

BUCKET_BYTES = 1 << 20
"""The fewest bytes of gradients that are sent at once: less is not worth a message of its own."""


class Buckets:
    """Consecutive segments of a row of gradients: each bucket is sent once all of its gradients are there.

    Every worker has to send them in one order. It is the order in which they were complete at the first worker in the
    first step, in which all are sent at the end.
    """

    def __init__(self, layout: Layout, row: Tensor, exchange: Exchange) -> None:
        self._exchange = exchange
        self._slices: list[Tensor] = []
        self._bucket_of: dict[str, int] = {}
        first = 0
        for index, name in enumerate(layout.names):
            self._bucket_of[name] = len(self._slices)
            end = layout.starts[index + 1]
            is_full = (end - first) * row.element_size() >= BUCKET_BYTES
            if is_full or index == len(layout.names) - 1:
                self._slices.append(row[first:end])
                first = end
        self._sizes = Counter(self._bucket_of.values())
        self._order: list[int] | None = None
        self._is_early = True
        self._ready: list[str] = []
        self._missing: Counter[int] = Counter()
        self._sums: list[Sum] = []

    def start(self) -> None:
        """Begin with the backward pass after which the gradients are complete."""
        self._ready, self._sums, self._missing = [], [], Counter(self._sizes)

    def add(self, name: str) -> None:
        """Take note that the gradient of a parameter is there; send what can be sent."""
        if self._order is None:
            self._ready.append(name)
        elif self._is_early:
            self._send_complete(name, self._order)

    def _send_complete(self, name: str, order: list[int]) -> None:
        bucket = self._bucket_of[name]
        self._missing[bucket] -= 1
        if self._missing[bucket] < 0:
            raise TrainerError(
                f"The gradient of {name} came in several parts, but in one before: a module that changes its graph so"
                " cannot train on several workers; take one."
            )
        while len(self._sums) < len(order) and self._missing[order[len(self._sums)]] == 0:
            self._send(order[len(self._sums)])

    def finish(self) -> None:
        """Send the rest and wait for all."""
        for bucket in (self._order or range(len(self._slices)))[len(self._sums) :]:
            self._send(bucket)
        for each in self._sums:
            each.wait()
        if self._order is None:
            self._learn()

    def _send(self, bucket: int) -> None:
        self._sums.append(self._exchange.begin(self._slices[bucket]))

    def _learn(self) -> None:
        """Agree on the order in which buckets will be sent.

        Where a gradient came in several parts, as of a module that computes some of its layers anew, nobody knows which
        one is the last: then all are sent at the end, in every step.
        """
        complete = {self._bucket_of[name]: place for place, name in enumerate(self._ready)}
        order = sorted(range(len(self._slices)), key=lambda bucket: complete.get(bucket, len(self._ready)))
        is_early = max(Counter(self._ready).values(), default=1) == 1
        *self._order, early = self._exchange.agree([*order, int(is_early)])
        self._is_early = bool(early)
