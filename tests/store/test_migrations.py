"""Labs of older formats: read as they are, brought to this format by the next writer, and then gone on with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from batchlab.analysis.summary import summarise
from batchlab.core.sweep import Sweep
from batchlab.errors import DamagedError, SpecError
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab
from batchlab.store.migrations import FORMAT, MIGRATIONS
from batchlab.store.query import connect
from batchlab.verify.lab import verify_lab
from batchlab.verify.repair import repair_lab

LABS = Path(__file__).parent / "labs"


@pytest.fixture
def old_lab(tmp_path):
    """Return a function that copies the kept sample of a format."""

    def copy(number):
        shutil.copytree(LABS / f"format-{number}", tmp_path / "lab")
        return tmp_path / "lab"

    return copy


def spec_of(lab, name):
    """Return a stored spec as its file would be written today: without the sampler's version."""
    data = json.loads((lab / "sweeps" / name / "sweep.json").read_text())
    data["sweep"].pop("sampler_version", None)
    data.pop("digest", None)
    return Sweep.parse(data, "spec.toml")


def test_there_is_a_sample_of_every_format_and_a_step_to_each():
    assert sorted(MIGRATIONS) == list(range(2, FORMAT + 1))
    assert {path.name for path in LABS.iterdir()} == {f"format-{number}" for number in range(1, FORMAT + 1)}


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_a_lab_of_any_format_answers_without_being_changed(old_lab, number):
    lab = old_lab(number)
    before = {path: path.read_bytes() for path in lab.rglob("*") if path.is_file()}

    store = Lab.open(lab)
    summary = summarise(store.results(store.sweep("finished")).results, store.sweep("finished").goal)

    assert [row.steps for row in summary.rows] == [27, 12]
    assert store.sweep("finished").spec.search.sampler_version == 1
    assert before == {path: path.read_bytes() for path in lab.rglob("*") if path.is_file()}


def test_the_next_writer_brings_a_lab_to_this_format_and_once_more_changes_nothing(old_lab):
    lab = old_lab(1)
    with Lab.open(lab).locked():
        pass
    once = {path: path.read_bytes() for path in lab.rglob("*") if path.is_file()}
    with Lab.open(lab).locked():
        pass

    assert json.loads((lab / "lab.json").read_text()) == {"format": FORMAT}
    assert json.loads((lab / "sweeps" / "finished" / "sweep.json").read_text())["sweep"]["sampler_version"] == 1
    checkpoints = lab / "sweeps" / "unfinished" / "32" / "checkpoints"
    assert sorted(path.name for path in checkpoints.iterdir()) == ["trials-2-3.safetensors", "trials-4-5.safetensors"]
    assert once == {path: path.read_bytes() for path in lab.rglob("*") if path.is_file()}


COMPARABLE = {0: 400, 1: 400, 2: 140, 3: 5, 4: 400, 5: 41}
"""By trial, the last step at which two processors agree: trials 2, 3 and 5 learn so fast that they are chaotic.

Measured with the instructions of three kinds of processor (SSE, AVX2 and AVX-512): up to there no loss differs by more
than 0.0005 from one to another, that of trial 2; those of trials 0, 1 and 4 by 0.000002. Beyond, some differ by 12.
"""


def rows_of(table):
    """Return the losses and errors of rows, by trial and step."""
    names = ("trial_id", "step", "val/cross_entropy_error", "val/classification_error")
    return {
        (trial, step): values for trial, step, *values in zip(*(table[name].tolist() for name in names), strict=True)
    }


def rows_known_to(study):
    """Return the rows that an unfinished study of format 1 has in its part and its checkpoints."""
    known = rows_of(pq.read_table(study / "parts" / "1-0.parquet").to_pandas())
    for name in ("1-1.npz", "1-2.npz"):
        with np.load(study / "checkpoints" / name) as stored:
            known |= rows_of({key.removeprefix("rows."): values for key, values in stored.items()})
    return known


def rows_of_result(result):
    """Return the losses and errors of a study, by trial and step."""
    rows = result.measurements
    return rows_of({"trial_id": rows.trial_id, "step": rows.step, **rows.metrics})


