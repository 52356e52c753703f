"""Commands that write, killed at random moments and at every operation on files in turn, or refused by the disk.

Whatever is killed, the readers answer, the same command goes on, and the end is that of a run that nobody disturbed.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from batchlab.errors import BatchlabError
from tests.torture.asking import ask, environment, is_unexpected
from tests.torture.case import Case, Cases, chance
from tests.torture.content import content
from tests.torture.kill_at import Orders, operations, processes
from tests.torture.stock import DIGITS, QUADRATIC, Sample, changed, write_spec
from tests.torture.warm import Copy, warm_process

KIND = "kills"
MOST_SECONDS = 90
FACTS = "kills.json"
SHARED_MEMORY = Path("/dev/shm")
LONGEST_FAREWELL = 100
"""Tenths of a second that workers have to end after their parent."""


@dataclass(frozen=True)
class Scenario:
    """A lab, and a command that writes to it."""

    name: str
    prepare: Callable[[Path, dict[str, Sample]], None]
    """Puts in a folder what the command needs."""

    arguments: tuple[str, ...]
    """Of batchlab; LAB and HERE stand for places."""

    then: tuple[tuple[str, ...], ...] = ()
    """Commands that complete the lab, where the first does not."""

    is_sound: bool = True
    """Whether the lab is sound before the command."""


def _spec(spec: dict[str, Any]) -> Callable[[Path, dict[str, Sample]], None]:
    def prepare(place: Path, stock: dict[str, Sample]) -> None:
        write_spec(place / "spec.toml", spec)

    return prepare


def _growth(place: Path, stock: dict[str, Sample]) -> None:
    shutil.copytree(stock["quadratic"].before, place / "lab")
    write_spec(place / "spec.toml", changed(QUADRATIC, trials=6))


def _confirm(place: Path, stock: dict[str, Sample]) -> None:
    shutil.copytree(stock["digits"].before, place / "lab")


def _grown_and_confirmed(place: Path, stock: dict[str, Sample]) -> None:
    shutil.copytree(stock["digits"].lab, place / "lab")
    write_spec(place / "spec.toml", changed(DIGITS, trials=4, confirm={"seeds": 3, "points": 2}))


def _archive(place: Path, stock: dict[str, Sample]) -> None:
    source = stock["imported"].archive
    assert source is not None
    shutil.copytree(source, place / "archive")


def _tar(place: Path, stock: dict[str, Sample]) -> None:
    source = stock["imported"].archive
    assert source is not None
    shutil.make_archive(str(place / "archive"), "gztar", source)


def _damaged(place: Path, stock: dict[str, Sample]) -> None:
    shutil.copytree(stock["digits"].lab, place / "lab")
    write_spec(place / "spec.toml", DIGITS)
    studies = place / "lab" / "sweeps" / "digits-small"
    (studies / "16" / "measurements.parquet").write_bytes(b"nothing")
    (studies / "128" / "study.json").unlink()
    (studies / "128" / "confirmed.json").write_text("{}")
    (studies / "128" / "states" / "trials-2.safetensors").write_bytes(b"PK")


def _merged(place: Path, stock: dict[str, Sample]) -> None:
    shutil.copytree(stock["quadratic"].lab, place / "one")


def _old(place: Path, stock: dict[str, Sample]) -> None:
    shutil.copytree(stock["format-1"].lab, place / "lab")
    shutil.copy(next(path for path in stock["format-1"].specs if path.stem == "unfinished"), place / "spec.toml")


_RUN = ("run", "HERE/spec.toml", "--lab", "LAB", "--workers", "1")
SCENARIOS = [
    Scenario("nqm", _spec(QUADRATIC), _RUN),
    Scenario("digits", _spec(DIGITS), _RUN),
    Scenario("growth", _growth, _RUN),
    Scenario("import", _archive, ("import", "HERE/archive", "--lab", "LAB", "--workers", "1")),
    Scenario("import of a tar", _tar, ("import", "HERE/archive.tar.gz", "--lab", "LAB", "--workers", "2")),
    Scenario("confirm", _confirm, ("confirm", "--lab", "LAB", "--workers", "1", "--seeds", "2", "--points", "2")),
    Scenario("growth and confirm", _grown_and_confirmed, _RUN),
    Scenario("repair", _damaged, ("verify", "--repair", "--lab", "LAB"), then=(_RUN,), is_sound=False),
    Scenario("merge", _merged, ("merge", "HERE/one", "--into", "LAB")),
    Scenario("older format", _old, _RUN),
]


def cases(stock: Sequence[Sample], seed: int, numbers: range | None = None) -> Cases:
    """Yield cases without an end, or those of some numbers: every scenario by turns."""
    by_name = {sample.name: sample for sample in stock}
    for number in numbers if numbers is not None else count():
        scenario = SCENARIOS[number % len(SCENARIOS)]
        yield _case(scenario, by_name, seed, number)


def _case(scenario: Scenario, stock: dict[str, Sample], seed: int, number: int) -> Case:
    dice, facts = chance(KIND, seed, number), facts_of(stock)[scenario.name]
    strikes = [_strike(facts, dice, seed + number // len(SCENARIOS))]
    while dice.random() < 0.3:
        strikes.append(_strike(facts, dice, dice.randrange(10_000)))
    what = f"{scenario.name}: {'; '.join(map(str, strikes))}"
    return Case(KIND, number, what, lambda place: list(_judge(scenario, stock, strikes, facts, place)))


@dataclass(frozen=True)
class Strike:
    """When and how a command is disturbed: at an operation, or after a time."""

    who: str
    at: int
    how: str
    seconds: float | None = None
    is_cold: bool = False
    """Whether the command is started as a user does, imports and all."""

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"{self.how} after {self.seconds:.2f} s"
        return f"{self.how} at operation {self.at} of {self.who}"


def _strike(facts: dict[str, Any], dice: random.Random, turn: int) -> Strike:
    """Return a strike; those at operations take them in turn, in an order that covers the whole early."""
    if dice.random() < 0.25:
        return Strike("main", 0, "kill all", dice.uniform(0, facts["seconds"]), is_cold=dice.random() < 0.2)
    who = "worker" if facts["worker"] and dice.random() < 0.25 else "main"
    total = facts[who]
    step = next(each for each in range(int(total * 0.618) + 1, 2 * total + 2) if _has_no_common(each, total))
    return Strike(who, (turn * step) % total + 1, dice.choice(["kill", "kill all", "kill", "ENOSPC", "EIO"]))


def _has_no_common(one: int, other: int) -> bool:
    while other:
        one, other = other, one % other
    return one == 1


_COMMAND = (sys.executable, "-m", "tests.torture.kill_at")


def _given(arguments: Sequence[str], place: Path) -> list[str]:
    return [each.replace("LAB", str(place / "lab")).replace("HERE", str(place)) for each in arguments]


@dataclass(frozen=True)
class Ended:
    """A process that has ended."""

    code: int | None
    """None where it did not end in time."""

    err: str


def _run(arguments: Sequence[str], place: Path, strike: Strike | None = None) -> Ended:
    """Run a command of its own session to its end, or to the strike; nothing of it is left running."""
    process = (_start if strike is not None and strike.is_cold else start_copy)(arguments, place, strike)
    seconds = strike.seconds if strike is not None else None
    try:
        _, err = process.communicate(timeout=MOST_SECONDS if seconds is None else seconds)
    except subprocess.TimeoutExpired:
        end_session(process)
        return Ended(None if seconds is None else -signal.SIGKILL, "no end in time")
    left = _left_running(process.pid)
    end_session(process)
    return Ended(None if left else process.returncode, f"{left} outlived it" if left else err)


def _start(arguments: Sequence[str], place: Path, strike: Strike | None = None) -> subprocess.Popen[str]:
    """Start a command in a session of its own."""
    return subprocess.Popen(
        [*_COMMAND, *_given(arguments, place)],
        env={**environment(), **_variables(strike, place)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def start_copy(arguments: Sequence[str], place: Path, strike: Strike | None = None) -> Copy:
    """Start a command in a session of its own, without the seconds that importing takes."""
    warm = warm_process(_COMMAND, tuple(environment().items()))
    return Copy(_given(arguments, place), _variables(strike, place), place / "stderr", warm)


def _variables(strike: Strike | None, place: Path) -> dict[str, str]:
    log = place / "log"
    orders = Orders(str(place / "lab"), str(log)) if strike is None else _orders(strike, place, log)
    return {**orders.variables(), "XDG_CACHE_HOME": str(place / "cache")}


def _orders(strike: Strike, place: Path, log: Path) -> Orders:
    return Orders(str(place / "lab"), str(log), strike.who, strike.at, strike.how)


def _left_running(session: int) -> list[int]:
    """Return the processes of a session that live on after its first has ended, once they had time to notice."""
    for _ in range(LONGEST_FAREWELL):
        alive = [number for number in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _is_of(number, session)]
        if not alive:
            return []
        time.sleep(0.1)
    return alive


def _is_of(process: int, session: int) -> bool:
    """Return whether a process lives and is of a session."""
    with suppress(OSError):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return os.getsid(process) == session and state not in ("Z", "X")
    return False


def end_session(process: subprocess.Popen[str] | Copy) -> None:
    """Kill a command and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _judge(
    scenario: Scenario, stock: dict[str, Sample], strikes: Sequence[Strike], facts: dict[str, Any], place: Path
) -> Iterator[str]:
    """Disturb a command, look, and let it end: yield what is not as promised."""
    scenario.prepare(place, stock)
    shared = set(os.listdir(SHARED_MEMORY)) if SHARED_MEMORY.exists() else set()
    for strike in strikes:
        ended = _run(scenario.arguments, place, strike)
        yield from _ended_well(ended, strike)
        yield from check_readers(scenario, place / "lab", facts)
    yield from check_completed(scenario, place, facts)
    if left := sorted(set(_left_in_memory(processes(place / "log"))) - shared):
        yield f"left in shared memory: {', '.join(left)}"


