"""What a user gives in place of measurements: `--steps`, `--throughput` and `--deadline`, read from their text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from batchlab.analysis import AllReduce, StepsCurve, Throughput, ThroughputFit
from batchlab.core.duration import read_seconds
from batchlab.errors import InputError, shown, unknown_name

Read = Callable[[str, str], float]
"""From a text and the place where it stands to a number."""

LARGEST = 1e15
_BITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}
_BYTES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}


def given_steps(text: str) -> StepsCurve:
    """Return the curve of `s_min=100,e_min=51200`: steps with an unlimited batch, examples with the smallest.

    >>> given_steps("s_min=100,e_min=51200").b_crit
    512.0
    """
    found = _pairs(text, "--steps", {"s_min": read_number, "e_min": read_number}, needed=("s_min", "e_min"))
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
        "bandwidth": _bandwidth,
        "gradient": _bytes,
    }
    found = _pairs(text, place, readers, needed=("t0", "tau"))
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


def read_number(text: str, place: str) -> float:
    """Return a number above zero; InputError for anything else.

    >>> read_number("51200", "--steps e_min")
    51200.0
    """
    try:
        number = float(text) if re.fullmatch(r"[0-9.eE+-]+", text) else None
    except ValueError:
        number = None
    if number is None or not 0 < number <= LARGEST:
        raise InputError(f"{place} = {shown(text)}: give a number above 0, such as 100 or 5e4.")
    return number


def _pairs(text: str, place: str, readers: Mapping[str, Read], needed: tuple[str, ...]) -> dict[str, float]:
    """Return the numbers of NAME=VALUE,NAME=VALUE."""
    example = ",".join(f"{name}=..." for name in needed)
    found: dict[str, float] = {}
    for pair in text.split(","):
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise InputError(f"{place} {shown(text)}: write it as {example}.")
        if name not in readers:
            raise InputError(f"{place}: {unknown_name('name', name, readers)}")
        if name in found:
            raise InputError(f"{place} {shown(text)}: {name} is there twice.")
        found[name] = readers[name](value, f"{place} {name}")
    missing = [name for name in needed if name not in found]
    if missing:
        raise InputError(f"{place} {shown(text)}: {' and '.join(missing)} is missing; write it as {example}.")
    return found


def _seconds(text: str, place: str) -> float:
    """Return the seconds of `0.0186` or `18.6ms`."""
    return read_number(text, place) if text[-1:].isdigit() else read_seconds(text, place)


def _bandwidth(text: str, place: str) -> float:
    """Return the bytes per second of `100mbit`."""
    return _with_unit(text, place, _BITS, "100mbit") / 8


def _bytes(text: str, place: str) -> float:
    """Return the bytes of `100mb`."""
    return _with_unit(text, place, _BYTES, "100mb")


def _with_unit(text: str, place: str, units: Mapping[str, float], example: str) -> float:
    match = re.fullmatch(r"([0-9.eE+]+)\s*([A-Za-z]+)", text)
    if match is None or match[2].lower() not in units:
        raise InputError(
            f"{place} = {shown(text)}: give a number with its unit ({', '.join(units)}), such as {example}."
        )
    return read_number(match[1], place) * units[match[2].lower()]
