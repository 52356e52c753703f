"""Random specs, settings and arguments: built-in studies with something wrong in them, or not.

Every function takes a `random.Random` and returns text; the same seed gives the same text.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

SHORT = "batch_sizes = [4, 8]\ntrials = 2\nmax_steps = 4\n"
"""What keeps a built-in study from training for long where nothing is wrong with it."""

HOSTILE = [
    "true", "false", '"7"', '"auto"', "-1", "0", "1", "8.0", "1.5", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf",
    "9223372036854775808", "100001", "1000001", "1" + "0" * 400, "9" * 5000, "0x" + "f" * 5000, "[]", "{}", "[[]]",
    '""', '" "', '"../x"', '"a/b"', '"\\u0000"', '"\\u001b[31m"', '"\\n"', '"' + "x" * 3000 + '"', '"meta"',
    '"cuda:99"', "1979-05-27", "07:32:00", "[1, 1]", '["val", "val"]', '["val", "test"]', "{name = 1}",
    '{name = "digits"}', "{values = [0.1, 0.1]}", "{min = 1.0, max = 0.1}", '{min = 0.0, max = 1.0, scale = "log"}',
    "{min = -1e308, max = 1e308}", "{growth = 1.0000000001}", "{growth = 1e300}", "{every = 1, growth = 1.5}",
    '{seeds = 100000, points = 100000}', '"val/risk < nan"', '"val/risk <"', "[" * 400 + "]" * 400, "'x'", '"""x"""',
    '"fc_0"', '"fc_999999_999999"', '"fc_8_8"', '"simple_cnn_base"', '"lstm"', '"resnet_8"', '"momentum"', '"grid"',
]  # fmt: skip
"""Values as TOML writes them."""

_KEYS = [
    "at",
    "at.08",
    "at.4",
    "engine",
    "sweep",
    "workload",
    "extends",
    "seed",
    "a" * 300,
    "name",
    "Größe",
    "x-y",
    "1",
]
_WORDS = [
    "--lab", "--json", "--goal", "--trials", "--sweep", "--workers", "--only", "--seeds", "--points", "--set", "--data",
    "--dry-run", "--published", "--source", "--debugg", "--help", "-1", "0", "1", "2", "1e5", "9" * 5000, "", " ",
    "\udcff", "..", "a\nb", "\x1b[31m", "val/risk < 0.1", "val/risk < 1_0", "x/y/z", "1..2", "2..1", "..",
    "paper-all", "compare", "steps-to-result", "nqm", "small:x", "paper:", "sweep.trials=1", "=", "x" * 3000,
    "²", "٣", "%s", "{}", "--", "-",
]  # fmt: skip
_COMMANDS = ["status", "workloads", "curve", "figure", "report", "verify", "run", "x", "", "confirm", "merge"]


@dataclass(frozen=True)
class Raw:
    """A value as it is written, right or wrong."""

    text: str


def spec(dice: random.Random) -> str:
    """Return a spec: a short built-in study in which up to three things are changed."""
    if dice.random() < 0.15:
        return _torn(_written(_base(dice)), dice)
    data = _base(dice)
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
        dice.choice(_CHANGES)(data, dice)
    return _written(data)


def setting(dice: random.Random) -> str:
    """Return what may follow --set."""
    place = ".".join(str(part) for part in dice.choice(_places(_base(dice))))
    return dice.choice(
        [
            f"{place}={dice.choice(HOSTILE)}",
            f"{place}={dice.choice(HOSTILE)}",
            f"{dice.choice(_KEYS)}={dice.choice(HOSTILE)}",
            f"{place}.{dice.choice(_KEYS)}={dice.choice(HOSTILE)}",
            f"{place}=1\nseed=2",
            ".".join("a" * dice.choice([3, 40, 5000])) + "=1",
            dice.choice(_WORDS),
        ]
    )


def arguments(dice: random.Random) -> list[str]:
    """Return a command and words that it may or may not know; nothing among them trains or writes."""
    command = dice.choice(_COMMANDS)
    words = dice.choices(_WORDS, k=dice.randint(0, 5))
    if command == "run":  # a dry run, and of nothing that takes long
        words = ["spec-that-is-not-there", *(word for word in words if word != "nqm"), "--dry-run"]
    if command in ("figure", "report", "merge"):
        words += ["--lab", "lab-that-is-not-there"]
    return [command, *words]


def _base(dice: random.Random) -> dict[str, Any]:
    """Return a built-in study that is over in a moment."""
    name = dice.choice(["nqm", "nqm", "digits", "mnist-fc", "mnist-cnn"])
    data = tomllib.loads((resources.files("batchlab") / "studies" / f"{name}.toml").read_text("utf-8"))
    data["sweep"] |= tomllib.loads(SHORT)
    return data


def _places(data: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where something stands, tables and lists included."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    found = [place for key, value in inside for place in _places(value, (*above, key))]
    return [above, *found] if above else found


def _holder(data: Any, dice: random.Random) -> tuple[Any, Any]:
    """Return a random table or list and a key of it."""
    place = dice.choice(_places(data))
    for key in place[:-1]:
        data = data[key]
    return data, place[-1]


def _replace(data: dict[str, Any], dice: random.Random) -> None:
    holder, key = _holder(data, dice)
    holder[key] = Raw(dice.choice(HOSTILE))


def _remove(data: dict[str, Any], dice: random.Random) -> None:
    holder, key = _holder(data, dice)
    del holder[key]


def _rename(data: dict[str, Any], dice: random.Random) -> None:
    holder, key = _holder(data, dice)
    if isinstance(holder, dict):
        holder[dice.choice([str(key)[::-1], str(key).upper(), f" {key}", f"{key}\x01", *_KEYS])] = holder.pop(key)


def _add(data: dict[str, Any], dice: random.Random) -> None:
    holder, _ = _holder(data, dice)
    if isinstance(holder, dict):
        holder[dice.choice(_KEYS)] = Raw(dice.choice(HOSTILE))
    else:
        holder.append(Raw(dice.choice(HOSTILE)))


def _double(data: dict[str, Any], dice: random.Random) -> None:
    holder, key = _holder(data, dice)
    if isinstance(holder, list):
        holder.append(holder[key])


def _scale(data: dict[str, Any], dice: random.Random) -> None:
    holder, key = _holder(data, dice)
    if isinstance(holder[key], int | float):
        holder[key] = holder[key] * dice.choice([-1, 0, 0.5, 1000, 10**9, 10**30])


def _nest(data: dict[str, Any], dice: random.Random) -> None:
    holder, key = _holder(data, dice)
    for _ in range(dice.choice([1, 2, 50])):
        holder[key] = dice.choice([{"name": holder[key]}, [holder[key]]])


_CHANGES: list[Callable[[dict[str, Any], random.Random], None]] = [
    _replace, _replace, _replace, _replace, _remove, _rename, _add, _double, _scale, _scale, _nest,
]  # fmt: skip


def _written(data: dict[str, Any]) -> str:
    """Return a spec as TOML, each table on one line."""
    return "".join(f"{_text(key)} = {_value(value)}\n" for key, value in data.items())


def _value(value: Any) -> str:
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _text(value) if isinstance(value, str) else str(value).lower()


def _text(value: object) -> str:
    return (
        '"'
        + "".join(each if each.isprintable() and each not in '"\\' else f"\\u{ord(each):04x}" for each in str(value))
        + '"'
    )


def _torn(text: str, dice: random.Random) -> str:
    """Return a text with pieces gone, doubled or strange."""
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(text) + 1)
        to = at + dice.choice([0, 1, 1, 7])
        text = (
            text[:at]
            + dice.choice(["", "[", "]", "{", '"', "=", ".", "\x00", "\ufeff", "'''", "#", text[at:to] * 2])
            + text[to:]
        )
    return text