def _ended_well(ended: Ended, strike: Strike) -> Iterator[str]:
    if ended.code is None:
        yield f"{strike}: {ended.err}"
    elif is_unexpected(ended.err):
        yield f"{strike}: traceback: {ended.err[-1500:]}"
    elif ended.code not in (0, 1, 2, -signal.SIGKILL):
        yield f"{strike}: exit code {ended.code}: {ended.err[-500:]}"
    elif strike.how in ("ENOSPC", "EIO") and ended.code == 1 and "could not start" in ended.err:
        yield f"{strike}: {ended.err[-500:]}"


def check_readers(scenario: Scenario, lab: Path, facts: dict[str, Any]) -> Iterator[str]:
    """Whatever a kill left, readers answer truly, and do not take it for damage."""
    if not lab.exists():
        return
    for answer in (ask("status", "--lab", lab), ask("verify", "--lab", lab)):
        if answer.code is None:
            yield f"after the kill: traceback: {answer.err[-1500:]}"
        elif answer.code == 2 and "There is no lab in" not in answer.err:
            yield f"after the kill a lab cannot be read: {answer.err[-600:]}"
        elif answer.code == 1 and scenario.is_sound:
            yield f"after the kill a sound lab is called damaged: {answer.out[-600:]} {answer.err[-600:]}"
    for sweep in facts["rows"]:
        answer = ask("curve", "--lab", lab, "--sweep", sweep, "--json")
        if answer.code is None:
            yield f"after the kill: traceback: {answer.err[-1500:]}"
        for row in json.loads(answer.out)["rows"] if answer.out else ():
            if not any(_is_row(row, known) for known in facts["rows"][sweep]):
                yield f"after the kill curve of {sweep} tells {row}"


