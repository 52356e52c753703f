"""A user's own edits, accepted or refused."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from batchlab.errors import InputError, LabError
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab
from batchlab.verify.accept import accept_edit
from batchlab.verify.lab import verify_lab

STUDY = "sweeps/nqm/16"


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_an_edit_is_refused_until_it_is_accepted_and_told_ever_after(nqm):
    path, lab = nqm / STUDY / "trials.json", Lab.open(nqm)
    data = json.loads(path.read_text())
    data[0]["wall_seconds"] = 12.5
    path.write_text(json.dumps(data))
    assert not verify_lab(nqm).is_sound

    accept_edit(lab, path)

    assert verify_lab(nqm, deep=True).is_sound
    assert lab.study_folder("nqm", 16).trials()[0].wall_seconds == 12.5
    assert lab.study_folder("nqm", 16).record().edited == ("trials.json",)


def test_a_learning_rate_that_is_not_its_points_is_not_accepted(nqm):
    path = nqm / STUDY / "trials.json"
    data = json.loads(path.read_text())
    data[0]["metaparameters"]["learning_rate"] *= 2
    path.write_text(json.dumps(data))

    with pytest.raises(LabError, match="trial 0 has other metaparameters than its point"):
        accept_edit(Lab.open(nqm), path)
    assert not verify_lab(nqm).is_sound


def test_a_spec_that_its_studies_were_not_trained_for_is_not_accepted(nqm):
    path = nqm / "sweeps" / "nqm" / "sweep.json"
    edit(path, "val/risk <= 0.1", "val/risk <= 0.5")

    with pytest.raises(LabError, match="study.json"):
        accept_edit(Lab.open(nqm), path)


def test_a_spec_that_asks_for_more_is_accepted(nqm):
    path = nqm / "sweeps" / "nqm" / "sweep.json"
    edit(path, '"max_steps": 60', '"max_steps": 80')
    accept_edit(Lab.open(nqm), path)

    assert verify_lab(nqm).is_sound
    assert Lab.open(nqm).sweep("nqm").spec.search.max_steps == 80


@pytest.mark.parametrize("name", ["lab.json", f"{STUDY}/parts/trials-0.parquet", "sweeps/nqm/best_so_far.arrow"])
def test_what_is_no_file_of_a_sweep_has_nothing_to_accept(nqm, name):
    with pytest.raises(InputError, match="there is nothing to accept"):
        accept_edit(Lab.open(nqm), nqm / name)


def test_a_file_outside_the_lab_is_refused(nqm, tmp_path):
    with pytest.raises(InputError, match="is not in lab"):
        accept_edit(Lab.open(nqm), tmp_path / "elsewhere" / "trials.json")


def test_a_link_that_leads_to_itself_ended_in_a_traceback(copy):
    lab = copy("two")
    (lab / "loop").symlink_to("loop")

    for path in (lab / "loop", lab / "loop" / "trials.json"):
        with pytest.raises(InputError):
            accept_edit(Lab.open(lab), path)


def rewritten(lab, change):
    """Change the rows of a study as a user would."""
    path = lab / STUDY / "measurements.parquet"
    table = pd.read_parquet(path)
    change(table)
    table.to_parquet(path)
    return path


def test_an_edit_that_another_step_to_the_goal_follows_from_is_not_accepted(nqm):
    def change(table):
        table.loc[table.step == table.step[table.step > 0].min(), "val/risk"] = 1e-9

    with pytest.raises(LabError, match="the goal was met after"):
        accept_edit(Lab.open(nqm), rewritten(nqm, change))


def test_an_accepted_edit_is_told_after_the_study_has_grown(nqm, nqm_sweep):
    def change(table):
        table.loc[0, "val/risk"] += 1

    accept_edit(Lab.open(nqm), rewritten(nqm, change))
    search = nqm_sweep.search.model_copy(update={"max_steps": 120, "race_factor": 5.0})
    run_sweep(nqm_sweep.model_copy(update={"search": search}), nqm, num_workers=1)

    assert Lab.open(nqm).study_folder("nqm", 16).record().edited == ("measurements.parquet",)
