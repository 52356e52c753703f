"""Labs of one sweep that were filled on several machines, joined: other batch sizes, or other points of one study.

Everything is read and compared before anything is written. The same trial may be in two labs where both have the same
rows of it; different rows are refused, for one of them is not what its spec says.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from batchlab.core.sweep import COSTS_ONLY, Sweep, differences
from batchlab.errors import LabError, shown
from batchlab.files import is_folder, is_there, make_folder, sync_files, temporary_folder
from batchlab.folders import copy_files, move
from batchlab.run.growth import check_stored
from batchlab.run.merge_confirmed import take_confirmation, why_left_out
from batchlab.run.part import farthest, read_parts
from batchlab.run.same_rows import check_same_rows, rows_of_replicates, rows_of_trials
from batchlab.store.belonging import check_belongs
from batchlab.store.lab import Lab
from batchlab.store.migrations import FORMAT
from batchlab.store.new_lab import lab_to_fill
from batchlab.store.rejected import add_rejected, read_rejected
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_folder import StudyFolder
from batchlab.store.throughput import ThroughputRecord, read_throughputs, save_throughput


@dataclass(frozen=True)
class MergedSweep:
    """What a merge did to one sweep."""

    name: str
    copied: tuple[int, ...]
    """Batch sizes whose study came whole from another lab."""

    joined: tuple[int, ...]
    """Batch sizes whose unfinished studies were joined: `run` closes their race."""

    confirmed: tuple[int, ...] = ()
    """Batch sizes that were searched already, and whose confirmation came from another lab."""

    left_out: tuple[str, ...] = ()
    """What of another lab's finished studies was not taken, a sentence each."""


def merge_labs(sources: Sequence[Path | str], into: Path | str) -> list[MergedSweep]:
    """Join the sweeps of other labs into one; nothing is written, or made, where any of them does not fit."""
    into = Path(into)
    labs = [Lab.open(Path(source)) for source in sources]
    for lab in labs:
        if lab.folder.resolve() == into.resolve():
            raise LabError(f"Lab {into} cannot be merged into itself. Name other labs before --into.")
    if len({lab.folder.resolve() for lab in labs}) < len(labs):
        raise LabError(f"Of the labs {', '.join(str(source) for source in sources)} one is named twice. Name it once.")
    with ExitStack() as stack:
        target = stack.enter_context(lab_to_fill(into))
        for lab in labs:
            if os.access(lab.folder, os.W_OK):  # nobody writes to a lab that cannot be written to
                stack.enter_context(lab.held())
        plans = _plans(labs, target)
        for plan in plans:
            plan.check()
        _check_each_other(plans)
        timed = _newer_throughputs(labs, target)
        left_out = [entry for lab in labs for entry in read_rejected(lab.folder)]
        upgraded = [_of_this_format(lab, stack) for lab in labs]  # now only: the checks name the labs that were given
        merged = _joined([plan.carry_out() for plan in _plans(upgraded, target, [lab.folder for lab in labs])])
        for record in timed:
            save_throughput(target.folder, record)
        if left_out:
            add_rejected(target.folder, left_out)
        return merged


def _of_this_format(lab: Lab, stack: ExitStack) -> Lab:
    """Return a lab as it is, or a copy of one of an older format, brought to this one; it is gone with the stack."""
    if lab.check_format() == FORMAT:
        return lab
    copy = Path(stack.enter_context(TemporaryDirectory(prefix="batchlab-"))) / lab.folder.resolve().name
    copy_files(lab.folder, copy)
    upgraded = Lab.open(copy)
    stack.enter_context(upgraded.locked())
    return upgraded


def _plans(labs: Sequence[Lab], target: Lab, shown_as: Sequence[Path] | None = None) -> list[_Plan]:
    """Return what is to be done for each sweep of each lab; `shown_as` are their folders where these are copies."""
    folders = shown_as or [lab.folder for lab in labs]
    pairs = zip(labs, folders, strict=True)
    return [_Plan(lab, target, name, folder) for lab, folder in pairs for name in lab.sweep_names()]


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


