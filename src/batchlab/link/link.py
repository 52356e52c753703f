"""What a link is asked to be, read from its text."""

from __future__ import annotations

from dataclasses import dataclass

from batchlab.core.amounts import read_bandwidth, read_pairs
from batchlab.core.duration import read_seconds
from batchlab.errors import InputError, shown

PLACE = "--link"
SHORTEST, LONGEST = 1e-6, 10.0
"""Seconds of latency: less than a microsecond cannot be made, and nobody waits for more than ten seconds."""

SLOWEST, FASTEST = 1.25e5, 1.25e10
"""Bytes per second, 1 mbit to 100 gbit."""

_MEGABIT = 1e6 / 8


@dataclass(frozen=True)
class Link:
    """What every worker's way to the others is like; None leaves it as it is."""

    latency: float | None = None
    """Seconds from one worker to another, one way: a round trip takes twice as long."""

    bandwidth: float | None = None
    """Bytes per second that a worker sends at the most, headers of packets included; as many come in."""

    @classmethod
    def parse(cls, text: str) -> Link:
        """Return the link of `latency=2ms,bandwidth=100mbit`; InputError for anything else.

        >>> Link.parse("latency=2ms,bandwidth=100mbit")
        Link(latency=0.002, bandwidth=12500000.0)
        """
        readers = {"latency": read_seconds, "bandwidth": read_bandwidth}
        found = read_pairs(text, PLACE, readers, example="latency=2ms,bandwidth=100mbit")
        link = cls(**found)
        if link.latency is not None and not SHORTEST <= link.latency <= LONGEST:
            raise InputError(f"{PLACE} {shown(text)}: give a latency from 1us to 10s.")
        if link.bandwidth is not None and not SLOWEST <= link.bandwidth <= FASTEST:
            raise InputError(f"{PLACE} {shown(text)}: give a bandwidth from 1mbit to 100gbit.")
        return link

    def __str__(self) -> str:
        """Return it as `parse` reads it: the same text for the same link.

        >>> str(Link.parse("bandwidth=0.1gbit, latency=2000us"))
        'latency=2ms,bandwidth=100mbit'
        """
        latency = [] if self.latency is None else [f"latency={1e3 * self.latency:.12g}ms"]
        bandwidth = [] if self.bandwidth is None else [f"bandwidth={self.bandwidth / _MEGABIT:.12g}mbit"]
        return ",".join(latency + bandwidth)
