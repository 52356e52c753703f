"""The link between workers: latency and bandwidth, fitted to the times of sums over all workers of some bytes.

Sums of few bytes tell the latency, those of many the bandwidth; a network has gradients of one size and could tell only
one of them well. Errors are relative, so residuals are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from batchlab.analysis.answers.confirmed import median_interval
from batchlab.analysis.interval import NO_INTERVAL, Interval
from batchlab.analysis.times.all_reduce import FORMS, gloo_seconds, latencies, transfers
from batchlab.analysis.times.expected import Expected
from batchlab.errors import InputError

SumForm = Literal["ring", "tree", "gloo"]
_PARTS = 2
"""Numbers of a link: latency and bandwidth."""

_STEP = 1e-4
"""Of a logarithm, for derivatives."""


@dataclass(frozen=True, kw_only=True)
class SumTimes:
    """The repeated measurements of one sum over some workers."""

    num_bytes: int
    workers: int
    seconds: tuple[float, ...]
    """One number for each repeat."""

    is_shared: bool = False
    """Whether its workers were more than the cores."""

    @property
    def sum_seconds(self) -> Expected:
        """The median of the repeats; its interval is that of order statistics, without bounds below six."""
        return Expected(statistics.median(self.seconds), median_interval(self.seconds))


@dataclass(frozen=True, kw_only=True)
class SeenLink:
    """A link that was made, and what plain sockets saw of it."""

    asked: str
    """As `--link` has it."""

    means: str
    """Who delays and who shapes, in a few words."""

    round_trip: float
    """Seconds."""

    throughput: float
    """Bytes per second, one way."""

    without: SumTimes
    """What workers that it does not join take for a short sum: all of that is their software."""

    def added_latency(self, fitted: FittedLink) -> Expected:
        """Return what the link adds to a message of workers that it joins."""
        short = self.without
        messages = sum_seconds(fitted.form, short.workers, short.num_bytes, latency=1.0, bandwidth=math.inf)
        software = short.sum_seconds.scaled(1 / messages)
        return _difference(Expected(fitted.latency, fitted.latency_interval), software)


@dataclass(frozen=True, kw_only=True)
class FittedLink:
    """What a link is like, as workers that sum see it: what their software takes is part of it."""

    form: SumForm
    latency: float
    """Seconds of a message, one way."""

    bandwidth: float
    """Bytes per second."""

    covariance: tuple[tuple[float, float], tuple[float, float]] | None = None
    """Of the logarithms of both; None where there are no more measurements than numbers."""

    degrees_of_freedom: int = 0
    residuals: tuple[float, ...] = ()
    """log of measured over fitted time, for each of the measurements."""

    @property
    def worst_residual(self) -> float:
        """The largest deviation of a measured time; 0.03 is about 3 %."""
        return max(map(abs, self.residuals), default=0.0)

    @property
    def latency_interval(self) -> Interval:
        """95 %."""
        return self._interval(0, self.latency)

    @property
    def bandwidth_interval(self) -> Interval:
        """95 %."""
        return self._interval(1, self.bandwidth)

    def seconds(self, workers: int, num_bytes: float) -> float:
        """Return how long a sum of some bytes takes."""
        return sum_seconds(self.form, workers, num_bytes, self.latency, self.bandwidth)

    def half_width(self, slopes: Sequence[float]) -> float:
        """Return half the 95 % interval of what has these derivatives in the logarithms of latency and bandwidth.

        0 where nothing is known of their errors.
        """
        from scipy.special import stdtrit

        if self.covariance is None:
            return 0.0
        variance = float(np.array(slopes) @ np.array(self.covariance) @ np.array(slopes))
        return float(stdtrit(self.degrees_of_freedom, 0.975)) * math.sqrt(max(variance, 0.0))

    def _interval(self, index: int, value: float) -> Interval:
        if self.covariance is None:
            return NO_INTERVAL
        width = self.half_width([float(index == each) for each in range(_PARTS)])
        return Interval.around(value, width, width)


@dataclass(frozen=True, kw_only=True)
class StepExchange:
    """What the workers of a step tell each other, over a link that was measured."""

    link: FittedLink
    payloads: tuple[int, ...]
    """Bytes of each sum of a step, its gradients and whatever else."""

    waited: float = 1.0
    """The share of it that a step waits for: the rest goes on beside the backward pass, or several sums at once."""

    lag: float | None = None
    """Seconds that several workers wait for each other beyond that, as on a busy machine; None where they do not."""

    def seconds(self, workers: int) -> float:
        """Return by how much longer a step of some workers takes for it."""
        return 0.0 if workers == 1 else self.waited * self.alone(workers) + (self.lag or 0.0)

    def alone(self, workers: int) -> float:
        """Return how long its sums take, one after the other with nothing beside them."""
        return sum(self.link.seconds(workers, each) for each in self.payloads)

    def slopes(self, workers: int) -> list[float]:
        """Return the derivatives of `seconds` in the logarithms of latency and bandwidth."""
        link, more = self.link, math.exp(_STEP)
        changed = (replace(link, latency=link.latency * more), replace(link, bandwidth=link.bandwidth * more))
        return [(replace(self, link=each).seconds(workers) - self.seconds(workers)) / _STEP for each in changed]


def sum_seconds(form: SumForm, workers: int, num_bytes: float, latency: float, bandwidth: float) -> float:
    """Return how long a sum of some bytes over some workers takes.

    >>> sum_seconds("ring", 2, 1000, 0.5, 1000.0), sum_seconds("gloo", 2, 1000, 0.5, 1000.0)
    (2.0, 3.0)
    """
    if form == "gloo":
        return gloo_seconds(workers, num_bytes, latency, bandwidth)
    return latencies(form, workers) * latency + transfers(workers) * num_bytes / bandwidth


def fit_link(times: Sequence[SumTimes], forms: Sequence[SumForm] = ("gloo",)) -> FittedLink:
    """Return the link that the medians follow best, in the best of the forms; InputError for sums of one size only.

    Workers that shared cores, and waited for these, are left out where there are others.

    >>> made = [
    ...     SumTimes(num_bytes=size, workers=workers, seconds=(gloo_seconds(workers, size, 0.002, 1.25e7),))
    ...     for size in (4096, 65536, 1048576)
    ...     for workers in (2, 4)
    ... ]
    >>> link = fit_link(made)
    >>> round(link.latency, 6), round(link.bandwidth)
    (0.002, 12500000)
    """
    times = [each for each in times if not each.is_shared] or times
    if len({each.num_bytes for each in times}) < _PARTS or any(each.workers == 1 for each in times):
        raise InputError("Latency and bandwidth of a link need sums of two sizes or more, over several workers.")
    return min((_fit(times, form) for form in forms), key=lambda link: sum(each**2 for each in link.residuals))


def forms_of(device: str) -> tuple[SumForm, ...]:
    """Return how workers on a device may sum: NCCL chooses, elsewhere it is gloo.

    >>> forms_of("cpu"), forms_of("cuda:0 (a model)")
    (('gloo',), ('ring', 'tree'))
    """
    return FORMS if device.startswith("cuda") else ("gloo",)


def _difference(whole: Expected, part: Expected) -> Expected:
    """Return a difference, not below zero; the distances of each end from the middle are added in squares."""
    value, of, less = max(0.0, whole.value - part.value), whole.interval or NO_INTERVAL, part.interval or NO_INTERVAL
    low = high = None
    if of.low is not None and less.high is not None:
        low = value - math.hypot(whole.value - of.low, less.high - part.value)
    if of.high is not None and less.low is not None:
        high = value + math.hypot(of.high - whole.value, part.value - less.low)
    return Expected(value, Interval(low, high))


def _fit(times: Sequence[SumTimes], form: SumForm) -> FittedLink:
    from scipy.optimize import least_squares

    seconds = np.array([each.sum_seconds.value for each in times])

    def residuals(logs: np.ndarray) -> np.ndarray:
        latency, bandwidth = np.exp(logs)
        fitted = [sum_seconds(form, each.workers, each.num_bytes, latency, bandwidth) for each in times]
        return np.asarray(np.log(seconds / np.array(fitted)))

    found = least_squares(residuals, _start(times), x_scale=1.0)
    degrees = len(times) - _PARTS
    covariance = None
    if degrees > 0:
        spread = found.fun @ found.fun / degrees * np.linalg.pinv(found.jac.T @ found.jac)
        (a, b), (c, d) = spread.tolist()
        covariance = ((a, b), (c, d))
    latency, bandwidth = np.exp(found.x).tolist()
    return FittedLink(
        form=form,
        latency=latency,
        bandwidth=bandwidth,
        covariance=covariance,
        degrees_of_freedom=max(degrees, 0),
        residuals=tuple(found.fun.tolist()),
    )


def _start(times: Sequence[SumTimes]) -> list[float]:
    """Return logarithms to begin with: the smallest sum is all latency, the largest all transfer."""
    small, large = (pick(times, key=lambda each: each.num_bytes) for pick in (min, max))
    latency = small.sum_seconds.value / (4 * (small.workers - 1))
    bandwidth = transfers(large.workers) * large.num_bytes / large.sum_seconds.value
    return [math.log(latency), math.log(bandwidth)]