class _Plan:
    """One sweep of one lab, on its way into another."""

    def __init__(self, lab: Lab, target: Lab, name: str, shown_as: Path) -> None:
        self.lab, self.target, self.name, self.shown_as = lab, target, name, shown_as
        self.sweep = lab.sweep(name)

    @property
    def is_new(self) -> bool:
        return self.name not in self.target.sweep_names()

    def check(self) -> None:
        """Raise LabError where the sweep is another one, is growing, or has trials with other rows."""
        for batch_size in self.sweep.batch_sizes:
            if self.source(batch_size).growing.has_record:
                raise LabError(
                    f'Sweep "{self.name}" of lab {self.lab.folder} is growing at batch size {batch_size}, and what is '
                    "growing is not joined. Run it to its end there first: batchlab run."
                )
        for batch_size in self.sweep.batch_sizes:
            self._check_sound(self.lab, self.sweep, batch_size)
        if self.is_new:
            return
        there = self.target.sweep(self.name)
        check_same_sweep(self.sweep, there, self.lab.folder, self.target.folder)
        check_same_code(self.lab, self.sweep, self.target, there)
        for batch_size in there.batch_sizes:
            self._check_sound(self.target, there, batch_size)
        for batch_size in self.sweep.batch_sizes:
            check_same_rows(self.source(batch_size), self._place(batch_size))

    def _check_sound(self, lab: Lab, sweep: StoredSweep, batch_size: int) -> None:
        """Raise DamagedError where a study is not as it was written, or not its sweep's."""
        folder = lab.study_folder(self.name, batch_size)
        if not folder.has_begun():
            return
        check_belongs(folder, folder.record(), sweep, batch_size)
        if sweep.spec is not None:
            check_stored(folder, sweep.spec.study(batch_size))
        rows_of_trials(folder)
        rows_of_replicates(folder)

    def carry_out(self) -> MergedSweep:
        """Copy what is not there; join what is there in part."""
        if self.sweep.spec is None:
            self._copy_folder(self.lab.folder / "sweeps" / self.name, self.target.folder / "sweeps" / self.name)
            return MergedSweep(self.name, self.sweep.batch_sizes, ())
        copied, joined, confirmed, left_out = list[int](), list[int](), list[int](), list[str]()
        self._write_spec()  # first: studies without a spec would be those of a damaged sweep
        for batch_size in self.sweep.batch_sizes:
            source, place = self.source(batch_size), self._place(batch_size)
            if not source.has_record:
                continue
            reason = why_left_out(source, place) if place.has_record else None
            if reason is not None:
                left_out.append(f"batch size {batch_size:,} of {self.shown_as}: {reason}")
            elif place.has_record and place.record().state == "finished":
                if take_confirmation(source, place):
                    confirmed.append(batch_size)
            elif source.record().state == "finished" or not place.has_record:
                self._copy_folder(source.folder, place.folder)
                copied.append(batch_size)
            elif _join_parts(source, place):
                joined.append(batch_size)
        return MergedSweep(self.name, tuple(copied), tuple(joined), tuple(confirmed), tuple(left_out))

    def source(self, batch_size: int) -> StudyFolder:
        """Return the folder of one study in the lab that it comes from."""
        return self.lab.study_folder(self.name, batch_size)

    def _place(self, batch_size: int) -> StudyFolder:
        return self.target.study_folder(self.name, batch_size)

    def _write_spec(self) -> None:
        """Store the spec, with the batch sizes of both labs."""
        assert self.sweep.spec is not None
        there = None if self.is_new else self.target.sweep(self.name).spec
        self.target.save_spec(_union(there, self.sweep.spec) if there else self.sweep.spec)

    def _copy_folder(self, source: Path, place: Path) -> None:
        """Copy a folder whole: it is there once all of it is, and takes the place of an unfinished study.

        What a user has put into that one stays there.
        """
        make_folder(place.parent)
        with temporary_folder(place) as temporary:
            copy_files(source, temporary)
            sync_files([folder for folder in (temporary, *temporary.rglob("*")) if folder.is_dir()])
            study = StudyFolder(place)
            study.settle()
            if is_folder(place):
                make_folder(study.replaced.folder.parent)
                move(place, study.replaced.folder)
            move(temporary, place)
            study.settle()


