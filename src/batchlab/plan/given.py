"""What a user gives in place of measurements: `--steps`, `--throughput` and `--deadline`, read from their text."""

from __future__ import annotations

from batchlab.analysis import AllReduce, StepsCurve, Throughput, ThroughputFit
from batchlab.core.amounts import Read, read_bandwidth, read_bytes, read_number, read_pairs
from batchlab.core.duration import read_seconds
from batchlab.errors import InputError, shown


def given_steps(text: str) -> StepsCurve:
    """Return the curve of `s_min=100,e_min=51200`: steps with an unlimited batch, examples with the smallest.

    >>> given_steps("s_min=100,e_min=51200").b_crit
    512.0
    """
    readers: dict[str, Read] = {"s_min": read_number, "e_min": read_number}
    found = read_pairs(text, "--steps", readers, example="s_min=...,e_min=...", needed=tuple(readers))
    for name in (name for name, number in found.items() if number < 1):
        raise InputError(f"--steps {shown(text)}: {name} is below 1, and no training takes less than a step.")
    return StepsCurve(s_min=found["s_min"], e_min=found["e_min"])


def given_throughput(text: str) -> Throughput:
    """Return the line of `t0=18.6ms,tau=1381`: seconds of a step without examples, examples per second of a worker.

    `latency`, `bandwidth` and `gradient` say what an exchange between workers takes, a ring's: all three or none.

    >>> fit = given_throughput("t0=18.6ms,tau=1381").fit
    >>> round(fit.t0, 4), round(fit.tau)
    (0.0186, 1381)
    >>> given_throughput("t0=0.01,tau=1000,latency=1ms,bandwidth=8gbit,gradient=100mb").fit.all_reduce
    AllReduce(form='ring', latency=0.001, transfer_seconds=0.1)
    """
    place = "--throughput"
    readers: dict[str, Read] = {
        "t0": _seconds,
        "tau": read_number,
        "latency": _seconds,
        "bandwidth": read_bandwidth,
        "gradient": read_bytes,
    }
    found = read_pairs(text, place, readers, example="t0=...,tau=...", needed=("t0", "tau"))
    link = {name for name in ("latency", "bandwidth", "gradient") if name in found}
    if link and len(link) < 3:
        missing = ", ".join(name for name in ("latency", "bandwidth", "gradient") if name not in link)
        raise InputError(f"{place} {shown(text)}: an exchange needs latency, bandwidth and gradient; add {missing}.")
    exchange = AllReduce("ring", found["latency"], found["gradient"] / found["bandwidth"]) if link else None
    return Throughput(ThroughputFit(t0=found["t0"], seconds_per_example=1 / found["tau"], all_reduce=exchange))


def given_deadline(text: str) -> float:
    """Return the seconds of `5m`; InputError without a unit, and for no time at all.

    >>> given_deadline("5m")
    300.0
    """
    return read_seconds(text, "--deadline")


def _seconds(text: str, place: str) -> float:
    """Return the seconds of `0.0186` or `18.6ms`."""
    return read_number(text, place) if text[-1:].isdigit() else read_seconds(text, place)
