"""A sweep whose points, or batch sizes, are trained on several machines, and joined: the same as on one."""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path

import pytest

from batchlab.core.growth import fixed_digest
from batchlab.errors import DamagedError, LabError, StorageError
from batchlab.run.merge.labs import merge_labs
from batchlab.run.run_sweep import run_sweep
from batchlab.run.study_run import StudyRun
from batchlab.store.lab import Lab
from batchlab.store.migrations import FORMAT
from batchlab.store.rejected import Rejected, add_rejected, read_rejected
from batchlab.store.stored_sweep import ImportRecord
from batchlab.store.throughput import MeasuredSteps, ThroughputRecord, read_throughputs, save_throughput
from batchlab.verify.lab import verify_lab

OLD_LABS = Path(__file__).parents[1] / "store" / "labs"


@pytest.fixture
def make_lab(tmp_path):
    """Return a function that admits a sweep to a lab of this name and fills its one study."""

    def make(name, sweep, trainer, fill, **options):
        lab = Lab.create(tmp_path / name)
        lab.admit(sweep)
        options["sweep"] = fixed_digest(sweep)
        fill(sweep.study(8), tmp_path / name / "sweeps" / "scripted" / "8", trainer, pack_size=2, **options)
        return tmp_path / name

    return make


def study_path(lab):
    return lab / "sweeps" / "scripted" / "8"


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(i, marks=pytest.mark.slow) for i in range(8, 20))])
def test_points_of_two_labs_make_the_race_of_one(make_scripted, scripted, tmp_path, fill, outcome_of, make_lab, seed):
    chance = random.Random(seed)
    goal_at = {i: chance.randint(0, 100) for i in range(20) if chance.random() < 0.5}
    diverges_at = {i: chance.randint(1, 130) for i in range(20) if chance.random() < 0.4}
    sweep, trainer = make_scripted({"sweep.trials": 8, "sweep.max_attempts": 20}), scripted(goal_at, diverges_at)
    cut = chance.randint(1, 7)
    one = make_lab("one", sweep, trainer, fill, only=range(cut))
    other = make_lab("other", sweep, trainer, fill, only=range(cut, 8 + chance.randint(0, 6)))

    merge_labs([one, other], tmp_path / "both")
    fill(sweep.study(8), study_path(tmp_path / "both"), trainer, pack_size=2)
    alone = make_lab("alone", sweep, trainer, fill)

    assert outcome_of(study_path(tmp_path / "both")) == outcome_of(study_path(alone))


def test_only_leaves_a_study_unfinished_and_replaces_nobody(make_scripted, scripted, tmp_path, fill, make_lab):
    sweep = make_scripted({"sweep.trials": 8})
    lab = make_lab("lab", sweep, scripted({}, {2: 30, 3: 30}), fill, only=range(2, 6))

    run = StudyRun(sweep.study(8), Lab.open(lab).study_folder("scripted", 8))

    assert not run.is_finished
    assert sorted(run.outcomes) == [2, 3, 4, 5]


def test_a_merge_of_a_lab_in_use_is_refused(make_scripted, scripted, tmp_path, fill, make_lab):
    lab = make_lab("lab", make_scripted(), scripted({0: 20}), fill)

    with Lab.open(lab).locked(), pytest.raises(LabError, match="in use"):
        merge_labs([lab], tmp_path / "both")


def test_a_lab_is_not_merged_into_itself(make_scripted, scripted, fill, make_lab):
    lab = make_lab("lab", make_scripted(), scripted({0: 20}), fill)

    with pytest.raises(LabError, match="into itself"):
        merge_labs([lab], lab)


def test_the_same_trial_with_other_rows_is_refused_and_nothing_is_written(
    make_scripted, scripted, tmp_path, fill, make_lab
):
    sweep = make_scripted({"sweep.trials": 8})
    one = make_lab("one", sweep, scripted({0: 20}), fill, only=range(4))
    other = make_lab("other", sweep, scripted({0: 30}), fill, only=range(4))

    with pytest.raises(LabError, match="Trial 0 has other rows"):
        merge_labs([one, other], tmp_path / "both")

    assert not (tmp_path / "both").exists()