def _union(one: Sweep, other: Sweep) -> Sweep:
    sizes = tuple(sorted({*one.search.batch_sizes, *other.search.batch_sizes}))
    at = {**(one.at or {}), **(other.at or {})} or None
    return one.model_copy(update={"search": one.search.model_copy(update={"batch_sizes": sizes}), "at": at})


def _deciding(sweep: Sweep) -> dict[str, Any]:
    """Return a spec as plain data, without what decides nothing but costs: machines may differ in that."""
    plain = sweep.plain()
    return {**plain, "engine": {name: value for name, value in plain["engine"].items() if name not in COSTS_ONLY}}


def check_same_sweep(stored: StoredSweep, other_stored: StoredSweep, place: Path, other_place: Path) -> None:
    """Raise LabError where two specs differ in more than their batch sizes, or one was imported."""
    one, other = stored.spec, other_stored.spec
    if one is None or other is None:
        raise LabError(
            f'Sweep "{stored.name}" is in lab {place} and in {other_place}, and was imported. '
            "Only sweeps that were run can be joined; import it into a lab of its own."
        )
    changes = differences(_deciding(_union(one, other)), _deciding(_union(other, one)))
    for batch_size in sorted({*one.search.batch_sizes} & {*other.search.batch_sizes}):
        lines = differences(one.study(batch_size).plain(), other.study(batch_size).plain())
        changes = changes or [f"at batch size {batch_size}: {line}" for line in lines]
    if changes:
        raise LabError(
            f'Sweep "{one.name}" is not the same in lab {place} and in {other_place}: {"; ".join(changes)}. '
            "Only labs of one sweep can be merged."
        )


def check_same_code(one: Lab, sweep: StoredSweep, other: Lab, other_sweep: StoredSweep) -> None:
    """Raise LabError where studies of one sweep, at whatever batch size, were trained by different files."""
    trainers = [_trainers(one, sweep), _trainers(other, other_sweep)]
    if all(trainers) and trainers[0] != trainers[1]:
        names = [" and ".join(sorted(map(shown, map(str, each)))) for each in trainers]
        raise LabError(
            f'Sweep "{sweep.name}" was trained by {names[0]} in lab {one.folder}, and by {names[1]} in {other.folder}: '
            "trials of other code are other trials. Train one of them again."
        )


def _trainers(lab: Lab, sweep: StoredSweep) -> set[str | None]:
    """Return by what the studies of a sweep were trained, as far as there are any; None is batchlab itself."""
    folders = [lab.study_folder(sweep.name, batch_size) for batch_size in sweep.batch_sizes]
    return {folder.record().trainer for folder in folders if folder.has_record}


def _join_parts(source: StudyFolder, place: StudyFolder) -> int:
    """Copy the finished packs of one unfinished study to another and return how many told something new."""
    study = source.record().study
    assert study is not None, "an imported study is finished"
    known = farthest(list(read_parts(place, study).values()))
    new = {
        name: part
        for name, part in read_parts(source, study).items()
        if any(
            each.trial_id not in known or each.last_step > known[each.trial_id][0].last_step for each in part.outcomes
        )
    }
    for name, part in new.items():
        place.save_part(_free_name(place, name), part.measurements, part.record(), study.fingerprint)
    return len(new)


def _free_name(place: StudyFolder, name: str) -> str:
    names = chain([name], (f"{name}.{number}" for number in count(2)))
    return next(each for each in names if not is_there(place.part_path(each)))


def _check_each_other(plans: Sequence[_Plan]) -> None:
    """Check the labs that are merged against each other, as each was against the one that they go into."""
    for index, plan in enumerate(plans):
        for other in plans[:index]:
            if other.name != plan.name:
                continue
            check_same_sweep(plan.sweep, other.sweep, plan.lab.folder, other.lab.folder)
            check_same_code(plan.lab, plan.sweep, other.lab, other.sweep)
            for batch_size in set(plan.sweep.batch_sizes) & set(other.sweep.batch_sizes):
                check_same_rows(plan.source(batch_size), other.source(batch_size))


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