def test_an_unfinished_study_of_an_older_lab_goes_on_from_its_checkpoints(old_lab, tmp_path):
    """On whatever processor: what was stored stays bit for bit, and what comes after it is as in a run from the start.

    Two trials were finished, and checkpoints of the others were written after step 93.
    """
    lab = old_lab(1)
    spec = spec_of(lab, "unfinished")
    alone = spec.model_copy(update={"search": spec.search.model_copy(update={"sampler_version": 1})})
    known = rows_known_to(lab / "sweeps" / "unfinished" / "32")

    run_sweep(spec, lab, num_workers=1)
    run_sweep(alone, tmp_path / "alone", num_workers=1)

    went_on, fresh = (Lab.open(path).study_folder("unfinished", 32).result() for path in (lab, tmp_path / "alone"))
    found, expected = rows_of_result(went_on), rows_of_result(fresh)
    assert [(trial.trial_id, trial.status, trial.last_step) for trial in went_on.trials] == [
        (trial.trial_id, trial.status, trial.last_step) for trial in fresh.trials
    ]
    assert list(found) == list(expected)
    assert len(known) == 2 * 16 + 4 * 12
    assert {row: found[row] for row in known} == known
    comparable = [(trial, step) for trial, step in found if step <= COMPARABLE[trial]]
    assert [step for trial, step in comparable if trial >= 2 and step > 93] == [140, 140, 210, 315, 400]
    np.testing.assert_allclose([found[row] for row in comparable], [expected[row] for row in comparable], atol=0.02)


def test_a_finished_study_of_an_older_lab_grows_by_the_old_rule_of_its_sampler(old_lab):
    lab = old_lab(1)
    spec = spec_of(lab, "finished")
    points = Lab.open(lab).study_folder("finished", 16).record().points

    run_sweep(spec.model_copy(update={"search": spec.search.model_copy(update={"trials": 6})}), lab, num_workers=1)

    record = Lab.open(lab).study_folder("finished", 16).record()
    assert record.points[: len(points)] == points
    assert record.counts["COMPLETE"] == 6


def test_another_version_of_the_sampler_is_refused(old_lab):
    lab = old_lab(1)
    spec = spec_of(lab, "finished")
    changed = Sweep.parse({**spec.plain(), "sweep": {**spec.plain()["sweep"], "sampler_version": 2}}, "spec.toml")

    with pytest.raises(SpecError, match="sweep.sampler_version: 1 -> 2"):
        run_sweep(changed, lab, num_workers=1)


@pytest.mark.parametrize("number", [1, 2])
def test_a_lab_json_that_told_a_newer_format_than_the_files_have_blamed_the_files(old_lab, number):
    lab = old_lab(number)
    (lab / "lab.json").write_text('{"format": 3}')

    with pytest.raises(DamagedError, match="lab.json is damaged: it names format 3, in which every file has a seal"):
        Lab.open(lab)
    repair_lab(lab)

    assert verify_lab(lab).findings == []
    assert Lab.open(lab).study_folder("finished", 16).record().counts["COMPLETE"] == 4


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_rows_of_any_format_tell_their_examples(old_lab, number):
    lab = old_lab(number)
    is_stored = "examples" in pq.read_schema(lab / "sweeps" / "finished" / "16" / "measurements.parquet").names

    result = Lab.open(lab).study_folder("finished", 16).result()
    asked = connect(lab).execute("select sum(examples), sum(step) * 16 from measurements where batch_size = 16")

    assert is_stored == (number >= 4)
    assert np.array_equal(result.examples, 16 * result.measurements.step)
    assert len(set(asked.fetchone())) == 1


@pytest.mark.parametrize("number", range(3, FORMAT + 1))
def test_a_study_goes_on_from_checkpoints_with_and_without_examples(old_lab, number):
    lab = old_lab(number)

    run_sweep(spec_of(lab, "unfinished"), lab, num_workers=1)

    table = pq.read_table(lab / "sweeps" / "unfinished" / "32" / "measurements.parquet")
    assert table["examples"].to_pylist() == [32 * step for step in table["step"].to_pylist()]
    assert not (lab / "sweeps" / "unfinished" / "32" / "checkpoints").exists()
    assert verify_lab(lab, deep=True).findings == []


def test_a_spec_that_cannot_be_leaves_the_rest_of_an_older_lab_writable(old_lab):
    lab = old_lab(2)
    path = lab / "sweeps" / "unfinished" / "sweep.json"
    path.write_text(path.read_text().replace('"trials": ', '"trials": -', 1))

    with Lab.open(lab).locked():
        pass

    assert json.loads((lab / "lab.json").read_text())["format"] == FORMAT
