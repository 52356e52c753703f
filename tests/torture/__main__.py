"""`scripts/torture`: batchlab, tortured; prints the table of cases, clean and failed."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from batchlab.core.duration import spell_seconds
from tests.torture.asking import environment
from tests.torture.kills import make_facts
from tests.torture.kinds import KINDS, shared_out
from tests.torture.snapshot import differences, snapshot
from tests.torture.stock import make_stock
from tests.torture.table import Outcome, table

MOST_CASE_SECONDS = 300
"""After which a case hangs: hundreds of times what one takes."""

CHUNK = 50
"""Cases that one process does before the next takes over, so that none grows old."""


@dataclass(frozen=True)
class Chunk:
    """A few cases of one kind."""

    kind: str
    numbers: tuple[int, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases; return 1 where one failed."""
    options = _parsed(arguments)
    began, folder = time.monotonic(), options.folder or Path(tempfile.mkdtemp(prefix="torture-"))
    if not (folder / "stock").exists():
        make_facts(folder / "stock", make_stock(folder / "stock"))
    before = _copied_from(folder)
    chunks = [Chunk(*options.case)] if options.case else list(_chunks(options.cases, options.kinds))
    deadline = began + 60 * options.minutes if options.minutes else None
    with ThreadPoolExecutor(options.processes) as threads:
        runs = [threads.submit(_run_chunk, chunk, options.seed, folder, deadline) for chunk in chunks]
        outcomes = list(_gathered(runs, sum(len(chunk.numbers) for chunk in chunks)))
    outcomes.sort(key=lambda outcome: (list(KINDS).index(outcome.kind), outcome.number))
    print(table(outcomes, time.monotonic() - began))
    changed = differences(before, _copied_from(folder))
    if changed:
        print(f"The labs that all cases are copied from are not as they were: {'; '.join(changed[:5])}")
    return 1 if changed or any(outcome.problems for outcome in outcomes) else 0


def _gathered(runs: Sequence[Future[list[Outcome]]], num_cases: int) -> Iterator[Outcome]:
    """Yield what became of all cases, and tell how far they are."""
    began, num_done, num_failed = time.monotonic(), 0, 0
    for run in as_completed(runs):
        outcomes = run.result()
        yield from outcomes
        num_done += len(outcomes)
        num_failed += sum(bool(outcome.problems) for outcome in outcomes)
        left = (time.monotonic() - began) / max(1, num_done) * (num_cases - num_done)
        told = f"{num_done:,} of {num_cases:,} cases, {num_failed:,} failed, about {spell_seconds(left)} left"
        print(told, file=sys.stderr, flush=True)


def _copied_from(folder: Path) -> dict[str, str]:
    """Return what the labs and archives are that cases are copied from."""
    places = [place for kind in ("lab", "before", "archive*") for place in (folder / "stock").glob(f"*/{kind}")]
    return {f"{place}/{name}": what for place in places for name, what in snapshot(place).items()}


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/torture", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many, over all kinds (1000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases (0)")
    parser.add_argument("--kinds", type=_kinds, default=list(KINDS), help=f"some of {','.join(KINDS)}")
    parser.add_argument("--case", type=_one_case, help="only this one, as damage:17")
    parser.add_argument("--minutes", type=float, help="begin no case after so long")
    parser.add_argument("--processes", type=int, default=2, help="side by side (2)")
    parser.add_argument("--folder", type=Path, help="where the labs and what failed is kept; a new one of the system")
    return parser.parse_args(arguments)


def _kinds(text: str) -> list[str]:
    kinds = text.split(",")
    if unknown := set(kinds) - set(KINDS):
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(KINDS)}")
    return kinds


def _one_case(text: str) -> tuple[str, tuple[int, ...]]:
    kind, _, number = text.partition(":")
    return _kinds(kind)[0], (int(number),)


def _chunks(num_cases: int, kinds: Sequence[str]) -> Iterator[Chunk]:
    """Yield the cases in pieces, the kinds by turns."""
    numbers = {kind: list(range(number)) for kind, number in shared_out(num_cases, kinds).items()}
    while any(numbers.values()):
        for kind in kinds:
            if taken := numbers[kind][:CHUNK]:
                yield Chunk(kind, tuple(taken))
            numbers[kind] = numbers[kind][CHUNK:]


def _run_chunk(chunk: Chunk, seed: int, folder: Path, deadline: float | None) -> list[Outcome]:
    """Run some cases in a process of their own; after one that hangs or crashes, the rest in another."""
    outcomes: list[Outcome] = []
    left = list(chunk.numbers)
    while left and (deadline is None or time.monotonic() < deadline):
        done, underway = _run_process(Chunk(chunk.kind, tuple(left)), seed, folder, deadline)
        outcomes += done if underway is None else [*done, underway]
        for outcome in done if underway is None else [*done, underway]:
            _print_failed(outcome, seed, folder)
        finished = {outcome.number for outcome in outcomes}
        left = [number for number in left if number not in finished]
        if underway is None:
            break
    return outcomes


def _run_process(chunk: Chunk, seed: int, folder: Path, deadline: float | None) -> tuple[list[Outcome], Outcome | None]:
    """Return the cases that were done, and the one that the process did not survive."""
    numbers = json.dumps(chunk.numbers)
    command = [sys.executable, "-m", "tests.torture.one_process", chunk.kind, str(seed), numbers, str(folder)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,  # it ends with this one
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    done, underway, began = list[Outcome](), None, time.monotonic()
    assert process.stdout is not None and process.stderr is not None
    watch = _Watch(process)
    with ThreadPoolExecutor(1) as reader:
        said = reader.submit(process.stderr.read)
        for line in process.stdout:
            told = json.loads(line)
            watch.renew()
            if "begun" in told:
                underway, began = told["begun"], time.monotonic()
            else:
                kind, number, what, problems, seconds = told["done"]
                done.append(Outcome(kind, number, what, tuple(problems), seconds))
                underway = None
                if deadline is not None and time.monotonic() > deadline:
                    watch.kill()
        process.wait()
        watch.end()
    if (process.returncode == 0 and underway is None) or (deadline is not None and time.monotonic() > deadline):
        return done, None
    kind, number, what = underway or (chunk.kind, -1, "the start of the process")
    why = "no end within the time" if process.returncode == -signal.SIGKILL else f"exit code {process.returncode}"
    problem = f"the process did not survive ({why}): {said.result()[-1500:]}"
    if underway is None:
        raise RuntimeError(problem)
    return done, Outcome(kind, number, what, (problem,), time.monotonic() - began)


class _Watch:
    """Ends a process whose case takes too long."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._timer = Timer(MOST_CASE_SECONDS, self.kill)
        self._timer.start()

    def renew(self) -> None:
        self._timer.cancel()
        self._timer = Timer(MOST_CASE_SECONDS, self.kill)
        self._timer.start()

    def end(self) -> None:
        self._timer.cancel()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _print_failed(outcome: Outcome, seed: int, folder: Path) -> None:
    if not outcome.problems:
        return
    print(f"{outcome.kind}:{outcome.number} failed: {outcome.what}")
    for problem in outcome.problems:
        print("   ", problem.replace("\n", "\n    "))
    again = f"scripts/torture --seed {seed} --case {outcome.kind}:{outcome.number}"
    print(f"    Again: {again}. Kept: {folder / 'failed' / f'{outcome.kind}-{seed}-{outcome.number}'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
