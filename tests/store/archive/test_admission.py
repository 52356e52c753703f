"""An import never touches what is in the lab: a sweep is new, or known, or refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from batchlab.core.sweep import Sweep
from batchlab.errors import InputError
from batchlab.run.run_sweep import run_sweep
from batchlab.store.archive.admission import Admissions, is_sweep_name
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import FORMER_FILES
from batchlab.verify.repair import repair_lab

MAIN = "mnist/simple_cnn_base/sgd"
NAME = "mnist--simple_cnn_base--sgd"


@pytest.fixture
def one(tree) -> Path:
    """The archive with one workload."""
    shutil.rmtree(tree / "mnist_subsets")
    return tree


@pytest.fixture
def lab(run_lab, tmp_path) -> Path:
    """A lab of one's own, with a sweep that was run."""
    return Path(shutil.copytree(run_lab, tmp_path / "lab"))


def refused(bring, all_files, source, lab, match, **options):
    """The import is refused, and nothing in the lab has changed."""
    before = all_files(lab)
    with pytest.raises(InputError, match=match):
        bring(source, lab, **options)
    assert all_files(lab) == before


def test_an_import_never_replaces_a_sweep_that_was_run_here(exported, lab, bring, all_files):
    refused(bring, all_files, exported, lab, 'holds a sweep "small" already, and it was run here.*--as NAME')


def test_an_import_never_replaces_a_sweep_that_is_half_finished(exported, lab, bring, all_files):
    shutil.rmtree(lab / "sweeps" / "small" / "16")

    refused(bring, all_files, exported, lab, "it was run here")


def test_an_import_never_takes_the_name_of_another_workload_that_was_run_here(
    one, small_spec, tmp_path, bring, all_files
):
    run_sweep(Sweep.parse({**small_spec, "name": NAME}, "spec"), tmp_path / "lab", num_workers=1)

    refused(bring, all_files, one, tmp_path / "lab", f'"{NAME}" already, and it was run here')


def test_a_sweep_of_another_archive_is_refused(one, tmp_path, bring, all_files):
    bring(one, tmp_path / "lab")
    path = one / MAIN / "2" / "3" / "measurements.csv"
    path.write_text(path.read_text().replace("0.29", "0.28"))

    refused(bring, all_files, one, tmp_path / "lab", "its study at batch size 2 is another")
    shutil.rmtree(one / MAIN / "2")
    refused(bring, all_files, one, tmp_path / "lab", "it was imported from another archive")


def test_another_name_can_be_given(one, lab, bring, tmp_path, all_files):
    before = all_files(lab)
    bring(one, lab)
    path = one / MAIN / "2" / "3" / "measurements.csv"
    path.write_text(path.read_text().replace("0.29", "0.28"))
    outcome = bring(one, lab, name="other")

    after = all_files(lab)
    store = Lab.open(lab)
    assert outcome.stored == ["other"]
    assert {name: after[name] for name in before} == before
    assert store.sweep_names() == [NAME, "other", "small"]
    assert store.sweep("other").workload == store.sweep(NAME).workload == MAIN
    assert not store.results(store.sweep("other")).problems


def test_another_name_of_an_export_is_the_sweeps_own(exported, lab, bring):
    bring(exported, lab, name="again")

    store = Lab.open(lab)
    results = [store.results(store.sweep(name)) for name in ("again", "small")]
    assert store.sweep("again").spec.name == "again"
    assert results[0].problems == results[1].problems == []
    assert [r.end_step for r in results[0].results] == [r.end_step for r in results[1].results]


def test_one_name_for_several_sweeps_is_refused(tree, tmp_path, bring):
    with pytest.raises(InputError, match=f"--as one names one sweep, and the archive holds 2: {MAIN}, mnist_subsets/"):
        bring(tree, tmp_path / "lab", name="one")
    assert not (tmp_path / "lab").exists()


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".x", "-x", "x.tmp", "x.TMP", "x" * 101, "a\nb", "a b"])
def test_a_name_that_no_sweep_can_have_is_refused(tree, tmp_path, bring, name):
    with pytest.raises(InputError, match="--as"):
        bring(tree, tmp_path / "lab", name=name)
    assert not is_sweep_name(name)


@pytest.mark.parametrize("form", ["tree", "tar"])
def test_the_same_archive_twice_is_told_and_changes_nothing(tree, tmp_path, bring, pack, all_files, form):
    bring(tree, tmp_path / "lab")
    before = all_files(tmp_path / "lab")

    outcome = bring(tree if form == "tree" else pack(tree, tmp_path / "a.tar"), tmp_path / "lab")

    assert (len(outcome.known), outcome.stored) == (2, [])
    assert all_files(tmp_path / "lab") == before


def test_the_same_export_twice_is_told_and_changes_nothing(exported, tmp_path, bring, all_files):
    bring(exported, tmp_path / "lab")
    before = all_files(tmp_path / "lab")

    outcome = bring(exported, tmp_path / "lab")

    assert (outcome.known, outcome.stored) == (["small"], [])
    assert all_files(tmp_path / "lab") == before


def test_a_study_that_was_set_aside_comes_back_with_its_archive(tree, tmp_path, bring, all_files):
    """What `batchlab verify --repair` advises for an imported study that is damaged."""
    bring(tree, tmp_path / "lab")
    before = all_files(tmp_path / "lab")
    (tmp_path / "lab" / "sweeps" / NAME / "2" / "measurements.parquet").write_bytes(b"damaged")
    repair_lab(tmp_path / "lab")
    assert Lab.open(tmp_path / "lab").results(Lab.open(tmp_path / "lab").sweep(NAME)).problems

    outcome = bring(tree, tmp_path / "lab")

    after = all_files(tmp_path / "lab")
    assert (outcome.stored, len(outcome.known)) == ([NAME], 1)
    assert {name: content for name, content in after.items() if not name.startswith("set-aside")} == before


