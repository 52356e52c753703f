"""The time of a step: t = t0 + b / tau + t_comm(K), fitted to measured step times.

b is the local batch size, the largest share of the batch that one of K workers has; t0 is what a step takes without
any example, tau the examples per second of a worker once that is nothing; half of tau is reached at B_half = t0 tau.
Errors of a time are relative, so residuals are; the medians scatter about the line because of chance and because no
machine keeps to a line, and the intervals hold both. Simulated coverage: docs/results/plan.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from batchlab.analysis.answers.confirmed import median_interval
from batchlab.analysis.interval import NO_INTERVAL, Interval
from batchlab.analysis.times.all_reduce import FORMS, AllReduce, latencies, transfers
from batchlab.analysis.times.expected import Expected
from batchlab.analysis.times.link import StepExchange
from batchlab.errors import InputError

_ROUNDS = 30
"""Of reweighting by the fitted times; five are enough."""

_OF_EXCHANGE = 2
"""The place of what is fitted of a measured exchange, among the fitted numbers."""

_NOTHING = 1e-9
"""A part that is a smaller share of the longest time is rounding."""


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """The repeated measurements of one batch size on some workers."""

    batch_size: int
    workers: int = 1
    seconds: tuple[float, ...]
    """Of a step, one number for each repeat."""

    is_shared: bool = False
    """Whether its workers were more than the cores: what they took says nothing of a machine with one for each."""

    @property
    def local_batch_size(self) -> int:
        """The largest share of a worker."""
        return math.ceil(self.batch_size / self.workers)

    @property
    def step_seconds(self) -> Expected:
        """The median of the repeats; its interval is that of order statistics, without bounds below six."""
        return Expected(statistics.median(self.seconds), median_interval(self.seconds))

    @property
    def examples_per_second(self) -> float:
        """Of all workers together."""
        return self.batch_size / self.step_seconds.value


@dataclass(frozen=True, kw_only=True)
class ThroughputFit:
    """The fitted line, or one that was given."""

    t0: float
    """Seconds."""

    seconds_per_example: float
    """1 / tau."""

    all_reduce: AllReduce | StepExchange | None = None
    """How long workers exchange; None where nothing is known of it: then it takes no time."""

    covariance: tuple[tuple[float, ...], ...] | None = None
    """Of t0, 1 / tau and what was fitted of the exchange: its share or the lag, or transfer time and latency;
    None for numbers that were given, and where there are no more batch sizes than numbers."""

    scatter: float = 0.0
    """Standard deviation of log measured over fitted time."""

    degrees_of_freedom: int = 0
    residuals: tuple[float, ...] = ()
    """log of measured over fitted time, for each of the measurements."""

    link_slopes: tuple[tuple[float, ...], ...] = ()
    """Derivatives of each of the fitted numbers in the logarithms of latency and bandwidth of a link that was measured;
    empty without one."""

    has_latency: bool = False
    """Whether the latency was told apart from the bandwidth: that takes two numbers of workers above one."""

    @property
    def tau(self) -> float:
        """Examples per second of a worker at large batch sizes; infinite where step times do not grow."""
        return 1 / self.seconds_per_example if self.seconds_per_example else math.inf

    @property
    def b_half(self) -> float:
        """The local batch size at which half of tau is reached."""
        return self.t0 * self.tau

    @property
    def worst_residual(self) -> float:
        """The largest deviation of a measured time from the line; 0.03 is about 3 %."""
        return max(map(abs, self.residuals), default=0.0)

    @property
    def t0_interval(self) -> Interval | None:
        """95 %; None for a number that was given."""
        return self._interval(0, self.t0)

    @property
    def tau_interval(self) -> Interval | None:
        """95 %; without an upper bound where a step might take no longer for more examples."""
        slope = self._interval(1, self.seconds_per_example)
        if slope is None:
            return None
        return Interval(1 / slope.high if slope.high else None, 1 / slope.low if slope.low else None)

    @property
    def waited_interval(self) -> Interval | None:
        """95 %, of the share of the exchange that a step waits for; None where that was not fitted."""
        exchange = self.all_reduce
        if not isinstance(exchange, StepExchange) or exchange.lag is not None:
            return None
        return self._exchange_interval(exchange.waited)

    @property
    def lag_interval(self) -> Interval | None:
        """95 %, of the seconds that workers wait for each other beyond the exchange; None where they do not."""
        lag = self.all_reduce.lag if isinstance(self.all_reduce, StepExchange) else None
        return None if lag is None else self._exchange_interval(lag)

    def _exchange_interval(self, value: float) -> Interval | None:
        return self._interval(_OF_EXCHANGE, value) if len(self.covariance or ()) > _OF_EXCHANGE else None

    def seconds_at(self, local_batch_size: float, workers: int = 1) -> float:
        """Return the fitted time of a step.

        >>> ThroughputFit(t0=0.02, seconds_per_example=0.001).seconds_at(30)
        0.05
        """
        exchange = self.all_reduce.seconds(workers) if self.all_reduce else 0.0
        return self.t0 + local_batch_size * self.seconds_per_example + exchange

    def step_seconds(self, local_batch_size: int, workers: int = 1) -> Expected:
        """Return the fitted time with the interval of what would be measured there: the line's error and the scatter
        about it."""
        seconds = self.seconds_at(local_batch_size, workers)
        if self.degrees_of_freedom == 0 or self.covariance is None:
            return Expected(seconds, NO_INTERVAL if self.residuals else None)
        column = np.array(self._row(local_batch_size, workers))
        of_line = max(float(column @ np.array(self.covariance) @ column), 0.0)  # rounding may leave less
        variance = of_line / seconds**2 + self.scatter**2
        width = _t_quantile(self.degrees_of_freedom) * math.sqrt(variance)
        if isinstance(self.all_reduce, StepExchange):
            # What was fitted makes good what is wrong about the link, on as many workers as were measured.
            slopes = self.all_reduce.slopes(workers) + column @ np.array(self.link_slopes)
            width = math.hypot(width, self.all_reduce.link.half_width(slopes) / seconds)
        return Expected(seconds, Interval.around(seconds, width, width))

    def _row(self, local_batch_size: float, workers: int) -> list[float]:
        """Return what the fitted numbers are multiplied by, without those of an exchange that was taken as it is."""
        row = [1.0, local_batch_size, *_exchange_row(self.all_reduce, workers, self.has_latency)]
        return row[: len(self.covariance or row)]

    def _interval(self, index: int, value: float) -> Interval | None:
        if not self.residuals:
            return None
        if self.covariance is None:
            return NO_INTERVAL
        width = _t_quantile(self.degrees_of_freedom) * math.sqrt(max(self.covariance[index][index], 0.0))
        if isinstance(self.all_reduce, StepExchange):
            width = math.hypot(width, self.all_reduce.link.half_width(self.link_slopes[index]))
        return Interval(value - width, value + width).within_span(value)


def fit_throughput(times: Sequence[StepTimes], exchange: StepExchange | None = None) -> ThroughputFit:
    """Return the line through the medians, by least squares of their relative residuals; no part is below zero.

    Where the exchange of a step is known, the share of it is fitted that steps wait for; else its latency and
    transfer time are, in the one of two forms that fits better. One number of workers tells nothing of an exchange,
    which is taken as it is then. Workers that shared cores are left out where others are enough. InputError for fewer
    than two local batch sizes, and for times that follow no line at all.

    >>> made = [StepTimes(batch_size=b, seconds=(0.02 + b / 1000,)) for b in (8, 64, 512)]
    >>> fit = fit_throughput(made)
    >>> round(fit.t0, 6), round(fit.tau, 3), round(fit.b_half, 3)
    (0.02, 1000.0, 20.0)
    """
    times = with_own_cores(times)
    if not _tells_line(times):
        raise InputError(
            "The time of a step needs two or more batch sizes to be told apart from that of an example: "
            "give several --batch-sizes."
        )
    counts = {each.workers for each in times}
    if len(counts) == 1:
        return _fit(times, _taken_as_it_is(exchange, times))
    if exchange is not None:
        fit = _fit(times, exchange, num_exchanged=1)
        # More than the whole of the sums is no share of them, and would not grow with the workers as they do.
        is_more = isinstance(fit.all_reduce, StepExchange) and fit.all_reduce.waited > 1
        if is_more and 1 not in counts:  # a lag of all is a longer step of each
            return _fit(times, _taken_as_it_is(exchange, times))
        return _fit(times, replace(exchange, lag=0.0), num_exchanged=1) if is_more else fit
    # One number of workers cannot tell many short messages from few long ones: then all is put down to the bandwidth.
    num_exchanged = min(2, len(counts - {1}))
    fits = (_fit(times, AllReduce(form, 0.0, 0.0), num_exchanged) for form in FORMS)
    return min(fits, key=lambda fit: fit.scatter)


def with_own_cores(times: Sequence[StepTimes]) -> list[StepTimes]:
    """Return the measurements whose workers had a core each; all of them where those do not make a line."""
    alone = [each for each in times if not each.is_shared]
    return alone if _tells_line(alone) else list(times)


def _tells_line(times: Sequence[StepTimes]) -> bool:
    return len({each.local_batch_size for each in times}) > 1


def _fit(
    times: Sequence[StepTimes], exchange: AllReduce | StepExchange | None, num_exchanged: int = 0
) -> ThroughputFit:
    """Return the fit with so many numbers of the exchange: 0 takes it as it is."""
    has_latency = num_exchanged > 1
    design = np.array(
        [
            [1.0, each.local_batch_size, *_exchange_row(exchange, each.workers, has_latency)[:num_exchanged]]
            for each in times
        ]
    )
    seconds = np.array([each.step_seconds.value for each in times])
    known = np.array([_known_seconds(exchange, each.workers, num_exchanged) for each in times])
    found = _solve(design, seconds, known)
    found[design.max(axis=0) * found < _NOTHING * seconds.max()] = 0.0
    fitted = _checked(design @ found + known, found)
    residuals = np.log(seconds / fitted)
    degrees = len(times) - design.shape[1]
    scatter = math.sqrt(float(residuals @ residuals) / degrees) if degrees > 0 else 0.0
    weighted = design / fitted[:, None]
    exchange = _exchanging(exchange, found[2:].tolist())
    return ThroughputFit(
        t0=float(found[0]),
        seconds_per_example=float(found[1]),
        all_reduce=exchange,
        covariance=_rows(scatter**2 * np.linalg.pinv(weighted.T @ weighted)) if degrees > 0 else None,
        scatter=scatter,
        degrees_of_freedom=max(degrees, 0),
        residuals=tuple(residuals.tolist()),
        link_slopes=_link_slopes(exchange, times, weighted, fitted),
        has_latency=has_latency,
    )


def _link_slopes(
    exchange: AllReduce | StepExchange | None, times: Sequence[StepTimes], weighted: np.ndarray, fitted: np.ndarray
) -> tuple[tuple[float, ...], ...]:
    """Return how the fitted numbers follow the link: the least squares of what it takes from the step times."""
    if not isinstance(exchange, StepExchange):
        return ()
    taken = np.array([exchange.slopes(each.workers) for each in times]) / fitted[:, None]
    return _rows(-np.linalg.pinv(weighted) @ taken)


def _known_seconds(exchange: AllReduce | StepExchange | None, workers: int, num_exchanged: int) -> float:
    """Return what is not fitted: sums that are taken as they are, or that workers wait for and longer."""
    if isinstance(exchange, StepExchange) and (exchange.lag is not None or num_exchanged == 0):
        return exchange.seconds(workers)
    return 0.0


def _taken_as_it_is(exchange: StepExchange | None, times: Sequence[StepTimes]) -> StepExchange | None:
    """Return an exchange that steps wait for as a whole; not at all where it takes longer than they do."""
    if exchange is None:
        return None
    is_hidden = any(exchange.alone(each.workers) >= each.step_seconds.value for each in times)
    return replace(exchange, waited=0.0) if is_hidden else exchange


def _checked(fitted: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Return fitted times; InputError where one of them, or that of a worker without an exchange, is none."""
    if not (fitted > 0).all() or not found[:_OF_EXCHANGE].any():
        raise InputError(
            "The step times follow no line: by the best one some steps take no time. Measure them again, those of one "
            "worker too."
        )
    return fitted


