"""Whether ranges that are written in a unit make sense: it is for the metaparameter, which stays in its bounds."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator

from batchlab.core.space import Range
from batchlab.core.study import Study
from batchlab.core.units import DECAY, OF, Unit, convert_decay
from batchlab.errors import SpecError, shown
from batchlab.optim.metaparameter import LEARNING_RATE, Metaparameter
from batchlab.optim.registry import known_metaparameters, workload_metaparameters


def check_units(study: Study, optional: Iterable[Metaparameter] = ()) -> None:
    """Raise SpecError for a unit of another metaparameter, or one that leads out of bounds at the study's batch size.

    `optional` are metaparameters beside those of the optimizer and the schedule. What a metaparameter of code from
    outside is, nobody here knows: it may have any unit.
    """
    ranges = {name: each for name, each in study.search_space.root.items() if isinstance(each, Range) and each.unit}
    if not ranges:
        return
    more = {each.name: each for each in optional}
    known, possible = known_metaparameters(study.workload) | set(more), workload_metaparameters(study.workload) | more
    for name, each in ranges.items():
        assert each.unit is not None
        if name in known:
            _check_meaning(name, each.unit)
        if name in possible:
            _check_bounds(study, possible[name], each)


def _check_meaning(name: str, unit: Unit) -> None:
    if name in OF[unit]:
        return
    others = [other for other, names in OF.items() if name in names]
    way_out = f"use {' or '.join(others)}, or leave it out" if others else "leave it out"
    raise SpecError(f"search_space.{shown(name)}: unit = {unit} is for {_listed(OF[unit])}, not {name}: {way_out}.")


def _listed(names: tuple[str, ...]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _check_bounds(study: Study, metaparameter: Metaparameter, each: Range) -> None:
    name, bounds = metaparameter.name, metaparameter.bounds
    for written, value, where in _converted(study, each):
        rounded = value if study.workload.is_closed_form else ctypes.c_float(value).value
        if not (bounds.admits(value) and bounds.admits(rounded)):
            became = f"{value:g}" if rounded == value else f"{value:.9g}, in float32 {rounded:g},"
            raise SpecError(
                f"search_space.{shown(name)}: {written:g} in {each.unit} is {name} = {became} at {where},"
                f" and must be {bounds}{' and finite' * math.isinf(rounded)}."
            )


def _converted(study: Study, each: Range) -> Iterator[tuple[float, float, str]]:
    """Yield both ends of a range, as written and as the metaparameter, and where that is.

    A decay is read at both ends of the learning rates.
    """
    where = f"batch size {study.batch_size}"
    if each.unit != DECAY:
        yield from ((*end, where) for end in zip((each.min, each.max), each.ends, strict=True))
        return
    rates = study.search_space[LEARNING_RATE.name]
    for rate in rates.ends if isinstance(rates, Range) else (min(rates.values), max(rates.values)):
        if LEARNING_RATE.bounds.admits(rate):
            for written in (each.min, each.max):
                value = convert_decay(written, rate, study.batch_size)
                yield written, value, f"{where} and learning_rate = {rate:g}"
