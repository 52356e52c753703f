"""How often the intervals of what a step waits for, its share of the sums or its lag, hold the truth, simulated.

    python benchmarks/exchange_coverage.py [--draws 2000]

A step of 10 ms and 0.5 ms for an example sums 400,004 bytes over a link of 2 ms and 100 mbit/s. It waits
for a known share of that, or for all of it and a known lag. Link and steps are measured as `scaling` does it, on one
worker and two, six repeats each, and fitted. Repeats scatter, and where there are faults every setting is off by one of
its own. What is said of a step on eight workers is held against one that is measured there.

Near a share of one the fit may tell a lag where there is a share, or a share where there is a lag. The truth of a
share is then 1 + lag / sums, that of a lag (share - 1) * sums: below zero, where an interval holds it that has no lower
bound.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from coverage import tabulate
from link_coverage import SIZES, holds, times

from batchlab.analysis.times.link import FittedLink, StepExchange, fit_link
from batchlab.analysis.times.throughput_fit import StepTimes, ThroughputFit, fit_throughput

REPEATS = 6
T0, TAU = 0.010, 2000.0
PAYLOADS = (400_000, 4)
LOCAL, MANY = 32, 8
"""The local batch size and the workers of a step that was not measured."""

LINK = FittedLink(form="gloo", latency=0.002, bandwidth=1.25e7)


@dataclass(frozen=True)
class Case:
    """How the measurements of one row are made."""

    share: float
    lag: float = 0.0
    batch_sizes: tuple[int, ...] = (16, 64, 256)
    noise: float = 0.05
    fault: float = 0.0

    @property
    def name(self) -> str:
        waits = f"share {self.share:.0%}" if not self.lag else f"lag {1e3 * self.lag:g} ms"
        faults = f", faults {self.fault:.0%}" if self.fault else ""
        return f"{waits}, {len(self.batch_sizes)} batch sizes, noise {self.noise:.0%}{faults}"


CASES = [
    Case(0.0),
    Case(0.3),
    Case(0.6),
    Case(0.6, fault=0.05),
    Case(0.6, noise=0.2),
    Case(0.6, batch_sizes=(16, 256)),
    Case(0.6, batch_sizes=(4, 16, 64, 256, 1024)),
    Case(1.0),
    Case(1.0, lag=0.002),
    Case(1.0, lag=0.02),
    Case(1.0, lag=0.02, fault=0.05),
    Case(1.0, lag=0.02, noise=0.2),
    Case(1.0, lag=0.02, batch_sizes=(16, 256)),
]


def step_times(chance: np.random.Generator, case: Case, batch_size: int, workers: int) -> StepTimes:
    exchange = StepExchange(link=LINK, payloads=PAYLOADS, waited=case.share, lag=case.lag)
    seconds = T0 + batch_size / workers / TAU + exchange.seconds(workers)
    repeats = seconds * np.exp(case.fault * chance.normal() + case.noise * chance.normal(size=REPEATS))
    return StepTimes(batch_size=batch_size, workers=workers, seconds=tuple(repeats.tolist()))


def draw(chance: np.random.Generator, case: Case) -> ThroughputFit:
    """Return the fit of one measurement of a made machine."""
    sums = [times(chance, size, LINK.latency, LINK.bandwidth, case.noise, case.fault) for size in SIZES]
    steps = [step_times(chance, case, size, workers) for workers in (1, 2) for size in case.batch_sizes]
    return fit_throughput(steps, StepExchange(link=fit_link(sums), payloads=PAYLOADS))


def cover(case: Case, draws: int) -> dict[str, object]:
    """Return the shares of draws in which the interval that is shown holds the truth, and in which it is of a lag."""
    chance, alone = np.random.default_rng(0), StepExchange(link=LINK, payloads=PAYLOADS).alone(2)
    beyond = (case.share - 1) * alone + case.lag
    held = lags = beside = 0
    widths = []
    for _ in range(draws):
        fit = draw(chance, case)
        is_lag = fit.lag_interval is not None
        interval, truth = (fit.lag_interval, beyond) if is_lag else (fit.waited_interval, 1 + beyond / alone)
        held += holds(interval, truth)
        lags += is_lag
        beside += holds(
            fit.step_seconds(LOCAL, MANY).interval, step_times(chance, case, LOCAL * MANY, MANY).step_seconds.value
        )
        if interval is not None and interval.high is not None:
            widths.append((interval.high - (interval.low or 0.0)) / (alone if is_lag else 1.0))
    return {
        "made": case.name,
        "held": held / draws,
        "told as a lag": lags / draws,
        "step on 8 workers": beside / draws,
        "width": float(np.median(widths)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()
    print(tabulate([cover(case, options.draws) for case in CASES]))


if __name__ == "__main__":
    main()
