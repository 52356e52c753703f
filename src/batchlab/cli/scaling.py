"""batchlab scaling: examples per second against batch size."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from batchlab.cli.options import DEFAULT_LAB, DataOption, JsonOption, LabOption, print_json, print_text, terminal_width
from batchlab.cli.run import load_spec
from batchlab.core.limits import MOST_BATCH_SIZES
from batchlab.errors import InputError, LabError, SpecError, shown
from batchlab.files import is_there

if TYPE_CHECKING:
    from batchlab.analysis import Throughput
    from batchlab.core.sweep import Sweep
    from batchlab.engine.base import Trainer

MOST_REPEATS = 1_000


def scaling(
    workload: Annotated[
        str, typer.Argument(help="A sweep or workload of the lab, a spec file, a name as for `run`, or a Python file.")
    ],
    lab: LabOption = DEFAULT_LAB,
    workers: Annotated[str, typer.Option("--workers", help="Numbers of workers of one trial; 1 for now.")] = "1",
    batch_sizes: Annotated[
        str | None, typer.Option("--batch-sizes", help="Such as 16,64,256; the sweep's if left out.")
    ] = None,
    strong: Annotated[
        bool, typer.Option("--strong", help="Batch sizes are those of all workers together, as by default.")
    ] = False,
    weak: Annotated[bool, typer.Option("--weak", help="Batch sizes are those of each worker.")] = False,
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
    """Measure examples per second by batch size. Fits the time of a step, and keeps it in the lab for `batchlab plan`.

    A trial is trained alone in one process, as `run` trains it, for some steps at each batch size; nothing is evaluated
    and nothing of what is trained is kept. A new measurement takes the place of the old one of the same machine.
    """
    from batchlab.analysis.efficiency import scaling_json
    from batchlab.plan.measure import check_workers

    if strong and weak:
        raise typer.BadParameter("--strong and --weak exclude each other; leave one out")
    counts = read_counts(workers, "--workers")
    check_workers(counts)
    sizes = [] if batch_sizes is None else read_counts(batch_sizes, "--batch-sizes")
    sweep, trainer = _load(workload, lab, sizes, settings or [], data)
    found, path = _measure(sweep, trainer, lab, counts, repeats)
    if as_json:
        print_json(scaling_json(found, weak))
    else:
        _print(found, weak)
        print_text(f"Kept in {path}; `batchlab plan` reads it there.")
    if out is not None:
        _draw(found, out / f"{sweep.name}-throughput", as_json)


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
    from batchlab.spec.check import check_sweep
    from batchlab.spec.load import with_settings
    from batchlab.store.lab import Lab

    if name.endswith((".py", ".toml")) or not is_there(lab / "lab.json"):
        return None
    store = Lab.open(lab)
    sweeps, _ = store.readable_sweeps()
    if not any(name in (sweep.name, sweep.workload) for sweep in sweeps):
        return None
    spec = store.find(name).spec
    if spec is None:
        raise LabError(f"{name} in lab {lab} was imported: it cannot be trained here. Give a spec file.")
    try:
        check_sweep(spec)
    except SpecError as error:
        raise LabError(f"{name} in lab {lab} was trained by code of your own: give its file instead.") from error
    sweep = Sweep.parse(with_settings(spec.plain(), changes), f"{name} in lab {lab}")
    check_sweep(sweep)
    return sweep


def _measure(
    sweep: Sweep, trainer: Trainer, lab: Path, workers: Sequence[int], repeats: int
) -> tuple[Throughput, Path]:
    """Measure and store; the lab is locked meanwhile, so that nobody trains in it beside the measurement."""
    from batchlab.plan.scaling import measure_throughput
    from batchlab.report.planned import measured_throughput
    from batchlab.store.lab import Lab
    from batchlab.store.throughput import save_throughput

    store = Lab.create(lab)
    with store.locked():
        record = measure_throughput(sweep, trainer, workers=workers, repeats=repeats, tell=_tell)
        path = save_throughput(store.folder, record)
    return measured_throughput(record), path


def _tell(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def _print(found: Throughput, is_weak: bool) -> None:
    from batchlab.report.plan_words import throughput_facts, throughput_table
    from batchlab.report.tables import text_of

    print_text(f"{found.workload}: the time of a step on {found.machine}")
    print(text_of(throughput_table(found, is_weak), terminal_width()))
    for name, value in throughput_facts(found.fit):
        print_text(f"{name}: {value}")


def _draw(found: Throughput, stem: Path, as_json: bool) -> None:
    from batchlab.plots import save_figure

    for path in save_figure("throughput", found, stem):
        print(path, file=sys.stderr if as_json else sys.stdout)
