"""Fuzzed specs and arguments: each is refused in one line, or means what it says."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from tests.torture import changes, specs
from tests.torture.asking import ask, ask_outside
from tests.torture.case import Case, Cases, chance
from tests.torture.snapshot import snapshot
from tests.torture.stock import DIGITS, QUADRATIC, Sample, toml
from tests.torture.verdict import MOST_LINE

KIND = "specs"
MOST_SECONDS = 20
"""Of processor time of this process: a busy machine is no failure, and who hangs is ended after minutes."""

_VALUES = [
    "true", '"7"', "-1", "0", "1e308", "nan", "inf", "[]", "{}", "9" * 5000, '""', '"../x"', "1.5", "[[[]]]",
    '"\\u0000"', "1979-05-27", "100_000_000_000", "[1, 1]", '"meta"', "{name = 1}", "[" * 500 + "]" * 500,
    '"a" "b"', "'x'", "1__0",
]  # fmt: skip


def cases(stock: Sequence[Sample], seed: int, numbers: range | None = None) -> Cases:
    """Yield cases without an end, or those of some numbers."""
    for number in numbers if numbers is not None else count():
        yield _case(stock, seed, number)


def _case(stock: Sequence[Sample], seed: int, number: int) -> Case:
    dice = chance(KIND, seed, number)
    what, run = dice.choice([_value, _value, _built_in, _built_in, _bytes, _setting, _arguments])(stock, dice)
    return Case(KIND, number, what, run)


Plan = tuple[str, Callable[[Path], list[str]]]


def _leaves(data: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if not isinstance(data, dict):
        return [place]
    return [place, *(leaf for key, value in data.items() for leaf in _leaves(value, (*place, key)))][
        0 if place else 1 :
    ]


def _text(spec: dict[str, Any], place: tuple[Any, ...], value: str) -> str:
    """Return a spec as TOML with one value replaced by a text."""

    def show(data: Any, here: tuple[Any, ...]) -> str:
        if here == place:
            return value
        if isinstance(data, dict):
            return "{" + ", ".join(f'"{key}" = {show(each, (*here, key))}' for key, each in data.items()) + "}"
        return toml(data)

    return "".join(f'"{key}" = {show(each, (key,))}\n' for key, each in spec.items())


def _value(stock: Sequence[Sample], dice: random.Random) -> Plan:
    """Put a hostile value at one place of a good spec."""
    spec = dice.choice([QUADRATIC, DIGITS])
    place, value = dice.choice(_leaves(spec)), dice.choice(_VALUES)
    content = _text(spec, place, value).encode()
    return f"{'.'.join(map(str, place))} = {value[:40]}", lambda folder: _run(folder, content)


def _bytes(stock: Sequence[Sample], dice: random.Random) -> Plan:
    """Damage the bytes of a good spec."""
    change = dice.choice(changes.BYTES)
    content = change(_text(dice.choice([QUADRATIC, DIGITS]), (), "").encode(), dice)
    return f"{change.__name__} in a spec", lambda folder: _run(folder, content)


def _built_in(stock: Sequence[Sample], dice: random.Random) -> Plan:
    """Change up to three things in a study of batchlab's own."""
    text = specs.spec(dice)
    return f"a changed study: {text[:100]!r}", lambda folder: _run(folder, text.encode("utf-8", "surrogatepass"))


def _setting(stock: Sequence[Sample], dice: random.Random) -> Plan:
    """Set a value on the command line."""
    place, value = dice.choice(_leaves(QUADRATIC)), dice.choice(_VALUES)
    own = [f"{'.'.join(map(str, place))}={value}", value, "=", "a.b.c.d=1", "sweep=1", "." * 99 + "=1"]
    setting = dice.choice([*own, *(specs.setting(dice) for _ in own)])
    content = _text(QUADRATIC, (), "").encode()
    return f"--set {setting[:40]}", lambda folder: _run(folder, content, "--set", setting)


_WORDS = [
    "--lab", "--json", "--goal", "--trials", "--sweep", "--out", "--workers", "--only", "--seeds", "--points", "-1",
    "0", "9" * 5000, "", "\udcff", "../..", "a\nb", "val/risk < 0.1", "x/y/z", "1..2", "2..1",
    "--published", "--deep", "--accept", "--into", "paper-all", "steps-to-result", "compare", "--data", "--strict",
]  # fmt: skip
_COMMANDS = ["status", "workloads", "curve", "figure", "report", "confirm", "merge", "verify", "export", "import", "x"]


def _arguments(stock: Sequence[Sample], dice: random.Random) -> Plan:
    """Give a command words that it may or may not know, beside a lab that it only reads."""
    own = [dice.choice(_COMMANDS), *dice.choices(_WORDS, k=dice.randint(0, 5))]
    words = dice.choice([own, specs.arguments(dice)])
    lab = stock[0].lab

    def run(folder: Path) -> list[str]:
        before, here = snapshot(lab), Path.cwd()
        os.chdir(folder)
        try:
            outside = dice.random() < 0.05 and not any("\0" in word or "\udcff" in word for word in words)
            problems = _form((ask_outside if outside else ask)(*words))
        finally:
            os.chdir(here)
        return problems if snapshot(lab) == before else [*problems, "a lab elsewhere was changed"]

    return f"arguments {words!r}"[:200], run


def _run(folder: Path, content: bytes, *options: str) -> list[str]:
    """Ask what a spec would do; nothing may be written, and it may not take long."""
    (folder / "spec.toml").write_bytes(content)
    began = time.process_time()
    got = ask("run", folder / "spec.toml", "--lab", folder / "lab", "--dry-run", *options)
    problems = _form(got)
    if time.process_time() - began > MOST_SECONDS:
        problems.append(f"it took {time.process_time() - began:.0f} seconds")
    if (folder / "lab").exists():
        problems.append("a dry run made a lab")
    return problems


def _form(got: Any) -> list[str]:
    if got.code is None:
        return [f"traceback: {got.err[-1500:]}"]
    problems = [] if got.code in (0, 1, 2) else [f"exit code {got.code}: {got.err[-500:]}"]
    bad = [line for line in got.lines if not line.isprintable() or len(line) > MOST_LINE]
    problems += [f"what is no single line: {line[:300]!r}" for line in bad if got.code]
    if got.code == 2 and len(got.lines) != 1:
        problems.append(f"it is refused with {len(got.lines)} lines: {got.err[:500]}")
    return problems
