"""What registries are made of: options that a spec may set, and entries, which say where the code of a name is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, TypeVar

from batchlab.core.workload import Named
from batchlab.errors import InputError, SpecError, shown, spelled, unknown_name


@dataclass(frozen=True)
class Option:
    """What the value of an option must be: in words, and as a test."""

    must_be: str
    holds: Callable[[Any], bool] = field(compare=False)
    words: tuple[str, ...] = ()
    """All that it may be, where these are a few words."""


def one_of(*words: str) -> Option:
    """Return an option that is one of some words."""
    return Option(f"one of {', '.join(words)}", words.__contains__, words)


def whole_number(fewest: int, most: int | None = None) -> Option:
    """Return an option that is a whole number, both ends included.

    >>> whole_number(1, 1000).must_be, whole_number(1).holds(True)
    ('a whole number from 1 to 1,000', False)
    """
    end = "" if most is None else f" to {most:,}"
    return Option(f"a whole number from {fewest:,}{end}", lambda value: is_whole(value, fewest, most))


def is_whole(value: Any, fewest: int, most: int | None = None) -> bool:
    """Return whether a value from outside is a whole number between two ends."""
    return type(value) is int and fewest <= value and (most is None or value <= most)


def check_options(kind: str, name: str, known: Mapping[str, Option], given: Mapping[str, Any]) -> None:
    """Raise SpecError where an option is unknown, or its value not one that it may have."""
    for option, value in given.items():
        if option not in known:
            raise SpecError(unknown_name(f"option of {kind} {name}", option, known or {"(none)"}))
        may_be = known[option]
        if may_be.holds(value):
            continue
        if may_be.words and isinstance(value, str):
            raise SpecError(f"{kind} {name}: {unknown_name(option, value, may_be.words)}")
        raise SpecError(f"{option} = {shown(spelled(value))} of {kind} {name} must be {may_be.must_be}.")


@dataclass(frozen=True)
class Entry:
    """A name of a registry. Its code is imported when it is used, so that names are checked without a framework."""

    name: str
    module: str
    attribute: str
    settled: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    """What the code is called with; an option of the same name outranks it."""

    options: Mapping[str, Option] = field(default_factory=dict, kw_only=True)

    def check(self, kind: str, options: Mapping[str, Any]) -> None:
        """Raise SpecError where an option is unknown, or its value not one that it may have."""
        check_options(kind, self.name, self.options, options)

    def given(self, named: Named) -> dict[str, Any]:
        """Return the options that a spec gives; what else it gives are metaparameters."""
        return {name: value for name, value in named.options.items() if name in self.options}

    def make(self, options: Mapping[str, Any], *parts: object, **named_parts: object) -> Any:
        """Call the code with parts, with what is settled and with options, lists among them as tuples."""
        code: Callable[..., Any] = getattr(import_module(self.module), self.attribute)
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
        return code(*parts, **named_parts, **{**self.settled, **given})


AnyEntry = TypeVar("AnyEntry", bound=Entry)


def by_name(*entries: AnyEntry) -> dict[str, AnyEntry]:
    """Return entries by their names."""
    return {entry.name: entry for entry in entries}


def find_entry(kind: str, name: str, entries: Mapping[str, AnyEntry], known: Callable[[], list[str]]) -> AnyEntry:
    """Return the entry of a name; SpecError with the `known` ones where there is none."""
    if name not in entries:
        raise SpecError(unknown_name(kind, name, known()))
    return entries[name]


SCRIPT = ("__main__", "__mp_main__", "batchlab_own_study")
"""What the user's own file is called by Python, by a worker that imports it, and by us."""


def _are_one(one: Entry, other: Entry) -> bool:
    """Return whether two entries are the same, one of which the user's file may have made when imported again."""
    first, second = (replace(each, module="" if each.module in SCRIPT else each.module) for each in (one, other))
    return first == second


def add_entry(kind: str, entry: AnyEntry, entries: dict[str, AnyEntry]) -> None:
    """Add an entry from outside; InputError where its name is taken by another, or its code cannot be imported."""
    if not _are_one(entries.get(entry.name, entry), entry):
        raise InputError(f"There is already {kind} {shown(entry.name)}: give yours another name.")
    try:
        getattr(import_module(entry.module), entry.attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(f"{kind} {shown(entry.name)} cannot be registered: {shown(str(error))}.") from error
    entries[entry.name] = entry
