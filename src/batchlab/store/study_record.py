"""The record of one study: the contents of its study.json."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from batchlab.core.confirmation import Confirmation
from batchlab.core.measurement import Measurements
from batchlab.core.protocol import IMPORTED, Protocol
from batchlab.core.result import StudyResult
from batchlab.core.space import SearchSpace
from batchlab.core.study import Study
from batchlab.core.trial import Status, Trial
from batchlab.core.value import Items, Value
from batchlab.store.seal import FileSeal


class ImportedStudy(Value):
    """What an archive says of a study that was not run here."""

    workload: str
    batch_size: int
    search_space: SearchSpace
    train_steps: int
    """The least number of steps of a complete trial; 0 means that there was a time budget instead."""

    early_stopping: bool = False


class StudyRecord(Value):
    """The contents of study.json: a study that is run here, or an imported one."""

    study: Study | None = None
    imported: ImportedStudy | None = None
    points: Items[dict[str, float]] = ()
    """The points of the search space, drawn up front; trial i trains point i."""

    pack_size: Annotated[int, Field(ge=1)] | None = None
    """Trials trained together, once it is chosen."""

    trainer: str | None = None
    """The class of the trainer, where it was not batchlab's own."""

    state: Literal["running", "finished"] = "running"
    best_steps: int | None = None
    """Steps to the goal; none where it was not met."""

    end_step: int | None = None
    """The step to which the complete trials trained."""

    trained_steps: int | None = None
    """Updates computed for all trials, replaced and cut parts included."""

    wall_seconds: float | None = None
    """Processor time of all packs, on one core each."""

    counts: dict[Annotated[Status, Strict(False)], int] | None = None
    """Trials by how they ended."""

    num_measurements: int | None = None
    note: str | None = None
    """What a reader should know, such as a budget of trials that could not be met."""

    files: dict[str, FileSeal] | None = None
    """The study's other files, as they were written. One that is not listed is not of the study, yet or any longer."""

    sweep: str | None = None
    """The digest of what cannot grow in the spec that the study is of."""

    edited: Items[str] = ()
    """Files that a user has changed and accepted."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.study is None) == (self.imported is None):
            raise ValueError("a record holds a study or an imported one, and only one of them")
        return self

    def begun_anew(self) -> StudyRecord:
        """Return the record of the same study as it was before its search had an outcome."""
        kept = {name: getattr(self, name) for name in ("study", "points", "pack_size", "trainer", "sweep", "edited")}
        return StudyRecord(**kept)

    def without_times(self) -> StudyRecord:
        """Return what is the same wherever and whenever the study is run, and whatever files it has."""
        return self.model_copy(update={"wall_seconds": None, "trained_steps": None, "files": None})

    def with_files(self, seals: Mapping[str, FileSeal]) -> StudyRecord:
        """Return the record with some files listed as they are now, beside those that it lists."""
        return self.model_copy(update={"files": {**(self.files or {}), **seals}})

    def without_files(self, names: Collection[str]) -> StudyRecord:
        """Return the record as if it had never listed these files."""
        return self.model_copy(
            update={"files": {name: seal for name, seal in (self.files or {}).items() if name not in names}}
        )

    @property
    def workload(self) -> str:
        """The name of the workload."""
        facts = self.facts
        return facts.workload.name if isinstance(facts, Study) else facts.workload

    @property
    def facts(self) -> Study | ImportedStudy:
        """The study, wherever it comes from: its batch size and search space."""
        facts = self.study or self.imported
        assert facts is not None
        return facts

    @property
    def fingerprint(self) -> str:
        """A short text that tells the study from every other, however much each has grown."""
        if self.study is not None:
            return self.study.fingerprint
        return hashlib.sha256(json.dumps([self.workload, self.facts.batch_size]).encode()).hexdigest()[:16]

    @property
    def protocol(self) -> Protocol:
        """How the study was searched."""
        study = self.study
        if study is None:
            return IMPORTED
        return Protocol(
            kind="full" if study.race_factor is None else "race",
            race_factor=study.race_factor,
            max_steps=study.max_steps,
            is_grid=study.sampler == "grid",
            is_closed_form=study.workload.is_closed_form,
        )

    @property
    def full_steps(self) -> int:
        """The steps that the full protocol would train at the least; 0 where that is not known."""
        if self.study is None or self.study.max_examples is not None:
            return 0
        return self.study.trials * self.study.max_steps

    def result(
        self, trials: Sequence[Trial], measurements: Measurements, confirmation: Confirmation | None = None
    ) -> StudyResult:
        """Return a finished study as the analyses read it."""
        assert self.end_step is not None
        return StudyResult(
            workload=self.workload,
            batch_size=self.facts.batch_size,
            trials=tuple(trials),
            measurements=measurements,
            search_space=self.facts.search_space,
            end_step=self.end_step,
            protocol=self.protocol,
            confirmation=confirmation,
            has_whole_data=self.study is None or self.study.workload.has_whole_data,
        )
