"""How often the intervals of a fitted link hold the truth, simulated.

    python benchmarks/link_coverage.py [--draws 2000]

Two workers sum five sizes over a link of known latency and bandwidth, six repeats each, as gloo does. Repeats scatter,
and where there are faults every size is off by one of its own. The software takes 0.15 ms of every message.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np
from coverage import tabulate

from batchlab.analysis.interval import Interval
from batchlab.analysis.times.all_reduce import gloo_seconds
from batchlab.analysis.times.link import SeenLink, SumTimes, fit_link

SIZES = [4096, 16384, 65536, 262144, 1048576]
REPEATS = 6
SOFTWARE = 0.15e-3
MEMORY = 2e9
"""Bytes per second of workers that no link joins."""

LINKS = [(0.002, 1.25e7), (0.010, 2.5e6)]
SCATTERS = [(0.05, 0.0), (0.05, 0.05), (0.2, 0.0)]


def times(
    chance: np.random.Generator, num_bytes: int, latency: float, bandwidth: float, noise: float, fault: float
) -> SumTimes:
    seconds = gloo_seconds(2, num_bytes, latency, bandwidth) * np.exp(fault * chance.normal())
    repeats = seconds * np.exp(noise * chance.normal(size=REPEATS))
    return SumTimes(num_bytes=num_bytes, workers=2, seconds=tuple(repeats.tolist()))


def holds(interval: Interval | None, truth: float) -> bool:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return (low is None or low <= truth) and (high is None or truth <= high)


def cover(link: tuple[float, float], scatter: tuple[float, float], draws: int) -> dict[str, object]:
    """Return the shares of draws in which each interval holds the truth."""
    chance, (latency, bandwidth), (noise, fault) = np.random.default_rng(0), link, scatter
    held = np.zeros(3)
    for _ in range(draws):
        fitted = fit_link([times(chance, size, latency + SOFTWARE, bandwidth, noise, fault) for size in SIZES])
        without = times(chance, SIZES[0], SOFTWARE, MEMORY, noise, fault)
        seen = SeenLink(asked="", means="", round_trip=0.0, throughput=0.0, without=without)
        held += [
            holds(fitted.latency_interval, latency + SOFTWARE),
            holds(fitted.bandwidth_interval, bandwidth),
            holds(seen.added_latency(fitted).interval, latency),
        ]
    message, transfer, added = held / draws
    name = f"{1e3 * latency:g} ms, {8e-6 * bandwidth:g} mbit/s, noise {noise:.0%}, faults {fault:.0%}"
    return {"link": name, "latency of a message": message, "of it the link's": added, "bandwidth": transfer}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()
    print(tabulate([cover(*case, options.draws) for case in itertools.product(LINKS, SCATTERS)]))


if __name__ == "__main__":
    main()
