"""One sweep of one lab on its way into another: whether it fits, and what of it is copied or joined."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

from batchlab.errors import LabError
from batchlab.files import is_folder, is_there, make_folder, sync_files, temporary_folder
from batchlab.run.growth import check_stored
from batchlab.run.merge.confirmed import take_confirmation, why_left_out
from batchlab.run.merge.same_rows import check_same_rows, rows_of_replicates, rows_of_trials
from batchlab.run.merge.same_sweep import check_same_code, check_same_sweep, union
from batchlab.run.part import farthest, read_parts
from batchlab.store.belonging import check_belongs
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import StoredSweep
from batchlab.store.study_folder import StudyFolder
from batchlab.tidying import copy_files, move


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


class SweepMerge:
    """One sweep of one lab, on its way into another."""

    def __init__(self, lab: Lab, target: Lab, name: str, shown_as: Path) -> None:
        self.lab, self.target, self.name, self.shown_as = lab, target, name, shown_as
        self.sweep = lab.sweep(name)

    @property
    def _is_new(self) -> bool:
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
        if self._is_new:
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
        there = None if self._is_new else self.target.sweep(self.name).spec
        self.target.save_spec(union(there, self.sweep.spec) if there else self.sweep.spec)

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


def _join_parts(source: StudyFolder, place: StudyFolder) -> int:
    """Copy the finished packs of one unfinished study to another and return how many were new."""
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
