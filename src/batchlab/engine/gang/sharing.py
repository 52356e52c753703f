"""How a worker takes part in a trial that several train together: which examples are its own, and what it needs of the
others.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from batchlab.engine.forward import Forward
from batchlab.engine.gang.exchange import ALONE, Exchange
from batchlab.engine.gang.share import OBSERVED_BY_ONE, Share
from batchlab.engine.gang.whole_batch import WholeBatch
from batchlab.engine.microbatch import ghost_size_of, halved
from batchlab.errors import BatchlabError, SpecError
from batchlab.models.base import Network

Beside = Callable[[slice, int], AbstractContextManager[object]]
"""From places in a batch, and its size, to what lets a module compute them as if it had its whole microbatch."""

_NOTHING = nullcontext()


def _alone(part: slice, batch_size: int) -> AbstractContextManager[object]:
    """Return what one worker needs beside: nothing."""
    return _NOTHING


@dataclass(frozen=True)
class Sharing:
    """A worker's part in a trial."""

    exchange: Exchange = ALONE
    share: Share | None = None
    """Its own places of a microbatch; None where it computes all of them."""

    beside: Beside = _alone

    def smaller(self, microbatch_size: int, network: nn.Module) -> int:
        """Return half of a microbatch that ran out of memory; BatchlabError where others are at work with its size."""
        if self.share is not None:
            raise BatchlabError(
                f"The device of worker {self.exchange.rank} has not enough memory for its share of"
                f" {microbatch_size} examples: take a smaller engine.microbatch_size."
            )
        return halved(microbatch_size, network)


def share_of(network: nn.Module, rank: int, size: int) -> Share:
    """Return what one of several workers computes of each microbatch of a network.

    A module of somebody else's may normalise over a microbatch or draw for it, which takes all workers at each.
    """
    return Share(rank, size, ghost_size_of(network), needs_all=not isinstance(network, Network))


def share_trials(
    exchange: Exchange,
    forward: Forward,
    batch_size: int,
    microbatch_size: int,
    *,
    is_measured: bool,
    is_observed: bool,
) -> tuple[Sharing, int]:
    """Make ready to train as one of several workers, or alone; SpecError where that cannot be done.

    Returned with it is the size of a microbatch, which is what all workers compute at once: one that was measured, by
    each for itself, is as many times as large. A module of somebody else's may normalise over it or draw for it, so
    that it stays what it is for one worker.
    """
    if exchange.size == 1:
        return Sharing(), microbatch_size
    if is_observed:
        raise SpecError(OBSERVED_BY_ONE)
    network = forward.network
    is_ours = isinstance(network, Network)
    share = share_of(network, exchange.rank, exchange.size)
    forward.parameters.share(exchange)
    if is_ours:
        scaled = microbatch_size * exchange.size if is_measured else microbatch_size
        microbatch_size = max(scaled, share.fewest)
    (microbatch_size,) = exchange.agree([microbatch_size])
    share.check(batch_size, microbatch_size)
    if is_ours:
        return Sharing(exchange, share), microbatch_size
    if len(forward.parameters.values) > 1 and any(isinstance(each, _BatchNorm) for each in network.modules()):
        raise SpecError("engine.pack_size: trials with batch normalisation train one by one on several workers; use 1.")
    return Sharing(exchange, share, WholeBatch(exchange, microbatch_size).at), microbatch_size
