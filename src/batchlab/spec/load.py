"""Specs: TOML by path, a built-in study or a workload of the catalogue by name, with values set on top."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from batchlab.catalogue.paper import paper_names
from batchlab.catalogue.reference import is_reference, resolve
from batchlab.core.sweep import Sweep
from batchlab.core.workload import Named, Workload
from batchlab.errors import SpecError, unknown_name
from batchlab.spec.at_tables import narrowed
from batchlab.spec.check import check_sweep


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


def _parsed(data: dict[str, Any], base: dict[str, Any], source: str) -> Sweep:
    sweep = Sweep.parse(data, source)
    try:
        _check_alias(sweep.workload, base)
        check_sweep(sweep)
    except SpecError as error:
        raise SpecError(f"{source}: {error}") from None
    return sweep


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
    text, source = _read_text(spec)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{source}: not valid TOML: {error}.") from None
    base = data.pop("extends", None)
    return [*([] if base is None else _read_base(base, source)), data], source


def _read_base(base: Any, source: str) -> list[dict[str, Any]]:
    """Return the layers of what a spec extends: a built-in study or a workload of the catalogue, never a file."""
    if not isinstance(base, str) or not (is_reference(base) or base in builtin_names()):
        known = [*builtin_names(), "paper:NAME", "small:NAME"]
        hint = " A spec cannot extend a file." if str(base).endswith(".toml") else ""
        raise SpecError(f"{source}: `extends`: {unknown_name('study', str(base), known)}{hint}")
    try:
        return _read(base)[0]
    except SpecError as error:
        raise SpecError(f"{source}: `extends`: {error}") from None


def _read_text(spec: str) -> tuple[str, str]:
    if spec in builtin_names():
        return (resources.files("batchlab") / "studies" / f"{spec}.toml").read_text(), f"{spec}.toml"
    path = Path(spec)
    try:
        return path.read_text(), str(path)
    except (FileNotFoundError, IsADirectoryError):
        if spec in paper_names():
            raise SpecError(f"{spec} is a workload of the paper: give paper:{spec} or small:{spec}.") from None
        known = [*builtin_names(), "paper:NAME", "small:NAME"]
        raise SpecError(f"There is no file {spec}. {unknown_name('study', spec, known)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}.") from None


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
    begun = base.get("workload", {})
    if workload.alias is None or workload.alias != begun.get("alias"):
        return
    for part in ("dataset", "model", "optimizer"):
        meant, named = Named.model_validate(begun[part]).name, getattr(workload, part).name
        if named != meant:
            raise SpecError(
                f"workload.alias = {workload.alias} stands for {part} {meant}, not {named}: set workload.alias too."
            )


def _apply(data: dict[str, Any], setting: str) -> None:
    """Set one value, written as in TOML: `sweep.goal="val/risk <= 0.1"`; a bare word is a string."""
    key, equals, text = setting.partition("=")
    if not equals:
        raise SpecError(f'--set {setting}: write it as KEY=VALUE, such as "sweep.trials=8".')
    if key.strip() == "extends":
        raise SpecError(f"--set {setting}: only a spec file can say what it extends.")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *tables, last = key.strip().split(".")
    later: dict[str, Any] = {last: value}
    for table in reversed(tables):
        later = {table: later}
    _narrow_at(data, later)
    for table in tables:
        data = data.setdefault(table, {})
        if not isinstance(data, dict):
            raise SpecError(f"--set {setting}: `{table}` is not a table.")
    data[last] = value
