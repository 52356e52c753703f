"""A lab: what it admits, what it refuses and how it says so, and what it still tells when a part is broken."""

from __future__ import annotations

import json

import pytest

from batchlab.core.growth import GROWS
from batchlab.errors import DamagedError, LabError, SpecError
from batchlab.store.lab import FORMAT, Lab


@pytest.fixture
def lab(tmp_path):
    return Lab.create(tmp_path / "lab")


# Making and opening


def test_a_new_lab_can_be_opened(tmp_path):
    Lab.create(tmp_path / "some" / "lab")

    assert Lab.open(tmp_path / "some" / "lab").sweep_names() == []
    assert json.loads((tmp_path / "some" / "lab" / "lab.json").read_text()) == {"format": FORMAT}


def test_an_empty_folder_becomes_a_lab(tmp_path):
    Lab.create(tmp_path)

    assert Lab.open(tmp_path).sweep_names() == []


def test_a_lab_that_exists_is_kept(lab, make_sweep):
    lab.admit(make_sweep())

    assert Lab.create(lab.folder).sweep_names() == ["small"]


def test_a_folder_of_other_things_is_refused_and_untouched(tmp_path):
    (tmp_path / "thesis.txt").write_text("precious")

    with pytest.raises(LabError, match=f"^{tmp_path} is neither empty nor a lab. Use another lab.$"):
        Lab.create(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_lab(tmp_path):
    (tmp_path / "lab").write_text("")

    with pytest.raises(LabError, match="neither empty nor a lab"):
        Lab.create(tmp_path / "lab")
    with pytest.raises(LabError, match="There is no lab"):
        Lab.open(tmp_path / "lab")


def test_a_lab_without_its_lab_json_was_told_to_be_made_anew(lab, make_sweep):
    lab.admit(make_sweep())
    (lab.folder / "lab.json").unlink()

    for enter in (Lab.open, Lab.create):
        with pytest.raises(DamagedError, match="lab.json is missing beside sweeps. See what is sound with"):
            enter(lab.folder)
    assert Lab.at(lab.folder).sweep_names() == ["small"]


def test_opening_what_is_not_there_says_how_to_make_one(tmp_path):
    with pytest.raises(LabError, match=f"^There is no lab in {tmp_path}. Make one with `batchlab run SPEC --lab"):
        Lab.open(tmp_path)


@pytest.mark.parametrize("leftovers", [["sweeps"], ["lab.json.123.tmp"], ["sweeps", "lab.json.123.tmp"]])
def test_a_lab_whose_making_was_killed_is_made_anew(tmp_path, leftovers):
    for name in leftovers:
        (tmp_path / name).mkdir() if name == "sweeps" else (tmp_path / name).write_text("{")

    Lab.create(tmp_path)

    assert Lab.open(tmp_path).sweep_names() == []


def test_a_newer_format_is_refused(lab):
    (lab.folder / "lab.json").write_text(json.dumps({"format": FORMAT + 1}))
    expected = (
        f"names format {FORMAT + 1}, written by a newer batchlab; this one reads up to {FORMAT}. Update batchlab."
    )

    for enter in (Lab.open, Lab.create):
        with pytest.raises(LabError, match=expected):
            enter(lab.folder)


@pytest.mark.parametrize("content", ["{}", "[]", '{"format": "new"}', "{"])
def test_a_lab_that_does_not_tell_its_format_is_refused(lab, content):
    (lab.folder / "lab.json").write_text(content)

    with pytest.raises(LabError, match=f"^{lab.folder / 'lab.json'} "):
        Lab.open(lab.folder)


# Sweeps


def test_an_admitted_sweep_comes_back(lab, make_sweep):
    sweep = make_sweep({"search_space.learning_rate.max": 0.1 + 0.2})

    lab.admit(sweep)
    lab.admit(sweep)

    assert lab.sweep("small").spec == sweep


def test_a_changed_sweep_is_refused_with_the_difference(lab, make_sweep):
    lab.admit(make_sweep())

    with pytest.raises(SpecError) as caught:
        lab.admit(make_sweep({"sweep.trials": 3, "search_space.learning_rate.max": 2.0}))

    assert str(caught.value) == (
        f'Sweep "small" in lab {lab.folder} was begun with another spec; changed: '
        "search_space.learning_rate.max: 1.0 -> 2.0. "
        f"Change it back, or give it a new name (--set name=NAME) or another lab. {GROWS}"
    )
    assert lab.sweep("small").spec == make_sweep()


def test_the_same_sweep_under_another_name_is_welcome(lab, make_sweep):
    lab.admit(make_sweep())
    lab.admit(make_sweep({"name": "other", "sweep.trials": 3}))

    assert lab.sweep_names() == ["other", "small"]


@pytest.mark.parametrize("content", ["{", '{"name": "small"}', "[]"])
def test_a_broken_sweep_file_is_named(lab, make_sweep, content):
    lab.admit(make_sweep())
    path = lab.folder / "sweeps" / "small" / "sweep.json"
    path.write_text(content)

    with pytest.raises(LabError, match=f"^{path}"):
        lab.sweep("small")


# Finding


def test_the_only_sweep_needs_no_name(lab, make_sweep):
    lab.admit(make_sweep())

    assert lab.find().spec == make_sweep()


def test_an_empty_lab_says_so(lab):
    with pytest.raises(LabError, match=f"^Lab {lab.folder} holds no sweep yet.$"):
        lab.find()


def test_sweeps_of_two_workloads_are_told_apart_by_workload(lab, make_sweep):
    other = make_sweep({"name": "wide", "workload.model": "fc_256"})
    lab.admit(make_sweep())
    lab.admit(other)

    assert lab.find("digits/fc_256/sgd").spec == other
    assert lab.find(sweep_name="small").spec == make_sweep()
    with pytest.raises(LabError) as caught:
        lab.find()
    assert str(caught.value) == (
        f"Lab {lab.folder} holds several sweeps: digits/fc_128/sgd (sweep small), digits/fc_256/sgd (sweep wide). "
        "Name the workload or the sweep."
    )


def test_sweeps_of_one_workload_are_told_apart_by_name(lab, make_sweep):
    again, other = make_sweep({"name": "again"}), make_sweep({"name": "wide", "workload.model": "fc_256"})
    for sweep in (make_sweep(), again, other):
        lab.admit(sweep)

    assert lab.find("digits/fc_128/sgd", "again").spec == again
    with pytest.raises(LabError) as caught:
        lab.find("digits/fc_128/sgd")
    assert "digits/fc_128/sgd (sweep again), digits/fc_128/sgd (sweep small). " in str(caught.value)
    assert "fc_256" not in str(caught.value)


def test_of_many_sweeps_a_few_are_named_and_none_twice(lab, make_sweep):
    for width in range(1, 31):
        lab.admit(make_sweep({"name": f"digits--fc_{width}--sgd", "workload.model": f"fc_{width}"}))

    with pytest.raises(LabError) as caught:
        lab.find()

    assert "holds several sweeps: digits/fc_1/sgd, digits/fc_10/sgd, " in str(caught.value)
    assert str(caught.value).endswith(" and 25 more. Name the workload or the sweep.")


def test_a_sweep_is_found_by_its_own_name_in_the_place_of_its_workload(lab, make_sweep):
    """What `run digits` has made, `curve digits` knows."""
    again = make_sweep({"name": "again"})
    lab.admit(make_sweep())
    lab.admit(again)

    assert lab.find("again").spec == again
    assert lab.find("again", "again").spec == again
    with pytest.raises(LabError, match='Unknown sweep "agian". Did you mean "again"'):
        lab.find("agian")
    with pytest.raises(LabError, match="holds several sweeps"):
        lab.find("again", "small")


@pytest.mark.parametrize("name", ["smal", "../sweeps/small", ""])
def test_a_sweep_that_the_lab_has_not_is_no_damage(lab, make_sweep, name):
    lab.admit(make_sweep())

    with pytest.raises(LabError, match=r"Unknown sweep .* Known: small\.") as refused:
        lab.sweep(name)

    assert not isinstance(refused.value, DamagedError)


def test_an_unknown_workload_or_sweep_is_refused_with_the_known_ones(lab, make_sweep):
    lab.admit(make_sweep())

    with pytest.raises(LabError, match='Unknown workload "digits/fc_123/sgd". Did you mean "digits/fc_128/sgd"'):
        lab.find("digits/fc_123/sgd")
    with pytest.raises(LabError, match='Unknown sweep "smal". Did you mean "small"'):
        lab.find(sweep_name="smal")


def test_a_workload_and_a_sweep_that_do_not_belong_together_are_refused(lab, make_sweep):
    lab.admit(make_sweep())
    lab.admit(make_sweep({"name": "wide", "workload.model": "fc_256"}))

    with pytest.raises(LabError, match="Name the sweep"):
        lab.find("digits/fc_128/sgd", "wide")


# Results


def fill(lab, sweep, finish):
    lab.admit(sweep)
    for batch_size in sweep.search.batch_sizes:
        finish(lab.study_folder(sweep.name, batch_size), batch_size)


def test_results_are_those_of_finished_studies(lab, make_sweep, make_record, finish):
    lab.admit(make_sweep())
    finish(lab.study_folder("small", 8), 8)
    lab.study_folder("small", 32).save_record(make_record(32))

    results = lab.results(make_sweep())

    assert [result.batch_size for result in results.results] == [8]
    assert results.unfinished == [2, 32]
    assert results.problems == []


def test_results_can_be_read_with_one_metric_only(lab, make_sweep, finish):
    fill(lab, make_sweep(), finish)

    results = lab.results(make_sweep(), ["test/loss"]).results

    assert [list(result.measurements.metrics) for result in results] == [["test/loss"]] * 3


@pytest.mark.parametrize("name", ["measurements.parquet", "trials.json", "study.json"])
@pytest.mark.parametrize("content", [None, b"", b"PAR1 nothing that makes sense PAR1", b"{"])
def test_a_broken_study_is_told_and_the_others_are_read(lab, make_sweep, finish, name, content):
    fill(lab, make_sweep(), finish)
    path = lab.study_folder("small", 8).folder / name
    path.unlink() if content is None else path.write_bytes(content)

    results = lab.results(make_sweep())

    assert [result.batch_size for result in results.results] == [2, 32]
    (problem,) = results.problems
    assert str(path) in str(problem)
    assert "\n" not in str(problem)


@pytest.mark.parametrize("content", ["{}", "3", '[{"trial_id": 0}]', "[1]"])
def test_trials_that_are_none_are_told(lab, make_sweep, finish, content):
    fill(lab, make_sweep(), finish)
    path = lab.study_folder("small", 8).folder / "trials.json"
    path.write_text(content)

    (problem,) = lab.results(make_sweep()).problems

    assert str(problem).startswith(str(path))