def test_labs_of_different_specs_are_refused(make_scripted, scripted, tmp_path, fill, make_lab):
    one = make_lab("one", make_scripted(), scripted({0: 20}), fill)
    other = make_lab("other", make_scripted({"sweep.max_steps": 90}), scripted({0: 20}), fill)

    with pytest.raises(LabError, match=r"sweep.max_steps: (90 -> 100|100 -> 90)"):
        merge_labs([one, other], tmp_path / "some" / "both")

    assert not (tmp_path / "some").exists()


def test_labs_may_differ_in_what_only_costs(make_scripted, scripted, tmp_path, fill, make_lab):
    """Machines save checkpoints as often as suits them; that decides no result."""
    one = make_lab("one", make_scripted({"engine.checkpoint_seconds": 5}), scripted({0: 20}), fill)
    other = make_lab("other", make_scripted({"engine.keep_states": True}), scripted({0: 20}), fill)

    (merged,) = merge_labs([one, other], tmp_path / "both")

    assert merged.copied == (8,)


def test_other_batch_sizes_are_copied(make_nqm, tmp_path):
    run_sweep(make_nqm({"sweep.batch_sizes": [1, 16]}), tmp_path / "one", num_workers=1)
    run_sweep(make_nqm({"sweep.batch_sizes": [256]}), tmp_path / "other", num_workers=1)

    (merged,) = merge_labs([tmp_path / "one", tmp_path / "other"], tmp_path / "both")
    summary = run_sweep(make_nqm(), tmp_path / "both", num_workers=1)
    alone = run_sweep(make_nqm(), tmp_path / "alone", num_workers=1)

    assert merged.copied == (1, 16, 256)
    assert [row.steps for row in summary.rows] == [row.steps for row in alone.rows]


def test_a_merge_repeated_changes_nothing(make_nqm, tmp_path):
    run_sweep(make_nqm(), tmp_path / "one", num_workers=1)
    merge_labs([tmp_path / "one"], tmp_path / "both")
    before = {path: path.read_bytes() for path in (tmp_path / "both" / "sweeps").rglob("*") if path.is_file()}

    (merged,) = merge_labs([tmp_path / "one"], tmp_path / "both")

    assert (merged.copied, merged.joined) == ((), ())
    assert before == {path: path.read_bytes() for path in (tmp_path / "both" / "sweeps").rglob("*") if path.is_file()}


def test_links_in_a_lab_are_refused(make_nqm, tmp_path):
    run_sweep(make_nqm(), tmp_path / "one", num_workers=1)
    (tmp_path / "one" / "sweeps" / "nqm" / "16" / "notes").symlink_to("/etc/passwd")

    with pytest.raises(LabError, match="is a link"):
        merge_labs([tmp_path / "one"], tmp_path / "both")


def test_a_damaged_lab_is_named(make_nqm, tmp_path):
    run_sweep(make_nqm(), tmp_path / "one", num_workers=1)
    shutil.copytree(tmp_path / "one", tmp_path / "other")
    (tmp_path / "other" / "sweeps" / "nqm" / "16" / "measurements.parquet").write_bytes(b"no table")

    with pytest.raises(LabError, match="measurements.parquet is damaged"):
        merge_labs([tmp_path / "one", tmp_path / "other"], tmp_path / "both")


@pytest.mark.parametrize("damaged", ["source", "target"])
def test_a_study_that_is_not_its_sweeps_is_not_merged(make_nqm, tmp_path, damaged):
    """It has the seals of a sound study: only its place tells that it is another's."""
    for lab, seed in (("one", 0), ("stranger", 1)):
        run_sweep(make_nqm({"sweep.batch_sizes": [16], "seed": seed}), tmp_path / lab, num_workers=1)
    shutil.copytree(tmp_path / "one", tmp_path / "exchanged")
    shutil.rmtree(tmp_path / "exchanged" / "sweeps" / "nqm" / "16")
    shutil.copytree(tmp_path / "stranger" / "sweeps" / "nqm" / "16", tmp_path / "exchanged" / "sweeps" / "nqm" / "16")
    source, target = ("exchanged", "both") if damaged == "source" else ("one", "exchanged")

    with pytest.raises(DamagedError, match=r"exchanged.*study.json is damaged: it is of another study"):
        merge_labs([tmp_path / source], tmp_path / target)


