"""Do workers that are joined by a link of known latency and bandwidth find both? Root and iproute2 are needed.

    python benchmarks/link_recovery.py [LINK ...] [--workers 2] [--repeats 6] [--json FILE]

Each link is made, seen by plain sockets, and then by a gang that trains digits, by the functions of `batchlab scaling`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from coverage import tabulate

from batchlab.analysis.times.efficiency import scaling_json
from batchlab.link.link import Link
from batchlab.plan.scaling import measure_throughput
from batchlab.report.step_times import measured_throughput
from batchlab.run.trainers import make_trainer
from batchlab.spec.load import load_sweep

LINKS = ("latency=2ms,bandwidth=100mbit", "latency=5ms,bandwidth=100mbit", "latency=10ms,bandwidth=20mbit")
MEGABIT = 1e6 / 8


def recover(link: Link, workers: list[int], repeats: int) -> dict[str, Any]:
    """Return what was asked, what sockets saw, and what the workers found."""
    sweep = load_sweep("digits", ["sweep.batch_sizes=[16, 64, 256]"])
    record = measure_throughput(sweep, make_trainer(sweep, None), workers=workers, link=link, repeats=repeats)
    return scaling_json(measured_throughput(record))


def row(link: Link, found: dict[str, Any]) -> dict[str, str]:
    """Return a row of the table."""
    fitted, seen = found["fit"]["all_reduce"], found["link"]
    added = _span(1e3, seen["added_latency"], seen["added_latency_ci"])
    bandwidth = _span(1 / MEGABIT, fitted["bandwidth"], fitted["bandwidth_ci"])
    return {
        "asked": str(link),
        "seen by sockets": f"{1e3 * seen['round_trip']:.2f} ms, {seen['throughput'] / MEGABIT:.1f} mbit/s",
        "latency of a message, ms": _span(1e3, fitted["latency"], fitted["latency_ci"]),
        "of it the link's, ms": f"{added}{_off(seen['added_latency'], link.latency)}",
        "bandwidth, mbit/s": f"{bandwidth}{_off(fitted['bandwidth'], link.bandwidth)}",
        "worst deviation of a sum": f"{100 * fitted['worst_residual']:.1f} %",
    }


def _span(unit: float, value: float, interval: list[float | None]) -> str:
    low, high = (unit * (bound or 0.0) for bound in interval)
    return f"{unit * value:.4g} ({low:.4g} to {high:.4g})"


def _off(found: float, asked: float | None) -> str:
    return "" if asked is None else f", {100 * (found / asked - 1):+.1f} %"


def main() -> None:
    """Make every link, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("links", nargs="*", default=LINKS)
    parser.add_argument("--workers", default="1,2", help="numbers of workers")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    workers = [int(each) for each in arguments.workers.split(",")]
    results = {}
    for text in arguments.links:
        link = Link.parse(text)
        results[str(link)] = recover(link, workers, arguments.repeats)
    print(tabulate([row(Link.parse(text), found) for text, found in results.items()]))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