def test_what_an_older_batchlab_left_of_a_stopped_import_is_completed(one, tmp_path, bring, all_files):
    """It stored studies at their place and listed the sweep at the end."""
    bring(one, tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "lab")
    for name in ("import.json", "4/study.json"):
        (tmp_path / "lab" / "sweeps" / NAME / name).unlink()
    former = tmp_path / "lab" / "sweeps" / NAME / FORMER_FILES[0]
    former.write_bytes(b"ARROW1")

    bring(one, tmp_path / "lab")

    former.unlink()
    whole, found = all_files(tmp_path / "whole"), all_files(tmp_path / "lab")
    listing = f"sweeps/{NAME}/import.json"
    assert json.loads(found.pop(listing))["batch_sizes"] == json.loads(whole.pop(listing))["batch_sizes"]
    assert found == whole


def test_the_beginning_of_another_import_is_left_alone(one, tmp_path, bring, all_files):
    bring(one, tmp_path / "lab")
    folder = tmp_path / "lab" / "sweeps" / NAME
    (folder / "import.json").unlink()
    (folder / "notes.txt").write_text("mine")

    refused(bring, all_files, one, tmp_path / "lab", "it is the beginning of another import")


# Names


def write_workloads(tree: Path, *workloads: str) -> Path:
    for workload in workloads:
        shutil.copytree(tree / MAIN, tree.parent / "named" / workload)
    return tree.parent / "named"


def test_two_workloads_never_share_a_folder(tree, tmp_path, bring):
    """Both were called x--y--m--sgd, and the second was stored over the first."""
    workloads = ["x--y/m/sgd", "x/y--m/sgd", "x/y/m/sgd"]
    bring(write_workloads(tree, *workloads), tmp_path / "lab")

    store = Lab.open(tmp_path / "lab")
    assert sorted(store.sweep(name).workload for name in store.sweep_names()) == workloads
    assert store.sweep("x--y--m--sgd").workload == "x/y/m/sgd"


def test_a_name_that_another_import_has_is_left_to_it(tree, tmp_path, bring, all_files):
    named = write_workloads(tree, "x--y/m/sgd")
    bring(named, tmp_path / "lab")
    before = all_files(tmp_path / "lab")
    shutil.rmtree(named)
    bring(write_workloads(tree, "x/y--m/sgd"), tmp_path / "lab")

    store, after = Lab.open(tmp_path / "lab"), all_files(tmp_path / "lab")
    assert {name: after[name] for name in before} == before
    assert store.sweep("x--y--m--sgd").workload == "x--y/m/sgd"
    assert {store.sweep(name).workload for name in store.sweep_names()} == {"x--y/m/sgd", "x/y--m/sgd"}


def test_names_that_some_disks_do_not_tell_apart_are_kept_apart(tree, tmp_path, bring):
    bring(write_workloads(tree, "MNIST/m/sgd", "mnist/m/sgd"), tmp_path / "lab")

    names = Lab.open(tmp_path / "lab").sweep_names()
    assert len({name.casefold() for name in names}) == len(names) == 2
    assert "mnist--m--sgd" in names


def test_a_lone_workload_keeps_the_name_that_it_has_always_had(tmp_path):
    lab = Lab.create(tmp_path / "lab")

    assert Admissions(lab).names(["x--y/m/sgd", MAIN]) == {"x--y/m/sgd": "x--y--m--sgd", MAIN: NAME}


@pytest.mark.parametrize("workload", ["a b/m/sgd", "mnist/m/sgd.tmp", f"{'a' * 60}/{'b' * 60}/sgd"])
def test_a_workload_whose_sweep_no_lab_would_read_is_rejected(tree, tmp_path, bring, workload):
    named = write_workloads(tree, workload, "mnist/m/sgd")

    outcome = bring(named, tmp_path / "lab")

    assert [place for place, _ in outcome.rejected] == [f"{workload}/2", f"{workload}/4"]
    assert all("no sweep can be called" in reason for _, reason in outcome.rejected)
    assert Lab.open(tmp_path / "lab").sweep_names() == ["mnist--m--sgd"]


def test_a_link_in_place_of_a_sweep_is_not_followed(one, tmp_path, bring):
    lab, beside = Lab.create(tmp_path / "lab"), tmp_path / "beside"
    beside.mkdir()
    (lab.folder / "sweeps" / NAME).symlink_to(beside)

    with pytest.raises(InputError, match="holds a sweep"):
        bring(one, lab.folder)
    assert list(beside.iterdir()) == []


@pytest.mark.parametrize("name", ["importing", "sweeps"])
def test_a_link_in_place_of_a_labs_folder_is_not_followed(one, tmp_path, bring, name):
    lab, beside = Lab.create(tmp_path / "lab"), tmp_path / "beside"
    beside.mkdir()
    (beside / "mine").write_text("mine")
    if name == "sweeps":
        (lab.folder / name).rmdir()
    (lab.folder / name).symlink_to(beside)

    with pytest.raises(InputError, match="is no folder of a lab"):
        bring(one, lab.folder)
    assert [path.name for path in beside.iterdir()] == ["mine"]
