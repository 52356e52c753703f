"""What a look at a whole lab finds, and what the readers say of the same."""

from __future__ import annotations

import shutil

import pytest

from batchlab.errors import DamagedError, LabError
from batchlab.store.lab import Lab
from batchlab.store.status import sweep_statuses
from batchlab.verify.lab import verify_lab


def swap(one, other):
    one.rename(one.with_name("moving"))
    other.rename(one)
    one.with_name("moving").rename(other)


def problems_of(lab, name):
    store = Lab.open(lab)
    return [str(problem) for problem in store.results(store.sweep(name)).problems]


def test_a_sound_lab_is_sound(copy):
    for name in ("two", "growing", "grown", "imported"):
        found = verify_lab(copy(name), deep=True)

        assert (found.findings, found.foreign) == ([], [])


@pytest.mark.parametrize(("name", "sweep"), [("two", "quad"), ("imported", "nqm--quadratic--sgd")])
def test_status_counted_the_trials_of_a_study_in_the_place_of_another(copy, name, sweep):
    lab = copy(name)
    swap(lab / "sweeps" / sweep / "4", lab / "sweeps" / sweep / "16")

    status = next(status for status in sweep_statuses(Lab.open(lab)) if status.sweep == sweep)

    assert (status.finished, status.measurements) == (0, 0)
    assert all("study.json is damaged: it is of another study" in problem for problem in status.problems)
    assert len(verify_lab(lab).findings) == 2


def test_status_counted_the_trials_of_a_study_of_another_sweep(copy):
    lab = copy("two")
    swap(lab / "sweeps" / "quad" / "4", lab / "sweeps" / "other" / "4")

    assert [status.finished for status in sweep_statuses(Lab.open(lab))] == [1, 1]
    assert all("of another sweep" in status.problems[0] for status in sweep_statuses(Lab.open(lab)))


def test_status_was_silent_of_a_study_that_an_imported_sweep_lacks(copy):
    lab = copy("imported")
    shutil.rmtree(lab / "sweeps" / "nqm--quadratic--sgd" / "16")

    (status,) = sweep_statuses(Lab.open(lab))

    place = lab / "sweeps" / "nqm--quadratic--sgd" / "16"
    assert status.problems == (f"{place} is missing. Import its archive again.",)


def test_an_unfinished_study_in_the_place_of_a_finished_one_was_told_as_not_finished_yet(copy):
    lab = copy("growing")
    shutil.rmtree(lab / "sweeps" / "quad" / "4")
    shutil.copytree(lab / "sweeps" / "quad" / "growing" / "16", lab / "sweeps" / "quad" / "4")

    (problem,) = problems_of(lab, "quad")

    assert "4/study.json is damaged: it is of nqm/quadratic/sgd at batch size 16" in problem


def test_an_older_spec_is_named_beside_the_study_that_asks_for_more(copy):
    lab = copy("grown")
    shutil.copy(copy("two") / "sweeps" / "quad" / "sweep.json", lab / "sweeps" / "quad" / "sweep.json")

    assert all(str(lab / "sweeps" / "quad" / "sweep.json") in problem for problem in problems_of(lab, "quad"))


def test_an_older_study_json_from_before_a_file_was_written_passed_for_the_newest(copy):
    lab = copy("two")
    folder = lab / "sweeps" / "quad" / "4"
    shutil.copy(folder / "measurements.parquet", folder / "confirmed.parquet")

    (problem,) = problems_of(lab, "quad")

    assert f"{folder / 'study.json'} is damaged: it does not tell of confirmed.parquet" in problem
    assert [finding.path for finding in verify_lab(lab).findings] == [folder / "study.json"]


def test_an_older_study_json_of_a_study_that_still_ran_passed_for_the_newest(copy):
    lab = copy("two")
    study = Lab.open(lab).study_folder("quad", 4)
    study.save_record(study.record().begun_anew())
    for name in ("parts", "checkpoints"):
        (study.folder / name).rmdir()

    with pytest.raises(DamagedError, match="it does not tell of trials.json"):
        raise Lab.open(lab).results(Lab.open(lab).sweep("quad")).problems[0]


def test_a_reader_with_the_spec_from_before_a_growth_reads_the_grown_one(copy, make_spec):
    lab = Lab.open(copy("grown"))

    results = lab.results(make_spec())

    assert results.problems == []
    assert [len(result.trials) for result in results.results] == [5, 5]


def test_a_copy_of_a_study_under_a_name_with_a_nought_before_it_is_none_of_ours(copy):
    lab = copy("two")
    shutil.copytree(lab / "sweeps" / "quad" / "4", lab / "sweeps" / "quad" / "04")

    found = verify_lab(lab)

    assert (found.findings, found.foreign) == ([], [lab / "sweeps" / "quad" / "04"])


def test_packs_without_the_study_json_that_is_written_before_them_are_named(copy):
    lab = copy("growing")
    path = lab / "sweeps" / "quad" / "growing" / "4" / "study.json"
    path.unlink()

    (finding,) = verify_lab(lab).findings

    assert finding.path == path and "is missing beside packs of its study" in finding.problem


def test_a_study_that_was_killed_as_it_began_to_grow_is_not_damaged(copy):
    lab = copy("growing")
    growing = lab / "sweeps" / "quad" / "growing" / "4"
    (growing / "states").mkdir()
    shutil.move(growing / "parts" / "trials-3-4.parquet", growing / "states" / "trials-3-4.npz")
    (growing / "study.json").unlink()

    assert [finding.problem for finding in verify_lab(lab).findings if "study.json" in finding.problem] == []


def test_a_lab_in_the_making_was_called_damaged(tmp_path):
    (tmp_path / "lab" / "sweeps").mkdir(parents=True)

    with pytest.raises(LabError, match="There is no lab in"):
        Lab.at(tmp_path / "lab")
