"""batchlab scaling: examples per second against batch size."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import (
    DEFAULT_LAB,
    DataOption,
    JsonOption,
    LabOption,
    print_figure,
    print_json,
    print_text,
    tell,
    terminal_width,
)
from batchlab.cli.run import load_spec
from batchlab.core.limits import MOST_BATCH_SIZES, MOST_WORKERS
from batchlab.errors import InputError, LabError, shown
from batchlab.files import is_there

if TYPE_CHECKING:
    from batchlab.analysis import Throughput
    from batchlab.core.sweep import Sweep
    from batchlab.engine.base import Trainer
    from batchlab.link.link import Link
    from batchlab.store.throughput import ThroughputRecord

MOST_REPEATS = 1_000


def scaling(
    workload: Annotated[
        str, typer.Argument(help="A sweep or workload of the lab, a spec file, a name as for `run`, or a Python file.")
    ],
    lab: LabOption = DEFAULT_LAB,
    workers: Annotated[
        str, typer.Option("--workers", help="Numbers of processes that train one trial together, such as 1,2,4.")
    ] = "1",
    batch_sizes: Annotated[
        str | None, typer.Option("--batch-sizes", help="Such as 16,64,256; the sweep's if left out.")
    ] = None,
    strong: Annotated[
        bool, typer.Option("--strong", help="Batch sizes are those of all workers together, as by default.")
    ] = False,
    weak: Annotated[bool, typer.Option("--weak", help="Batch sizes are those of each worker.")] = False,
    link: Annotated[
        str | None,
        typer.Option(
            "--link",
            help="Join the workers by a link of this latency (one way) and bandwidth, such as "
            "latency=2ms,bandwidth=100mbit; Linux, root and iproute2.",
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, max=MOST_REPEATS, help="Of each batch size; 6 is the least for 95 %.")
    ] = 8,
    data: DataOption = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value of the spec: --set engine.device=cpu")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A folder for the figure; else none is drawn.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure examples per second by batch size and workers. Fits the time of a step, and keeps it for `batchlab plan`.

    One trial is trained as `run` trains it, by one process or several together, for some steps at each batch size;
    nothing is evaluated and nothing of what is trained is kept. A new measurement takes the place of the old one of the
    same machine and link.
    """
    from batchlab.analysis.times.efficiency import scaling_json
    from batchlab.plan.scaling import find_settings, measure_throughput

    if strong and weak:
        raise typer.BadParameter("--strong and --weak exclude each other; leave one out")
    counts = read_counts(workers, "--workers")
    if counts[-1] > MOST_WORKERS:
        raise InputError(f"--workers {counts[-1]}: {MOST_WORKERS:,} are the most.")
    made = read_link(link, counts)
    sizes = [] if batch_sizes is None else read_counts(batch_sizes, "--batch-sizes")
    if sizes and any(setting.partition("=")[0].strip() == "sweep.batch_sizes" for setting in settings or []):
        raise typer.BadParameter("--batch-sizes and --set sweep.batch_sizes say the same thing; leave one out")
    sweep, trainer = _load(workload, lab, sizes, settings or [], data)
    find_settings(sweep, trainer, counts, weak)  # before anything is made
    take = partial(measure_throughput, workers=counts, is_weak=weak, link=made, repeats=repeats, tell=tell)
    found, path = _measure(lambda: take(sweep, trainer), lab)
    if as_json:
        print_json(scaling_json(found, weak))
    else:
        _print(found, weak)
        print_text(f"Kept in {path}; `batchlab plan` reads it there.")
    if out is not None:
        print_figure("throughput", found, out / f"{sweep.name}-throughput", as_json=as_json)


def read_counts(text: str, place: str) -> list[int]:
    """Return the whole numbers of `16,64,256`, ascending; InputError for what is no such list, or has one twice.

    >>> read_counts("64,16", "--batch-sizes")
    [16, 64]
    """
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("[1-9][0-9]{0,17}", part) for part in parts) or len(parts) > MOST_BATCH_SIZES:
        raise InputError(f"{place} {shown(text)}: write whole numbers above 0, such as 16,64,256.")
    found = sorted(map(int, parts))
    if len(set(found)) < len(found):
        raise InputError(f"{place} {shown(text)}: name each number once.")
    return found


def read_link(text: str | None, workers: Sequence[int]) -> Link | None:
    """Return the link that is asked for; InputError for nonsense, for one worker, and where none can be made."""
    from batchlab.link.hub import check_link
    from batchlab.link.link import PLACE, Link

    if text is None:
        return None
    link = Link.parse(text)
    if max(workers) == 1:
        raise InputError(f"{PLACE} joins several workers: add --workers 1,2, or leave it out.")
    check_link()
    return link


def _load(
    name: str, lab: Path, sizes: Sequence[int], settings: Sequence[str], data: Path | None
) -> tuple[Sweep, Trainer]:
    """Return the sweep that is meant, at the batch sizes that are asked for, and who trains it."""
    from batchlab.plan.scaling import check_timed
    from batchlab.run.trainers import make_trainer

    changes = [*settings, *([f"sweep.batch_sizes={list(sizes)}"] if sizes else [])]
    stored = _stored(name, lab, changes)
    sweep, own = load_spec(name, changes) if stored is None else (stored, None)
    check_timed(sweep)
    return sweep, make_trainer(sweep, data) if own is None else own.make_trainer()


def _stored(name: str, lab: Path, changes: Sequence[str]) -> Sweep | None:
    """Return a sweep that the lab holds under its own name or its workload's, changed; None where it holds none."""
    from batchlab.core.sweep import Sweep
    from batchlab.run.from_spec import why_not_from_spec
    from batchlab.spec.check import check_sweep
    from batchlab.spec.load import with_settings
    from batchlab.store.lab import Lab

    if name.endswith((".py", ".toml")) or not is_there(lab / "lab.json"):
        return None
    store = Lab.open(lab)
    sweeps, _ = store.readable_sweeps()
    if not any(name in (sweep.name, sweep.workload) for sweep in sweeps):
        return None
    stored = store.find(name)
    if (why := why_not_from_spec(stored)) is not None or (spec := stored.spec) is None:
        raise LabError(f"Sweep {stored.name} in lab {lab} {why}. Give its file instead.")
    sweep = Sweep.parse(with_settings(spec.plain(), changes), f"{name} in lab {lab}")
    check_sweep(sweep)
    return sweep


def _measure(take: Callable[[], ThroughputRecord], lab: Path) -> tuple[Throughput, Path]:
    """Measure and store; the lab is locked meanwhile, so that nobody trains in it beside the measurement."""
    from batchlab.report.step_times import measured_throughput
    from batchlab.store.lab import Lab
    from batchlab.store.throughput import make_place, save_throughput

    store = Lab.create(lab)
    with store.locked():
        make_place(store.folder)  # before minutes are spent on what cannot be kept
        record = take()
        found = measured_throughput(record)  # an error is no measurement to keep
        return found, save_throughput(store.folder, record)


def _print(found: Throughput, is_weak: bool) -> None:
    from batchlab.report.tables import text_of
    from batchlab.report.words.throughput import link_facts, throughput_facts, throughput_notes, throughput_table

    print_text(f"{found.workload}: the time of a step on {found.machine}")
    print(text_of(throughput_table(found, is_weak), terminal_width()))
    for name, value in (*throughput_facts(found.fit), *link_facts(found)):
        print_text(f"{name}: {value}")
    for note in throughput_notes(found):
        print_text(note)