def _exchange_row(exchange: AllReduce | StepExchange | None, workers: int, has_latency: bool) -> list[float]:
    """Return what the share or the lag, or the transfer time and the latency, are multiplied by."""
    if exchange is None:
        return []
    if isinstance(exchange, StepExchange):
        return [exchange.alone(workers) if exchange.lag is None else float(workers > 1)]
    return [transfers(workers), *([latencies(exchange.form, workers)] if has_latency else [])]


def _exchanging(exchange: AllReduce | StepExchange | None, found: Sequence[float]) -> AllReduce | StepExchange | None:
    """Return the exchange with what was found of it."""
    if exchange is None or not found:
        return exchange
    if isinstance(exchange, StepExchange):
        return replace(exchange, waited=found[0]) if exchange.lag is None else replace(exchange, lag=found[0])
    transfer, latency = [*found, 0.0][:2]
    return AllReduce(exchange.form, latency, transfer)


def _rows(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Return a matrix as plain numbers, which compare as values do."""
    return tuple(tuple(row) for row in matrix.tolist())


def _solve(design: np.ndarray, seconds: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the least squares of relative residuals, none below zero; weights are those of the fitted times."""
    from scipy.optimize import nnls

    scale = seconds
    found = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        before = found
        found, _ = nnls(design / scale[:, None], (seconds - known) / scale)
        scale = _checked(design @ found + known, found)
        if np.allclose(found, before, rtol=1e-12, atol=0):
            break
    return np.asarray(found)


def _t_quantile(degrees_of_freedom: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, 0.975))
