"""What several workers are worth: efficiencies, and all that `batchlab scaling` tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from batchlab.analysis.interval import interval_json
from batchlab.analysis.times.all_reduce import AllReduce
from batchlab.analysis.times.link import StepExchange, SumTimes
from batchlab.analysis.times.throughput import Throughput
from batchlab.analysis.times.throughput_fit import StepTimes, ThroughputFit


def strong_efficiencies(times: Sequence[StepTimes]) -> list[float | None]:
    """Return T_1 / (K T_K) at the same batch size for each measurement; None where one worker was not measured there.

    >>> made = [StepTimes(batch_size=64, workers=w, seconds=(s,)) for w, s in ((1, 0.8), (4, 0.25))]
    >>> strong_efficiencies(made)
    [1.0, 0.8]
    """
    alone = {each.batch_size: each.step_seconds.value for each in times if each.workers == 1}
    return [_share(alone.get(each.batch_size), each.workers * each.step_seconds.value) for each in times]


def weak_efficiencies(times: Sequence[StepTimes]) -> list[float | None]:
    """Return T_1 / T_K at the same local batch size for each measurement; None where one worker was not measured there.

    >>> made = [StepTimes(batch_size=64 * w, workers=w, seconds=(s,)) for w, s in ((1, 0.2), (4, 0.25))]
    >>> weak_efficiencies(made)
    [1.0, 0.8]
    """
    alone = {each.batch_size: each.step_seconds.value for each in times if each.workers == 1}
    return [_share(alone.get(each.local_batch_size), each.step_seconds.value) for each in times]


def scaling_json(throughput: Throughput, is_weak: bool = False) -> dict[str, Any]:
    """Return what `batchlab scaling --json` prints; `is_weak` holds workers against one at the same local batch size.

    >>> made = [StepTimes(batch_size=b, seconds=(0.02 + b / 1000,)) for b in (8, 64, 512)]
    >>> found = scaling_json(Throughput.measured(made))
    >>> round(found["fit"]["tau"]), round(found["rows"][0]["examples_per_second"], 1)
    (1000, 285.7)
    """
    fit = throughput.fit
    efficiencies = (weak_efficiencies if is_weak else strong_efficiencies)(throughput.times)
    return {
        "workload": throughput.workload,
        "machine": throughput.machine,
        "mode": "weak" if is_weak else "strong",
        "rows": [_row_json(fit, *pair) for pair in zip(throughput.times, efficiencies, strict=True)],
        "sums": [_sum_json(fit, each) for each in throughput.sums],
        "link": _link_json(throughput),
        "fit": {
            "t0": fit.t0,
            "t0_ci": interval_json(fit.t0_interval),
            "tau": fit.tau if math.isfinite(fit.tau) else None,
            "tau_ci": interval_json(fit.tau_interval),
            "b_half": fit.b_half if math.isfinite(fit.b_half) else None,
            "worst_residual": fit.worst_residual,
            "all_reduce": _exchange_json(fit),
        },
    }


def _row_json(fit: ThroughputFit, times: StepTimes, efficiency: float | None) -> dict[str, Any]:
    each = times.step_seconds
    return {
        "batch_size": times.batch_size,
        "workers": times.workers,
        "local_batch_size": times.local_batch_size,
        "seconds": each.value,
        "seconds_ci": interval_json(each.interval),
        "repeats": len(times.seconds),
        "examples_per_second": times.examples_per_second,
        "fitted_seconds": fit.seconds_at(times.local_batch_size, times.workers),
        "efficiency": efficiency,
        "shared_cores": times.is_shared,
    }


def _exchange_json(fit: ThroughputFit) -> dict[str, Any] | None:
    exchange = fit.all_reduce
    if exchange is None:
        return None
    if isinstance(exchange, AllReduce):
        return asdict(exchange)
    link = exchange.link
    return {
        "form": link.form,
        "latency": link.latency,
        "latency_ci": interval_json(link.latency_interval),
        "bandwidth": link.bandwidth,
        "bandwidth_ci": interval_json(link.bandwidth_interval),
        "worst_residual": link.worst_residual,
        "payloads": list(exchange.payloads),
        "waited": exchange.waited,
        "waited_ci": interval_json(fit.waited_interval),
        "lag": exchange.lag,
        "lag_ci": interval_json(fit.lag_interval),
    }


def _link_json(throughput: Throughput) -> dict[str, Any] | None:
    link, exchange = throughput.link, throughput.fit.all_reduce
    if link is None or not isinstance(exchange, StepExchange):
        return None
    added = link.added_latency(exchange.link)
    return {
        "asked": link.asked,
        "means": link.means,
        "round_trip": link.round_trip,
        "throughput": link.throughput,
        "added_latency": added.value,
        "added_latency_ci": interval_json(added.interval),
    }


def _sum_json(fit: ThroughputFit, times: SumTimes) -> dict[str, Any]:
    each, exchange = times.sum_seconds, fit.all_reduce
    link = exchange.link if isinstance(exchange, StepExchange) else None
    return {
        "bytes": times.num_bytes,
        "workers": times.workers,
        "seconds": each.value,
        "seconds_ci": interval_json(each.interval),
        "repeats": len(times.seconds),
        "fitted_seconds": None if link is None else link.seconds(times.workers, times.num_bytes),
        "shared_cores": times.is_shared,
    }


def _share(alone: float | None, seconds: float) -> float | None:
    return None if alone is None else alone / seconds
