"""Labs of one sweep that were filled on several machines, joined: other batch sizes, or other points of one study.

Everything is read and compared before anything is written. The same trial may be in two labs where both have the same
rows of it; different rows are refused, for one of them is not what its spec says.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from batchlab.errors import LabError
from batchlab.run.merge.same_rows import check_same_rows
from batchlab.run.merge.same_sweep import check_same_code, check_same_sweep
from batchlab.run.merge.sweep import MergedSweep, SweepMerge
from batchlab.store.lab import Lab
from batchlab.store.migrations import FORMAT
from batchlab.store.new_lab import lab_to_fill
from batchlab.store.rejected import add_rejected, read_rejected
from batchlab.store.throughput import ThroughputRecord, read_throughputs, save_throughput
from batchlab.tidying import copy_files


def merge_labs(sources: Sequence[Path | str] | Path | str, into: Path | str) -> list[MergedSweep]:
    """Join the sweeps of other labs into one; nothing is written, or made, where any of them does not fit."""
    sources, into = [sources] if isinstance(sources, (Path, str)) else sources, Path(into)
    labs = [Lab.open(Path(source)) for source in sources]
    _check_distinct(sources, into)
    with ExitStack() as stack:
        target = stack.enter_context(lab_to_fill(into))
        for lab in labs:
            if os.access(lab.folder, os.W_OK):  # nobody writes to a lab that cannot be written to
                stack.enter_context(lab.held())
        merges = _merges(labs, target)
        for merge in merges:
            merge.check()
        _check_each_other(merges)
        timed = _newer_throughputs(labs, target)
        left_out = [entry for lab in labs for entry in read_rejected(lab.folder)]
        upgraded = [_of_this_format(lab, stack) for lab in labs]  # now only: the checks name the labs that were given
        merged = _joined([merge.carry_out() for merge in _merges(upgraded, target, [lab.folder for lab in labs])])
        for record in timed:
            save_throughput(target.folder, record)
        if left_out:
            add_rejected(target.folder, left_out)
        return merged


def _check_distinct(sources: Sequence[Path | str], into: Path) -> None:
    """Raise LabError where no lab is named, or one would be merged into itself, or twice."""
    if not sources:
        raise LabError(f"No lab is named that is to be merged into {into}. Name one or more.")
    places = [Path(source).resolve() for source in sources]
    if into.resolve() in places:
        raise LabError(f"Lab {into} cannot be merged into itself. Name other labs before --into.")
    if len(set(places)) < len(places):
        raise LabError(f"Of the labs {', '.join(str(source) for source in sources)} one is named twice. Name it once.")


def _of_this_format(lab: Lab, stack: ExitStack) -> Lab:
    """Return a lab as it is, or a copy of one of an older format, brought to this one; it is gone with the stack."""
    if lab.check_format() == FORMAT:
        return lab
    copy = Path(stack.enter_context(TemporaryDirectory(prefix="batchlab-"))) / lab.folder.resolve().name
    copy_files(lab.folder, copy)
    upgraded = Lab.open(copy)
    stack.enter_context(upgraded.locked())
    return upgraded


def _merges(labs: Sequence[Lab], target: Lab, shown_as: Sequence[Path] | None = None) -> list[SweepMerge]:
    """Return what is to be done for each sweep of each lab; `shown_as` are their folders where these are copies."""
    folders = shown_as or [lab.folder for lab in labs]
    pairs = zip(labs, folders, strict=True)
    return [SweepMerge(lab, target, name, folder) for lab, folder in pairs for name in lab.sweep_names()]


def _newer_throughputs(labs: Sequence[Lab], target: Lab) -> list[ThroughputRecord]:
    """Return the step times that the target does not have, or has older ones of, the newest last."""
    known = {record.file_name: record.measured_at for record in _throughputs(target)}
    found = [record for lab in labs for record in _throughputs(lab)]
    newer = [record for record in found if record.measured_at > known.get(record.file_name, "")]
    return sorted(newer, key=lambda record: record.measured_at)


def _throughputs(lab: Lab) -> list[ThroughputRecord]:
    records, problems = read_throughputs(lab.folder)
    if problems:
        raise problems[0]
    return records


def _check_each_other(merges: Sequence[SweepMerge]) -> None:
    """Check the labs that are merged against each other, as each was against the one that they go into."""
    for index, merge in enumerate(merges):
        for other in merges[:index]:
            if other.name != merge.name:
                continue
            check_same_sweep(merge.sweep, other.sweep, merge.lab.folder, other.lab.folder)
            check_same_code(merge.lab, merge.sweep, other.lab, other.sweep)
            for batch_size in set(merge.sweep.batch_sizes) & set(other.sweep.batch_sizes):
                check_same_rows(merge.source(batch_size), other.source(batch_size))


def _joined(merged: Sequence[MergedSweep]) -> list[MergedSweep]:
    """Return one entry for each sweep, whatever number of labs it came from."""
    by_name: dict[str, list[MergedSweep]] = {}
    for each in merged:
        by_name.setdefault(each.name, []).append(each)
    return [
        MergedSweep(
            name,
            tuple(sorted({size for each in parts for size in each.copied})),
            tuple(sorted({size for each in parts for size in each.joined})),
            tuple(sorted({size for each in parts for size in each.confirmed})),
            tuple(line for each in parts for line in each.left_out),
        )
        for name, parts in by_name.items()
    ]
