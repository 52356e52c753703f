"""One process of a run: its share of the cases, one after the other, told to its parent line by line."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.torture import memory
from tests.torture.case import Case
from tests.torture.kinds import KINDS
from tests.torture.stock import Sample, stock


def run_cases(kind: str, seed: int, numbers: Sequence[int], folder: Path) -> Iterator[tuple[Case, list[str], float]]:
    """Yield every case with what was wrong and its seconds; the folder of one that failed is kept."""
    samples = stock(folder / "stock")
    for number in numbers:
        case = next(iter(KINDS[kind](samples, seed, range(number, number + 1))))
        print(json.dumps({"begun": [kind, number, case.what]}), flush=True)
        began = time.monotonic()
        problems = run_case(case, folder / "failed" / f"{kind}-{seed}-{number}")
        yield case, problems, time.monotonic() - began


def run_case(case: Case, place: Path) -> list[str]:
    """Return what was wrong with one case; its folder stays only where something was."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    before = memory.forget_peak()
    try:
        problems = case.run(place)
    except Exception:
        problems = [f"the case itself: {traceback.format_exc()}"]
    used = memory.peak() - before
    if used > memory.MOST_MEGABYTES:
        problems.append(f"{used:,.0f} MB of memory were used")
    if problems:
        (place / "problems.txt").write_text("\n".join([case.what, *problems]) + "\n")
    else:
        shutil.rmtree(place, ignore_errors=True)
    return problems


def _end_with_parent() -> None:
    """End this process and its commands when the other end of stdin is closed."""
    sys.stdin.read()
    os.killpg(0, signal.SIGKILL)


def main(kind: str, seed: str, numbers: str, folder: str) -> None:
    """Run the cases whose numbers come as a JSON list."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for case, problems, seconds in run_cases(kind, int(seed), json.loads(numbers), Path(folder)):
        print(json.dumps({"done": [kind, case.number, case.what, problems, seconds]}), flush=True)


def samples_of(folder: Path) -> list[Sample]:
    """Return the labs of a run."""
    return stock(folder / "stock")


if __name__ == "__main__":
    main(*sys.argv[1:])
