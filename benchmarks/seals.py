"""What checking every file that is read costs: this batchlab against an older one, command by command.

    python benchmarks/make_archive.py OUT --scale 1.0
    python benchmarks/seals.py OUT/batch_science --before OLD_CHECKOUT [--runs 10] [--out FILE.json]

Both import the same archive into labs of their own and answer the same questions, in turns and each in a process of its
own. Told are medians over the runs: seconds of the clock, and seconds of processor time, which other work on the
machine moves less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent.parent
WORKLOAD = "imagenet/resnet_50/nesterov_momentum"
QUESTIONS = {
    "status": ["status", "--json"],
    "curve": ["curve", WORKLOAD, "--json"],
    "paper-all": ["figure", "paper-all", "--out", "figures"],
}


def timed(checkout: Path, arguments: list[str], folder: Path) -> tuple[float, float, str]:
    """Run one command of a checkout; return seconds, processor seconds, and what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "batchlab", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def compare(archive: Path, checkouts: dict[str, Path], runs: int, folder: Path) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of every command, by side; the answers of both sides must be equal."""
    found: dict[str, dict[str, list[float]]] = {}
    for run in range(runs):
        for name, arguments in {"import": ["import", str(archive), "--workers", "1"], **QUESTIONS}.items():
            said = []
            for side in sorted(checkouts, reverse=run % 2 == 1):
                home = folder / side
                home.mkdir(exist_ok=True)
                if name == "import":
                    shutil.rmtree(home / "lab", ignore_errors=True)
                seconds, processor, out = timed(checkouts[side], arguments, home)
                said.append(out)
                found.setdefault(name, {}).setdefault(side, []).append(seconds)
                found[name].setdefault(f"{side}, processor", []).append(processor)
            print(f"run {run + 1}, {name}: " + told(found[name]), file=sys.stderr, flush=True)
            if not agree(*map(plain, said)):
                raise SystemExit(f"{name}: the answers differ")
    return found


def plain(out: str) -> Any:
    """Return what a command printed, as data where it is JSON."""
    try:
        return json.loads(out)
    except ValueError:
        return out


def agree(one: Any, other: Any) -> bool:
    """Return whether two answers tell the same, but for fields that only one of them has."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(agree(one[name], other[name]) for name in one.keys() & other.keys())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(agree, one, other))
    return bool(one == other)


def told(sides: dict[str, list[float]]) -> str:
    """Return the medians of both sides and their ratio, by the clock and by the processor."""
    texts = []
    for kind in ("", ", processor"):
        before, after = (statistics.median(sides[f"{side}{kind}"]) for side in ("before", "after"))
        texts.append(f"{before:.2f} s before, {after:.2f} s after ({after / before:.3f} times){kind}")
    return "; ".join(texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--before", type=Path, required=True, help="a checkout of the older batchlab")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    checkouts = {"before": arguments.before.resolve(), "after": HERE}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        found = compare(arguments.archive.resolve(), checkouts, arguments.runs, Path(folder).resolve())
    for name, sides in found.items():
        print(f"{name}: {told(sides)}, n = {arguments.runs}")
    if arguments.out:
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
