"""Amounts as a person writes them: numbers, bandwidths, bytes, and several of them with their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from batchlab.errors import InputError, shown, unknown_name

Read = Callable[[str, str], float]
"""From a text and the place where it stands to a number."""

SMALLEST, LARGEST = 1e-15, 1e15
_BITS = {"bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12}
_BYTES = {"b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30}


def read_number(text: str, place: str) -> float:
    """Return a number above zero; InputError for anything else.

    >>> read_number("51200", "--steps e_min")
    51200.0
    """
    try:
        number = float(text) if re.fullmatch(r"[0-9.eE+-]+", text) else None
    except ValueError:
        number = None
    if number is None or not number > 0:
        raise InputError(f"{place} = {shown(text)}: give a number above 0, such as 100 or 5e4.")
    if not SMALLEST <= number <= LARGEST:
        raise InputError(f"{place} = {shown(text)}: give a number from {SMALLEST:g} to {LARGEST:g}.")
    return number


def read_bandwidth(text: str, place: str) -> float:
    """Return the bytes per second of a number of bits with its unit.

    >>> read_bandwidth("100mbit", "--link bandwidth")
    12500000.0
    """
    return _with_unit(text, place, _BITS, "100mbit") / 8


def read_bytes(text: str, place: str) -> float:
    """Return the bytes of a number with its unit.

    >>> read_bytes("100mb", "--throughput gradient")
    100000000.0
    """
    return _with_unit(text, place, _BYTES, "100mb")


def read_pairs(
    text: str, place: str, readers: Mapping[str, Read], example: str, needed: tuple[str, ...] = ()
) -> dict[str, float]:
    """Return the numbers of NAME=VALUE,NAME=VALUE; InputError for unknown, doubled and missing names.

    >>> read_pairs("s_min=100", "--steps", {"s_min": read_number}, example="s_min=...")
    {'s_min': 100.0}
    """
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


def _with_unit(text: str, place: str, units: Mapping[str, float], example: str) -> float:
    match = re.fullmatch(r"([0-9.eE+]+)\s*([A-Za-z]+)", text)
    if match is None or match[2].lower() not in units:
        raise InputError(
            f"{place} = {shown(text)}: give a number with its unit ({', '.join(units)}), such as {example}."
        )
    return read_number(match[1], place) * units[match[2].lower()]