def _is_row(row: dict[str, Any], known: dict[str, Any]) -> bool:
    """Return whether a row is one that was told before or is in the end, or the same while it is not confirmed yet."""
    return row == known or row == {**known, "confirmed": None}


def check_completed(scenario: Scenario, place: Path, facts: dict[str, Any]) -> Iterator[str]:
    """Run the command again, undisturbed: the lab must be that of one that nobody ever disturbed."""
    for arguments in (scenario.arguments, *scenario.then):
        ended = _run(arguments, place)
        if ended.code != 0 and (scenario.is_sound or arguments in scenario.then):
            yield f"run again: exit code {ended.code}: {ended.err[-800:]}"
            return
    try:
        found = content(place / "lab")
    except BatchlabError as error:
        yield f"the lab cannot be read in the end: {error}"
        return
    wanted = facts["content"]
    for key in sorted(found.keys() | wanted.keys()):
        if found.get(key) != wanted.get(key):
            yield f"in the end {key} is {found.get(key)} instead of {wanted.get(key)}"
    look = ask("verify", "--lab", place / "lab")
    if look.code != 0:
        yield f"verify is not clean in the end: {look.out[-600:]}"


def _left_in_memory(numbers: Sequence[int]) -> list[str]:
    """Return what is left in shared memory by processes of these numbers: all of ours name theirs after themselves."""
    names = os.listdir(SHARED_MEMORY) if SHARED_MEMORY.exists() else []
    return sorted(name for name in names if any(re.search(rf"[-_]{number}[-_]", name) for number in numbers))


def make_facts(folder: Path, stock: Sequence[Sample]) -> None:
    """Run every scenario without a disturbance, and keep what became of it: how long, how many operations."""
    by_name = {sample.name: sample for sample in stock}
    facts = {scenario.name: _straight(scenario, by_name, folder / "straight") for scenario in SCENARIOS}
    (folder / FACTS).write_text(json.dumps(facts, indent=1))


def _straight(scenario: Scenario, stock: dict[str, Sample], place: Path) -> dict[str, Any]:
    place.mkdir()
    scenario.prepare(place, stock)
    before = _curves(place / "lab")
    began = time.monotonic()
    ended = _run(scenario.arguments, place)
    seconds = time.monotonic() - began
    assert ended.code == 0 or not scenario.is_sound, ended.err
    counts = {who: operations(place / "log", who) for who in ("main", "worker")}
    for arguments in scenario.then:
        assert _run(arguments, place).code == 0
    after = _curves(place / "lab")
    rows = {sweep: before.get(sweep, []) + after[sweep] for sweep in after}
    facts = {"seconds": seconds, **counts, "rows": rows, "content": content(place / "lab")}
    shutil.rmtree(place)
    return facts


def _curves(lab: Path) -> dict[str, list[Any]]:
    """Return the rows of every sweep."""
    sweeps = [path.name for path in (lab / "sweeps").iterdir()] if lab.exists() else []
    answers = {name: ask("curve", "--lab", lab, "--sweep", name, "--json") for name in sweeps}
    return {name: json.loads(answer.out)["rows"] for name, answer in answers.items() if answer.out}


@cache
def _read_facts(path: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(path.read_text())
    return facts


def facts_of(stock: dict[str, Sample]) -> dict[str, Any]:
    """Return what became of every scenario without a disturbance."""
    return _read_facts(next(iter(stock.values())).folder.parent / FACTS)
