"""Spec files: TOML by path, or a built-in study by name, with values set from the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from batchlab.core.sweep import Sweep
from batchlab.errors import SpecError, unknown_name
from batchlab.search.trainers import check_sweep


def builtin_names() -> list[str]:
    """Return the names of the built-in studies."""
    folder = resources.files("batchlab") / "studies"
    return sorted(path.name.removesuffix(".toml") for path in folder.iterdir() if path.name.endswith(".toml"))


def load_sweep(spec: str, settings: Sequence[str] = ()) -> Sweep:
    """Return the checked sweep of a spec file or built-in study; `settings` are lines `sweep.trials=8`."""
    text, source = _read(spec)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{source}: not valid TOML: {error}.") from None
    for setting in settings:
        _apply(data, setting)
    sweep = Sweep.parse(data, source)
    try:
        check_sweep(sweep)
    except SpecError as error:
        raise SpecError(f"{source}: {error}") from None
    return sweep


def _read(spec: str) -> tuple[str, str]:
    if spec in builtin_names():
        return (resources.files("batchlab") / "studies" / f"{spec}.toml").read_text(), f"{spec}.toml"
    path = Path(spec)
    try:
        return path.read_text(), str(path)
    except (FileNotFoundError, IsADirectoryError):
        raise SpecError(unknown_name("spec file or built-in study", spec, builtin_names())) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}.") from None


def _apply(data: dict[str, Any], setting: str) -> None:
    """Set one value, written as in TOML: `sweep.goal="val/risk <= 0.1"`; a bare word is a string."""
    key, equals, text = setting.partition("=")
    if not equals:
        raise SpecError(f'--set {setting}: write it as KEY=VALUE, such as "sweep.trials=8".')
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *tables, last = key.strip().split(".")
    for table in tables:
        data = data.setdefault(table, {})
        if not isinstance(data, dict):
            raise SpecError(f"--set {setting}: `{table}` is not a table.")
    data[last] = value