def test_one_lab_may_be_named_alone_and_none_is_refused(make_nqm, tmp_path):
    run_sweep(make_nqm(), tmp_path / "one", num_workers=1)

    assert [each.name for each in merge_labs(str(tmp_path / "one"), tmp_path / "both")] == ["nqm"]
    with pytest.raises(LabError, match="No lab is named"):
        merge_labs([], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_lab_that_is_named_twice_is_refused(make_nqm, tmp_path):
    run_sweep(make_nqm(), tmp_path / "one", num_workers=1)

    with pytest.raises(LabError, match="named twice"):
        merge_labs([tmp_path / "one", tmp_path / "one"], tmp_path / "both")


def test_an_imported_sweep_takes_the_place_of_no_other(make_nqm, tmp_path):
    run_sweep(make_nqm(), tmp_path / "one", num_workers=1)
    Lab.create(tmp_path / "other").save_import(ImportRecord(name="nqm", workload="a/b/c", batch_sizes=(), source={}))

    for labs in (["one", "other"], ["other", "one"]):
        with pytest.raises(LabError, match="was imported"):
            merge_labs([tmp_path / lab for lab in labs], tmp_path / "both")


def test_a_table_for_one_batch_size_in_one_lab_only_is_a_difference(make_scripted, scripted, tmp_path, fill, make_lab):
    other_sweep = make_scripted({"at": {8: {"evaluate": {"every": 5}}}})
    one = make_lab("one", make_scripted(), scripted({0: 20}), fill, only=range(2))
    other = make_lab("other", other_sweep, scripted({0: 20}), fill, only=range(2, 4))

    with pytest.raises(LabError, match=r"at batch size 8: evaluation.every: (5 -> 10|10 -> 5)"):
        merge_labs([one, other], tmp_path / "both")


def test_a_study_that_is_growing_is_not_merged(make_scripted, scripted, tmp_path, fill, make_lab):
    lab = make_lab("lab", make_scripted({"sweep.trials": 4}), scripted({0: 20}), fill)
    larger = make_scripted({"sweep.trials": 8})
    Lab.open(lab).admit(larger)
    fill(larger.study(8), study_path(lab), scripted({0: 20}), pack_size=2, only=range(4, 6))

    with pytest.raises(LabError, match="is growing at batch size 8"):
        merge_labs([lab], tmp_path / "both")


def test_points_that_are_there_already_are_not_joined_again(make_scripted, scripted, tmp_path, fill, make_lab):
    """Two labs of one name beside a third with the same pack: none is lost, none counts twice."""
    sweep, trainer = make_scripted({"sweep.trials": 8}), scripted({})
    labs = [make_lab(name, sweep, trainer, fill, only=only) for name, only in (("a", range(2)), ("b", range(2, 4)))]
    merge_labs(labs, tmp_path / "both")

    (merged,) = merge_labs(labs, tmp_path / "both")

    assert (merged.copied, merged.joined) == ((), ())
    assert len(list((study_path(tmp_path / "both") / "parts").iterdir())) == 2


def test_a_disk_that_refuses_is_one_line_and_leaves_nothing(make_nqm, tmp_path, monkeypatch):
    run_sweep(make_nqm(), tmp_path / "one", num_workers=1)

    def refuse(source, place, **_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", refuse)
    with pytest.raises(StorageError, match="Could not write .*: .*No space left on device"):
        merge_labs([tmp_path / "one"], tmp_path / "both")

    assert not list((tmp_path / "both").rglob("*.tmp")) and not list((tmp_path / "both").rglob("study.json"))


def test_the_newer_step_times_come_along_and_damaged_ones_stop_a_merge(make_scripted, scripted, fill, make_lab):
    def record(day, cores):
        times = tuple(MeasuredSteps(batch_size=size, seconds=(0.1 * size,)) for size in (1, 2))
        facts = {"workload": "a/b/c", "spec": {}, "engine": {}, "device": "cpu", "machine": {"cores": cores}}
        return ThroughputRecord(**facts, measured_at=f"2026-01-{day:02}", times=times)

    sweep = make_scripted({"sweep.trials": 8})
    one = make_lab("one", sweep, scripted({}, {}), fill, only=range(4))
    other = make_lab("other", sweep, scripted({}, {}), fill, only=range(4, 8))
    for lab, day, cores in ((one, 2, 2), (other, 1, 2), (other, 1, 4)):
        save_throughput(lab, record(day, cores))

    merge_labs([other], one)

    assert [each.measured_at[-2:] for each in read_throughputs(one)[0]] == ["02", "01"]
    damaged = save_throughput(other, record(5, 2))
    damaged.write_bytes(damaged.read_bytes()[:40])
    with pytest.raises(DamagedError):
        merge_labs([other], one)


def test_trials_of_other_code_are_not_joined(make_scripted, scripted, tmp_path, fill, make_lab):
    sweep, trainer = make_scripted({"sweep.trials": 8}), scripted({0: 20})
    labs = [
        make_lab(name, sweep, trainer, fill, only=only) for name, only in (("one", range(4)), ("other", range(4, 8)))
    ]
    folder = Lab.open(labs[1]).study_folder("scripted", 8)
    folder.save_record(folder.record().model_copy(update={"trainer": "mine.py (0123)"}))

    with pytest.raises(LabError, match="trials of other code are other trials"):
        merge_labs(labs, tmp_path / "both")


def test_a_finished_study_takes_the_place_of_an_unfinished_one_and_the_users_files_stay(
    make_scripted, scripted, tmp_path, fill, make_lab
):
    sweep, trainer = make_scripted({"sweep.trials": 8}), scripted({0: 20})
    done, begun = make_lab("done", sweep, trainer, fill), make_lab("begun", sweep, trainer, fill, only=range(2))
    for lab, text in ((done, "theirs"), (begun, "mine")):
        (study_path(lab) / "notes").mkdir()
        (study_path(lab) / "notes" / "a.txt").write_text(text)
    (study_path(begun) / "extra.txt").write_text("mine")

    merge_labs([done], begun)

    assert Lab.open(begun).study_folder("scripted", 8).record().state == "finished"
    found = {path.name: path.read_text() for path in study_path(begun).rglob("*.txt*")}
    assert found == {"a.txt": "theirs", "a.txt.2": "mine", "extra.txt": "mine"}
    assert not (begun / "sweeps" / "scripted" / "replaced").exists()


def test_a_finished_study_takes_the_place_of_no_larger_one_in_training(
    make_scripted, scripted, tmp_path, fill, make_lab
):
    """A lab was stopped between the larger spec and the growth of its study: it would have cost six trials."""
    trainer, larger = scripted({0: 20}), make_scripted({"sweep.trials": 8})
    done = make_lab("done", make_scripted({"sweep.trials": 2}), trainer, fill)
    Lab.open(done).admit(larger)
    begun = make_lab("begun", larger, trainer, fill, only=range(2, 8))

    (merged,) = merge_labs([done], begun)

    assert merged.copied == ()
    assert f"batch size 8 of {done}: it has finished a smaller search than is in training here" in merged.left_out[0]
    assert sorted(StudyRun(larger.study(8), Lab.open(begun).study_folder("scripted", 8)).outcomes) == [*range(2, 8)]


@pytest.mark.parametrize("is_writable", [True, False])
@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_a_lab_of_any_format_is_merged_and_stays_as_it_is(tmp_path, monkeypatch, number, is_writable):
    source, into = tmp_path / "old", tmp_path / "new"
    shutil.copytree(OLD_LABS / f"format-{number}", source)
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    if not is_writable:
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != source)

    merge_labs([source], into)

    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file() and path.name != "lock"} == before
    assert (source / "lock").exists() is is_writable
    assert verify_lab(into).is_sound
    assert Lab.open(into).check_format() == FORMAT


def test_what_is_damaged_in_a_lab_of_an_older_format_is_named_where_it_lies(tmp_path):
    source, into = tmp_path / "old", tmp_path / "new"
    shutil.copytree(OLD_LABS / "format-1", source)
    table = source / "sweeps" / "finished" / "16" / "measurements.parquet"
    table.write_bytes(table.read_bytes()[:300])

    with pytest.raises(DamagedError, match=f"^{re.escape(str(table))} is damaged"):
        merge_labs([source], into)

    assert not into.exists()


def test_what_imports_left_out_is_told_in_the_merged_lab_too(make_nqm, tmp_path):
    run_sweep(make_nqm(), tmp_path / "one")
    entry = Rejected(path="a/b", reason="broken", sweep="imported", archive="a.tar")
    add_rejected(tmp_path / "one", [entry])

    merge_labs([tmp_path / "one"], tmp_path / "both")
    merge_labs([tmp_path / "one"], tmp_path / "both")

    assert read_rejected(tmp_path / "both") == [entry]
