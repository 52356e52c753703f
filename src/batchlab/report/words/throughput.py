"""Measured step times in sentences and as a table, on the command line and in the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from batchlab.analysis import Interval, Throughput, ThroughputFit
from batchlab.analysis.interval import NO_INTERVAL, SPAN
from batchlab.analysis.text import count, listed, significant
from batchlab.analysis.times.efficiency import scaling_json
from batchlab.analysis.times.link import StepExchange
from batchlab.report.blocks import Table
from batchlab.report.words.interval import interval_text, with_interval

MEGABIT = 1e6 / 8
"""Bytes."""

SHARED_CORES = "shared cores"


def throughput_table(throughput: Throughput, is_weak: bool = False) -> Table:
    """Return a row for each batch size and number of workers that was measured."""
    rows = scaling_json(throughput, is_weak)["rows"]
    header = ["Batch size", "Workers", "ms per step", "95 % interval", "Examples/s", "Fitted ms", "Repeats"]
    has_several = throughput.workers != (1,)
    return Table(
        name="throughput",
        header=[*header, *(["Efficiency", "Note"] if has_several else [])],
        rows=[_throughput_cells(row, has_several) for row in rows],
        numbers=range(len(header) + has_several),
        muted=[place for place, row in enumerate(rows) if row["shared_cores"]],
    )


def throughput_facts(fit: ThroughputFit) -> list[tuple[str, str]]:
    """Return the fitted numbers as terms with their values."""
    facts = [
        ("Time of a step without examples, t0 (95 % interval)", with_interval(fit.t0, fit.t0_interval, 1e-3, "ms")),
        ("Examples per second at large batch sizes, tau", _tau(fit)),
        ("Half of tau at local batch size t0 tau", significant(fit.b_half) if fit.seconds_per_example else "not seen"),
    ]
    if fit.covariance is not None:  # else nothing was left over to deviate: two times lie on a line
        facts.append(("Largest deviation from the line", f"{100 * fit.worst_residual:.1f} %"))
    if isinstance(fit.all_reduce, StepExchange):
        facts += _link_facts(fit.all_reduce)
        share = with_interval(fit.all_reduce.waited, fit.waited_interval, 0.01, "%")
        facts.append(("Share of the exchange that a step waits for", share))
        if fit.all_reduce.lag is not None:
            lag = with_interval(fit.all_reduce.lag, fit.lag_interval, 1e-3, "ms")
            facts.append(("Further waiting of workers for each other", lag))
    elif fit.all_reduce is not None:
        facts += [
            (f"Latency ({fit.all_reduce.form})", f"{significant(1e3 * fit.all_reduce.latency)} ms"),
            ("Time to send the gradients once", f"{significant(1e3 * fit.all_reduce.transfer_seconds)} ms"),
        ]
    return facts


def link_facts(throughput: Throughput) -> list[tuple[str, str]]:
    """Return what joined the workers, who made it so, and what was seen of it; nothing where that was the machine."""
    link, exchange = throughput.link, throughput.fit.all_reduce
    if link is None or not isinstance(exchange, StepExchange):
        return []
    added, short = link.added_latency(exchange.link), link.without
    seconds = with_interval(added.value, added.interval, 1e-3, "ms")
    without = f"{significant(1e3 * short.sum_seconds.value)} ms"
    return [
        ("Workers joined by", f"{link.asked} ({link.means})"),
        (
            "Seen by plain sockets",
            f"round trip {significant(1e3 * link.round_trip)} ms, TCP {significant(link.throughput / MEGABIT)} mbit/s",
        ),
        (
            "Latency that the link adds",
            f"{seconds}; the rest is software: without the link {count(short.num_bytes)} bytes between "
            f"{short.workers} workers take {without} (n = {len(short.seconds)})",
        ),
    ]


def throughput_notes(throughput: Throughput) -> list[str]:
    """Return what to know before trusting step times, a sentence each."""
    return [*_notes_on_cores(throughput), *_notes_on_medians(throughput), *_notes_on_fit(throughput.fit)]


def _throughput_cells(row: Mapping[str, Any], has_several: bool) -> list[str]:
    efficiency = "" if row["efficiency"] is None else f"{100 * row['efficiency']:.0f} %"
    return [
        count(row["batch_size"]),
        count(row["workers"]),
        significant(1e3 * row["seconds"]),
        interval_text(Interval(*row["seconds_ci"]), 1e-3),
        significant(row["examples_per_second"]),
        significant(1e3 * row["fitted_seconds"]),
        count(row["repeats"]),
        *([efficiency, SHARED_CORES if row["shared_cores"] else ""] if has_several else []),
    ]


def _link_facts(exchange: StepExchange) -> list[tuple[str, str]]:
    link = exchange.link
    return [
        (
            f"Latency of a message between workers ({link.form})",
            with_interval(link.latency, link.latency_interval, 1e-3, "ms"),
        ),
        (
            "Bandwidth between workers",
            with_interval(link.bandwidth, link.bandwidth_interval, MEGABIT, "mbit/s"),
        ),
        ("Largest deviation of a sum", f"{100 * link.worst_residual:.1f} %"),
        ("A step sums", f"{count(sum(exchange.payloads))} bytes in {_sums(len(exchange.payloads))}"),
    ]


def _sums(number: int) -> str:
    return "1 sum" if number == 1 else f"{count(number)} sums"


def _tau(fit: ThroughputFit) -> str:
    if fit.seconds_per_example == 0:
        return "not seen: a step takes no longer for more examples"
    return with_interval(fit.tau, fit.tau_interval, 1.0, "")


def _notes_on_cores(throughput: Throughput) -> Iterator[str]:
    shared = sorted({each.workers for each in throughput.times if each.is_shared})
    if shared:
        are_left_out = throughput.planned_workers != throughput.workers
        yield (
            f"{listed(shared)} workers shared fewer cores: that says nothing of a machine with a core for each"
            f"{', so the fit and plans leave it out' if are_left_out else ''}."
        )


def _notes_on_medians(throughput: Throughput) -> Iterator[str]:
    lacking = [each for each in throughput.times if each.step_seconds.lacks_bound]
    if lacking:
        yield (
            f"No 95 % interval for {count(len(lacking))} of {count(len(throughput.times))} step times: six repeats are "
            "the least for one."
        )


def _notes_on_fit(fit: ThroughputFit) -> Iterator[str]:
    intervals = (fit.t0_interval, fit.tau_interval, fit.waited_interval, fit.lag_interval)
    if NO_INTERVAL in intervals:
        yield (
            "A fitted number has no 95 % interval where the data do not determine it, or where it would run over more "
            f"than a factor of {count(int(SPAN))}: more batch sizes would give one."
        )
