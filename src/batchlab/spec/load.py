"""Specs: TOML by path, a built-in study or a workload of the catalogue by name, with values set on top."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from batchlab.catalogue.paper import paper_names
from batchlab.catalogue.reference import is_reference, resolve
from batchlab.core.sweep import Sweep
from batchlab.core.value import known_keys, model_at
from batchlab.core.workload import Workload
from batchlab.errors import SpecError, plain, shown, spelled, unknown_name
from batchlab.optim.registry import with_defaults
from batchlab.spec.at_tables import narrowed
from batchlab.spec.check import check_sweep
from batchlab.spec.doubled import check_doubled
from batchlab.spec.toml import MOST_DEPTH, parse_toml, read_toml

_TABLES = ("sweep", "workload", "engine")
"""Of a spec: those whose keys are settings."""


def builtin_names() -> list[str]:
    """Return the names of the built-in studies."""
    folder = resources.files("batchlab") / "studies"
    return sorted(path.name.removesuffix(".toml") for path in folder.iterdir() if path.name.endswith(".toml"))


def load_sweep(spec: str, settings: Sequence[str] = ()) -> Sweep:
    """Return the checked sweep of a spec file, a built-in study, `paper:NAME` or `small:NAME`.

    `settings` are lines like `sweep.trials=8`.
    """
    layers, source = _read(spec)
    data = _merged(layers)
    for setting in settings:
        _apply(data, setting)
    try:
        return _parsed(data, layers[0], source)
    except SpecError as error:
        if settings and _is_sound(_merged(layers), layers[0]):
            raise SpecError(f"--set: {error}") from None
        raise


def with_settings(data: dict[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """Return the data of a spec with some values changed, each written as KEY=VALUE."""
    changed = copy.deepcopy(data)
    for setting in settings:
        _apply(changed, setting)
    return changed


def _parsed(data: dict[str, Any], base: dict[str, Any], source: str) -> Sweep:
    sweep = Sweep.parse(data, source)
    try:
        _check_alias(sweep.workload, base)
        check_doubled(sweep)
        check_sweep(sweep)
    except SpecError as error:
        raise SpecError(f"{source}: {error}") from None
    return with_defaults(sweep)


def _is_sound(data: dict[str, Any], base: dict[str, Any]) -> bool:
    try:
        _parsed(data, base, "")
    except SpecError:
        return False
    return True


def _read(spec: str) -> tuple[list[dict[str, Any]], str]:
    """Return the spec's layers, what it extends first, and the name of its source."""
    if is_reference(spec):
        return [resolve(spec)], spec
    data, source = _read_data(spec)
    _check_keys(data, source)
    base = data.pop("extends", None)
    return [*([] if base is None else _read_base(base, source)), data], source


def _check_keys(data: dict[str, Any], source: str) -> None:
    """Raise SpecError for a key that a file cannot begin with; one of them is no part of a sweep."""
    known = [*known_keys(Sweep), "extends"]
    for key in data:
        if key not in known:
            raise SpecError(f"{source}: {unknown_name('key', key, known)}")


def _read_base(base: Any, source: str) -> list[dict[str, Any]]:
    """Return the layers of what a spec extends: a built-in study or a workload of the catalogue, never a file."""
    if not isinstance(base, str) or not (is_reference(base) or base in builtin_names()):
        known = [*builtin_names(), "paper:NAME", "small:NAME"]
        name = base if isinstance(base, str) else spelled(base)
        hint = " A spec cannot extend a file." if name.endswith(".toml") else ""
        raise SpecError(f"{source}: `extends`: {unknown_name('study', name, known)}{hint}")
    try:
        return _read(base)[0]
    except SpecError as error:
        raise SpecError(f"{source}: `extends`: {error}") from None


def _read_data(spec: str) -> tuple[dict[str, Any], str]:
    """Return what a spec file or a built-in study holds, and its name."""
    if spec in builtin_names():
        text = (resources.files("batchlab") / "studies" / f"{spec}.toml").read_text("utf-8")
        return parse_toml(text), f"{spec}.toml"
    path = Path(spec)
    if os.path.lexists(path) and not os.path.isdir(path):
        return read_toml(path), plain(str(path))
    if spec in paper_names():
        raise SpecError(f"{spec} is a workload of the paper: give paper:{spec} or small:{spec}.")
    if os.path.isdir(path):
        raise SpecError(f"{shown(spec)} is a folder: give a spec file, or the name of a study.")
    known = [*builtin_names(), "paper:NAME", "small:NAME"]
    raise SpecError(f"There is no file {shown(spec)}. {unknown_name('study', spec, known)}")


def _merged(layers: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the layers as one spec: a later one wins, key by key in each table; what a key holds is never mixed."""
    merged: dict[str, Any] = {}
    for layer in layers:
        _narrow_at(merged, layer)
        for key, value in layer.items():
            old = merged.get(key)
            merged[key] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    return copy.deepcopy(merged)


def _narrow_at(data: dict[str, Any], later: dict[str, Any]) -> None:
    if "at" in data:
        data["at"] = narrowed(data["at"], later)


def _check_alias(workload: Workload, base: dict[str, Any]) -> None:
    """Raise SpecError where the alias of what was extended would name another workload."""
    begun = base.get("workload")
    if workload.alias is None or not isinstance(begun, dict) or workload.alias != begun.get("alias"):
        return
    for part in ("dataset", "model", "optimizer"):
        meant, named = begun.get(part), getattr(workload, part).name
        meant = meant.get("name") if isinstance(meant, dict) else meant
        if meant is not None and named != meant:
            raise SpecError(
                f"workload.alias = {workload.alias} stands for {part} {shown(meant)}, not {shown(named)}:"
                " set workload.alias too."
            )


def _apply(data: dict[str, Any], setting: str) -> None:
    """Set one value, written as in TOML: `sweep.goal="val/risk <= 0.1"`; a bare word is a string."""
    key, equals, text = setting.partition("=")
    *tables, last = key.strip().split(".")
    if not equals:
        raise SpecError(f'--set {shown(setting)}: write it as KEY=VALUE, such as "sweep.trials=8".')
    if key.strip() == "extends":
        raise SpecError(f"--set {shown(setting)}: only a spec file can say what it extends.")
    if len(tables) >= MOST_DEPTH:
        raise SpecError(f"--set {shown(setting)}: the key has more than {MOST_DEPTH} parts.")
    if not tables:
        _check_top(setting, last)
    value = _setting_value(text)
    later: dict[str, Any] = {last: value}
    for table in reversed(tables):
        later = {table: later}
    _narrow_at(data, later)
    for table in tables:
        data = data.setdefault(table, {})
        if not isinstance(data, dict):
            raise SpecError(f"--set {shown(setting)}: `{shown(table)}` is not a table.")
    data[last] = value


def _check_top(setting: str, key: str) -> None:
    """Raise SpecError for a key that stands in a table, where it is set without one."""
    holding = [table for table in _TABLES if key in known_keys(model_at(Sweep, (table,)))]
    if key not in known_keys(Sweep) and holding:
        raise SpecError(f"--set {shown(setting)}: Unknown key. Did you mean {holding[0]}.{key}?")


def _setting_value(text: str) -> Any:
    """Return the one value that a text writes in TOML; what writes none, or more than one, is a string."""
    try:
        written = parse_toml(f"value = {text}")
    except ValueError:
        return text
    return written["value"] if list(written) == ["value"] else text
