"""Import: a hand-made archive gives the answers computed by hand, whatever form it comes in."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from batchlab.analysis import best_measurement, group_trials, steps_to_result
from batchlab.core.goal import Goal
from batchlab.core.space import Range, Values
from batchlab.errors import InputError, LabError, LabLockedError, LabLostError
from batchlab.files import write_json
from batchlab.store.archive.importer import import_archive
from batchlab.store.lab import Lab

GOAL = Goal.read("val/classification_error < 0.3")
MAIN = "mnist/simple_cnn_base/sgd"
SUBSET = "mnist_subsets/mnist_6875/simple_cnn_base/sgd"


def bring(source: Path, lab: Path, **options: object):
    return import_archive(source, lab, processes=1, **options)  # type: ignore[arg-type]


def results(lab: Path, workload: str = MAIN):
    store = Lab.open(lab)
    found = store.results(store.find(workload))
    assert not found.problems
    return found.results


def pack(tree: Path, path: Path, mode: str = "w", order=None) -> Path:
    """Put the tree into a tar file, its members in the given order."""
    members = order or sorted(file for file in tree.rglob("*") if file.is_file())
    with tarfile.open(path, mode) as archive:
        for member in members:
            archive.add(member, member.relative_to(tree.parent))
    return path


def contents(lab: Path) -> dict[str, object]:
    """Everything a lab holds, but the time of the import."""
    found = {}
    for path in sorted(lab.rglob("*")):
        if path.name == "import.json":
            record = json.loads(path.read_text())
            found[str(path.relative_to(lab))] = {
                key: value for key, value in record.items() if key not in ("source", "digest")
            }
        elif path.is_file() and path.name != "lock":
            found[str(path.relative_to(lab))] = path.read_bytes()
    return found


# Answers by hand


def test_the_tie_goes_to_the_smaller_trial_and_a_diverged_trial_does_not_count(tree, tmp_path):
    bring(tree, tmp_path / "lab")
    two, four = results(tmp_path / "lab")

    answer = steps_to_result(two, GOAL)
    assert (answer.steps, answer.trial.trial_id) == (20, 3)
    assert (answer.complete, answer.infeasible, answer.incomplete) == (3, 1, 0)
    answer = steps_to_result(four, GOAL)
    assert (answer.steps, answer.trial.trial_id, answer.incomplete) == (0, 1, 1)


def test_a_goal_that_is_never_met_has_no_steps_and_a_time_budget_ends_with_its_shortest_trial(tree, tmp_path):
    bring(tree, tmp_path / "lab")
    (eight,) = results(tmp_path / "lab", SUBSET)

    assert steps_to_result(eight, GOAL).steps is None
    assert eight.end_step == 40


def test_nan_rows_are_kept_and_never_best(tree, tmp_path):
    bring(tree, tmp_path / "lab")
    two, _ = results(tmp_path / "lab")
    curve = two.measurements.curve(4)

    assert curve.steps.tolist() == [0, 15, 100]
    assert np.isnan(curve.metrics["val/classification_error"]).tolist() == [False, True, False]
    assert best_measurement(two, GOAL).value == 0.04


def test_a_missing_label_smoothing_is_none(tree, tmp_path):
    bring(tree, tmp_path / "lab")
    two, _ = results(tmp_path / "lab")

    groups = group_trials(two, "label_smoothing", missing=0.0)
    assert {value: [trial.trial_id for trial in group.trials] for value, group in groups.items()} == {
        0.0: [4, 5, 10],
        0.1: [3],
    }


def test_the_search_space_comes_along(tree, tmp_path):
    bring(tree, tmp_path / "lab")
    space = results(tmp_path / "lab")[0].search_space

    assert space["learning_rate"] == Range(min=0.0001, max=10.0, scale="log")
    assert space["momentum"] == Range(min=0.9, max=0.9999, scale="reverse_log")
    assert space["learning_rate_decay_steps"] == Range(min=50, max=100, type="integer")
    assert space["label_smoothing"] == Values(values=(0.0, 0.01, 0.1))


def test_the_goal_of_the_paper_is_known(tree, tmp_path):
    bring(tree, tmp_path / "lab")

    assert str(Lab.open(tmp_path / "lab").find(MAIN).goal) == "val/classification_error < 0.01"


# Forms


@pytest.mark.parametrize("mode", ["w", "w:bz2", "w:gz", "w:xz"])
def test_a_tar_file_gives_the_same_lab_as_the_tree(tree, tmp_path, mode):
    bring(tree, tmp_path / "tree-lab")
    bring(pack(tree, tmp_path / "archive.tar", mode), tmp_path / "tar-lab")

    assert contents(tmp_path / "tar-lab") == contents(tmp_path / "tree-lab")


def test_a_zstd_tar_is_read(tree, tmp_path):
    plain = pack(tree, tmp_path / "archive.tar").read_bytes()
    bring(tree, tmp_path / "tree-lab")
    with pa.CompressedOutputStream(str(tmp_path / "stream.tar.zst"), "zstd") as out:
        out.write(plain)

    bring(tmp_path / "stream.tar.zst", tmp_path / "tar-lab")

    assert contents(tmp_path / "tar-lab") == contents(tmp_path / "tree-lab")


def test_the_order_of_a_tar_and_the_memory_for_it_do_not_matter(tree, tmp_path, monkeypatch):
    """Metadata, tables and study.json far apart, and room for next to nothing: the pieces are joined at the end."""
    monkeypatch.setattr("batchlab.store.archive.limits.HELD_BYTES", 300)
    order = sorted((file for file in tree.rglob("*") if file.is_file()), key=lambda file: (file.name, file.parent.name))
    bring(tree, tmp_path / "tree-lab")

    bring(pack(tree, tmp_path / "archive.tar", order=order), tmp_path / "tar-lab")

    assert contents(tmp_path / "tar-lab") == contents(tmp_path / "tree-lab")


def test_processes_change_nothing(tree, tmp_path):
    bring(tree, tmp_path / "one")
    import_archive(tree, tmp_path / "two", processes=2)

    assert contents(tmp_path / "two") == contents(tmp_path / "one")


def test_a_second_import_changes_nothing(tree, tmp_path):
    bring(tree, tmp_path / "lab")
    before = contents(tmp_path / "lab")

    outcome = bring(tree, tmp_path / "lab")

    assert contents(tmp_path / "lab") == before
    assert sum(study.num_measurements for study in outcome.studies) == 21


def test_an_import_that_was_stopped_goes_on(tree, tmp_path, monkeypatch):
    """Killed after the first study: nothing shows, and the next import ends with the same lab."""
    bring(tree, tmp_path / "whole")
    from batchlab.store.study_folder import StudyFolder

    finish, calls = StudyFolder.finish, []

    def stop_at_the_second(self, *details, **options):
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        finish(self, *details, **options)

    with monkeypatch.context() as patch:
        patch.setattr(StudyFolder, "finish", stop_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            bring(tree, tmp_path / "lab")
    assert Lab.open(tmp_path / "lab").sweep_names() == []

    bring(tree, tmp_path / "lab")
    assert contents(tmp_path / "lab") == contents(tmp_path / "whole")


# What is broken


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("3/metadata.json", "{", "not valid JSON"),
        ("3/metadata.json", "[]", "no object"),
        ("3/metadata.json", "{}", "lacks the field 'trial_id'"),
        ("3/metadata.json", '{"trial_id": 7}', "says trial 7, its folder 3"),
        ("3/metadata.json", '{"trial_id": 3, "status": "DONE", "parameters": {}, "steps": 1}', "status"),
        ("3/measurements.csv", "stap,val/a\n0,1\n", "unknown header: stap,val/a"),
        ("3/measurements.csv", "step,val/classification_error\n0,x\n", "cannot be read"),
        ("3/measurements.csv", "step,val/classification_error\n5,1\n3,1\n", "do not ascend"),
        ("3/measurements.csv", "step,val/classification_error\n5,1,2\n", "cannot be read"),
    ],
)
def test_a_broken_trial_is_named_and_the_rest_is_imported(tree, tmp_path, file, text, reason):
    (tree / MAIN / "2" / file).write_text(text)

    outcome = bring(tree, tmp_path / "lab")

    ((place, why),) = outcome.rejected
    assert place == f"{MAIN}/2/3"
    assert reason in why
    assert [trial.trial_id for trial in results(tmp_path / "lab")[0].trials] == [4, 5, 10]
    assert set(results(tmp_path / "lab")[0].measurements.trial_id.tolist()) == {4, 5, 10}
    assert json.loads((tmp_path / "lab" / "rejected.json").read_text()) == [
        {"path": place, "reason": why, "sweep": "mnist--simple_cnn_base--sgd", "archive": "batch_science"}
    ]


def test_a_trial_without_one_of_its_files_is_named(tree, tmp_path):
    (tree / MAIN / "2" / "3" / "measurements.csv").unlink()
    (tree / MAIN / "2" / "4" / "metadata.json").unlink()

    assert sorted(bring(tree, tmp_path / "lab").rejected) == [
        (f"{MAIN}/2/3", "measurements.csv is missing"),
        (f"{MAIN}/2/4", "metadata.json is missing"),
    ]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"batch_size": 3}, "says batch size 3, its folder 2"),
        ({"parameter_configs": {"momentum": {"type": "STRANGE"}}}, "unknown type"),
        ({"parameter_configs": [1]}, "wrong kind"),
        ({"train_steps": "many"}, "train_steps"),
    ],
)
def test_a_broken_study_is_named_and_the_rest_is_imported(tree, tmp_path, changes, reason):
    path = tree / MAIN / "2" / "study.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    outcome = bring(tree, tmp_path / "lab")

    ((place, why),) = outcome.rejected
    assert place == f"{MAIN}/2"
    assert reason in why
    assert Lab.open(tmp_path / "lab").find(MAIN).batch_sizes == (4,)


def test_strict_ends_at_the_first_broken_one_and_shows_nothing(tree, tmp_path):
    (tree / MAIN / "2" / "3" / "metadata.json").write_text("{")

    with pytest.raises(InputError, match=r"mnist/simple_cnn_base/sgd/2/3: not valid JSON.*--strict"):
        bring(tree, tmp_path / "lab", strict=True)
    assert not (tmp_path / "lab").exists()


def test_a_folder_that_is_no_trial_is_named(tree, tmp_path):
    (tree / MAIN / "2" / "notes").mkdir()

    assert bring(tree, tmp_path / "lab").rejected == [
        (f"{MAIN}/2/notes", 'the folder name "notes" is no trial: it must be a whole number')
    ]


def test_other_columns_in_some_trials_are_joined(tree, tmp_path):
    (tree / MAIN / "2" / "4" / "measurements.csv").write_text("step,val/classification_error,test/loss\n0,0.9,1.5\n")
    bring(tree, tmp_path / "lab")
    rows = results(tmp_path / "lab")[0].measurements

    assert rows.trial_id.tolist() == [3, 3, 3, 3, 4, 5, 5, 5, 10, 10, 10]
    assert rows.metrics["test/loss"][4] == 1.5
    assert np.isnan(rows.metrics["train/cross_entropy_error"][4])


# What is hostile


def refused(path: Path, tmp_path: Path, match: str) -> None:
    """Importing it fails with the message; nothing shows in the lab, and nothing outside it is touched."""
    beside = {file for file in tmp_path.rglob("*") if "lab" not in file.relative_to(tmp_path).parts[0]}
    with pytest.raises(InputError, match=match):
        bring(path, tmp_path / "lab")
    assert {file for file in tmp_path.rglob("*") if "lab" not in file.relative_to(tmp_path).parts[0]} == beside
    assert not (tmp_path / "lab").exists()


def add(archive: tarfile.TarFile, name: str, content: bytes = b"{}", **attributes: object) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for attribute, value in attributes.items():
        setattr(info, attribute, value)
    archive.addfile(info, io.BytesIO(content))


@pytest.mark.parametrize(
    ("name", "attributes", "match"),
    [
        ("../outside/study.json", {}, "leaves its tree"),
        ("/etc/study.json", {}, "leaves its tree"),
        ("mnist/a/b/2/../../../study.json", {}, "leaves its tree"),
        ("mnist/fc/sgd/2/link", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "link or a device"),
        ("mnist/fc/sgd/2/hard", {"type": tarfile.LNKTYPE, "linkname": "mnist"}, "link or a device"),
        ("mnist/fc/sgd/2/device", {"type": tarfile.CHRTYPE}, "link or a device"),
        ("mnist/fc/sgd/two/study.json", {}, 'folder name "two" is no batch size'),
    ],
)
def test_hostile_members_are_refused(tree, tmp_path, name, attributes, match):
    path = pack(tree, tmp_path / "archive.tar")
    with tarfile.open(path, "a") as archive:
        add(archive, name, **attributes)

    refused(path, tmp_path, match)


def test_gigabytes_of_zeros_are_refused_before_they_are_read(tree, tmp_path):
    """A header that promises 10 GB; the zeros themselves are not needed to see it."""
    info = tarfile.TarInfo("mnist/fc_1024/sgd/2/1/measurements.csv")
    info.size = 10 * 2**30
    (tmp_path / "bomb.tar").write_bytes(info.tobuf() + bytes(1 << 16))

    refused(tmp_path / "bomb.tar", tmp_path, "10,737,418,240 bytes, more than")


@pytest.mark.parametrize("mode", ["w:bz2", "w:gz", "w:xz", "w"])
def test_a_truncated_file_is_refused_whole(tree, tmp_path, mode):
    path = pack(tree, tmp_path / "archive.tar", mode)
    path.write_bytes(path.read_bytes()[: -path.stat().st_size // 2])

    refused(path, tmp_path, "damaged or cut short")


def test_a_trial_that_is_there_twice_is_named(tree, tmp_path):
    path = pack(tree, tmp_path / "archive.tar")
    with tarfile.open(path, "a") as archive:
        archive.add(tree / MAIN / "2" / "4" / "metadata.json", f"batch_science/{MAIN}/2/3/metadata.json")

    outcome = bring(path, tmp_path / "lab")
    assert outcome.rejected == [(f"{MAIN}/2/3", "metadata.json is there twice")]


def test_a_link_in_a_tree_is_refused(tree, tmp_path):
    (tree / MAIN / "2" / "99").symlink_to("/etc")

    refused(tree, tmp_path, "link or a device")


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "noise.tar.bz2").write_bytes(b"BZh9" + bytes(range(256)))
    (tmp_path / "text.tar").write_text("hello")

    refused(tmp_path / "empty", tmp_path, "holds no study.json")
    refused(tmp_path / "noise.tar.bz2", tmp_path, "is no archive, or it is damaged or cut short")
    refused(tmp_path / "text.tar", tmp_path, "is no archive, or it is damaged or cut short")
    refused(tmp_path / "nowhere", tmp_path, "does not exist")


def test_a_file_with_the_official_name_must_be_the_official_one(tree, tmp_path):
    path = pack(tree, tmp_path / "batch_science_data.tar.bz2", "w:bz2")

    refused(path, tmp_path, "SHA-256 .* the published archive 6460ab86")


# What is left behind


def left_out(lab: Path) -> list[str]:
    return [entry["path"] for entry in json.loads((lab / "rejected.json").read_text())]


def test_what_was_left_out_is_remembered_over_repeats(tree, tmp_path):
    """The second import of the same archive found everything there, and wiped the list."""
    (tree / MAIN / "2" / "3" / "metadata.json").write_text("{")
    bring(tree, tmp_path / "lab")
    before = contents(tmp_path / "lab")

    bring(tree, tmp_path / "lab")
    bring(pack(tree, tmp_path / "archive.tar"), tmp_path / "lab")

    assert contents(tmp_path / "lab") == before
    assert left_out(tmp_path / "lab") == [f"{MAIN}/2/3"]


def test_what_another_archive_lacks_is_added(tree, tmp_path):
    (tree / MAIN / "2" / "3" / "metadata.json").write_text("{")
    bring(tree, tmp_path / "lab")
    other = tmp_path / "other"
    (tree / "mnist").rename(tree / "fashion")
    tree.rename(other)
    (other / "mnist_subsets").rename(tmp_path / "elsewhere")
    bring(other, tmp_path / "lab")

    assert left_out(tmp_path / "lab") == [f"{MAIN}/2/3", "fashion/simple_cnn_base/sgd/2/3"]


def test_the_same_path_under_another_name_is_another_thing(tree, tmp_path):
    (tree / "mnist_subsets").rename(tmp_path / "elsewhere")
    (tree / MAIN / "2" / "3" / "metadata.json").write_text("{")
    bring(tree, tmp_path / "lab")
    bring(tree, tmp_path / "lab", name="other")
    bring(tree, tmp_path / "lab", name="other")

    assert left_out(tmp_path / "lab") == [f"{MAIN}/2/3", f"{MAIN}/2/3"]


def test_what_was_left_out_before_a_stop_is_told_after_it(tree, tmp_path, monkeypatch):
    """The study with the broken trial waits converted; the import that goes on still knows what it lacks."""
    (tree / MAIN / "2" / "3" / "metadata.json").write_text("{")
    from batchlab.store.archive.import_folder import ImportFolder

    def stop(self, *details):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ImportFolder, "put", stop)
        patch.setattr("batchlab.store.archive.importer.add_rejected", lambda *details: None)
        with pytest.raises(KeyboardInterrupt):
            bring(tree, tmp_path / "lab")
    with monkeypatch.context() as patch:
        patch.setattr("batchlab.store.archive.study_import._convert", None)  # nothing is converted again
        bring(tree, tmp_path / "lab")

    assert left_out(tmp_path / "lab") == [f"{MAIN}/2/3"]
    assert not (tmp_path / "lab" / "importing").exists()


@pytest.mark.parametrize("form", ["tree", "tar"])
def test_strict_stores_nothing_and_leaves_a_lab_as_it_was(tree, tmp_path, form):
    bring(tree, tmp_path / "lab", name=None)
    before = contents(tmp_path / "lab")
    (tree / "mnist").rename(tree / "fashion")
    (tree / "fashion" / "simple_cnn_base" / "sgd" / "4" / "1" / "metadata.json").write_text("{")
    source = tree if form == "tree" else pack(tree, tmp_path / "archive.tar")

    with pytest.raises(InputError, match="--strict"):
        bring(source, tmp_path / "lab", strict=True)
    assert contents(tmp_path / "lab") == before
    assert sorted(path.name for path in (tmp_path / "lab").iterdir()) == ["lab.json", "lock", "rejected.json", "sweeps"]


@pytest.mark.parametrize("place", ["lab", "a/new/lab"])
def test_an_archive_from_which_nothing_came_is_an_error_and_leaves_no_lab(tree, tmp_path, place):
    for path in tree.rglob("study.json"):
        path.write_text("{")

    with pytest.raises(InputError, match=r"Nothing can be imported .*/2: not valid JSON.* 2 other studies are broken"):
        bring(tree, tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["batch_science"]


def test_an_empty_folder_given_for_a_lab_stays_one(tree, tmp_path):
    (tmp_path / "lab").mkdir()
    for path in tree.rglob("study.json"):
        path.write_text("{")

    with pytest.raises(InputError, match="Nothing can be imported"):
        bring(tree, tmp_path / "lab")
    assert list((tmp_path / "lab").iterdir()) == []


def test_a_lab_in_use_is_left_alone(tree, tmp_path):
    lab = Lab.create(tmp_path / "lab")
    (tmp_path / "lab" / "importing").mkdir()
    (tmp_path / "lab" / "importing" / "piece").write_text("another's")

    with lab.locked(), pytest.raises(InputError, match="in use"):
        import_in_another_process(tree, tmp_path / "lab")
    assert (tmp_path / "lab" / "importing" / "piece").exists()


def import_in_another_process(tree: Path, lab: Path) -> None:
    """A lock keeps out other processes only."""
    command = [sys.executable, "-m", "batchlab", "import", str(tree), "--lab", str(lab), "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    raise InputError(done.stderr)


def test_a_damaged_list_of_what_was_left_out_is_not_written_over(tree, tmp_path):
    bring(tree, tmp_path / "lab")
    (tmp_path / "lab" / "rejected.json").write_text("[{")
    before = contents(tmp_path / "lab")

    with pytest.raises(LabError, match="rejected.json is damaged"):
        bring(tree, tmp_path / "lab")
    assert contents(tmp_path / "lab") == before


def test_what_was_left_out_is_noted_while_the_lab_is_held(tree, tmp_path, monkeypatch):
    """Of two imports at once, one would write over what the other has noted."""
    from batchlab.store import rejected
    from batchlab.store.lock import hold_lock

    def write(path: Path, content: object) -> None:
        with pytest.raises(LabLockedError), hold_lock(tmp_path / "lab" / "lock"):
            pass
        write_json(path, content)

    (tree / MAIN / "2" / "3" / "metadata.json").write_text("{")
    monkeypatch.setattr(rejected, "write_json", write)
    bring(tree, tmp_path / "lab")

    assert left_out(tmp_path / "lab") == [f"{MAIN}/2/3"]


def test_an_import_that_fails_leaves_what_another_one_has_stored_meanwhile(tree, tmp_path, monkeypatch):
    """Both begin where there is no lab; the second gets the lock when the first has ended."""
    from batchlab.store.archive import import_folder

    create = Lab.create

    def create_late(folder: Path) -> Lab:
        monkeypatch.setattr(import_folder.Lab, "create", create)
        bring(tree, folder)
        return create(folder)

    monkeypatch.setattr(import_folder.Lab, "create", create_late)
    with pytest.raises(InputError, match="names one sweep"):
        bring(tree, tmp_path / "lab", name="other")

    assert [result.batch_size for result in results(tmp_path / "lab")] == [2, 4]


def test_an_import_that_lost_its_lab_leaves_what_lies_in_its_place(tree, tmp_path, monkeypatch):
    """The lab was moved away, and another import has begun where it was."""
    from batchlab.store.archive import importer

    def note(lab: Path, found: object) -> None:
        lab.rename(tmp_path / "away")
        (lab / "importing").mkdir(parents=True)
        (lab / "importing" / "piece").write_text("another's")
        (lab / "lab.json").write_text("another's")
        write_json(lab / "rejected.json", [])

    monkeypatch.setattr(importer, "add_rejected", note)
    with pytest.raises(LabLostError, match="no longer its own"):
        bring(tree, tmp_path / "lab")

    assert sorted(contents(tmp_path / "lab")) == ["importing/piece", "lab.json"]


# What is there twice, or lost


@pytest.mark.parametrize("folder", [f"batch_science/{MAIN}/2", f"batch_science/{MAIN}/02", f"{MAIN}/2"])
def test_a_second_study_json_is_refused(tree, tmp_path, folder):
    path = pack(tree, tmp_path / "archive.tar")
    with tarfile.open(path, "a") as archive:
        archive.add(tree / MAIN / "2" / "study.json", f"{folder}/study.json")

    refused(path, tmp_path, 'a second "batch_science|two folders of the same study')


@pytest.mark.parametrize("folder", [f"{MAIN}/02", f"batch_science/{MAIN}/2"])
def test_two_folders_that_mean_one_study_are_refused(tree, tmp_path, folder):
    shutil.copytree(tree / MAIN / "2", tree / folder)

    refused(tree, tmp_path, "are the same study")


def test_a_trial_in_two_folders_is_left_out_whichever_comes_first(tree, tmp_path):
    shutil.copytree(tree / MAIN / "2" / "3", tree / MAIN / "2" / "003")

    assert bring(tree, tmp_path / "lab").rejected == [(f"{MAIN}/2/3", "the trial is there twice")]


@pytest.mark.parametrize("form", ["tree", "tar"])
def test_a_study_that_lost_its_study_json_is_told(tree, tmp_path, form):
    """In a tree it was passed over without a word."""
    (tree / MAIN / "2" / "study.json").unlink()
    source = tree if form == "tree" else pack(tree, tmp_path / "archive.tar")

    assert bring(source, tmp_path / "lab").rejected == [(f"{MAIN}/2", "study.json is missing")]


def test_bytes_that_are_no_text_are_rejected_in_a_tar_as_in_a_tree(tree, tmp_path):
    """In a tar file they were taken for something else and imported."""
    path = tree / MAIN / "2" / "3" / "metadata.json"
    path.write_bytes(path.read_bytes().replace(b"secret", b"\xff\xfe"))

    trees, tars = bring(tree, tmp_path / "one"), bring(pack(tree, tmp_path / "archive.tar"), tmp_path / "two")

    assert [place for place, _ in trees.rejected] == [f"{MAIN}/2/3"]
    assert tars.rejected == trees.rejected


# What is endless


def test_more_of_anything_than_an_archive_has_is_refused(tree, tmp_path, monkeypatch):
    limits = "batchlab.store.archive.limits."
    path = pack(tree, tmp_path / "archive.tar")
    with tarfile.open(path, "a") as archive:
        add(archive, "README", b"read me" * 100)
        add(archive, "NOTES", b"")
    for name, most, what in [
        ("MOST_STUDIES", 2, "studies"),
        ("MOST_FILES", 8, "files of one study"),
        ("MOST_OTHERS", 1, "files that have no part"),
        ("MOST_WASTE", 600, "bytes that nothing is made of"),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(limits + name, most)
            refused(path, tmp_path, f"holds more than {most} {what}")


def test_files_that_are_too_small_are_counted(tree, tmp_path, monkeypatch):
    monkeypatch.setattr("batchlab.store.archive.limits.MOST_TINY", 3)
    path = pack(tree, tmp_path / "archive.tar")
    with tarfile.open(path, "a") as archive:
        for number in range(100, 104):
            add(archive, f"{MAIN}/64/{number}/metadata.json", b"{}")

    refused(path, tmp_path, "more than 3 files that are too small to be what their names say")


def test_folders_without_files_are_counted(tree, tmp_path, monkeypatch):
    monkeypatch.setattr("batchlab.store.archive.limits.MOST_FOLDERS", 3)
    with tarfile.open(tmp_path / "archive.tar", "w") as archive:
        for number in range(5):
            add(archive, f"folder-{number}", b"", type=tarfile.DIRTYPE)

    refused(tmp_path / "archive.tar", tmp_path, "more than 3 folders")


def test_zeros_in_place_of_a_table_are_not_held(tree, tmp_path):
    path = pack(tree, tmp_path / "archive.tar")
    with tarfile.open(path, "a") as archive:
        add(archive, f"batch_science/{MAIN}/2/77/measurements.csv", bytes(1 << 22))
        archive.add(tree / MAIN / "2" / "3" / "metadata.json", f"batch_science/{MAIN}/2/77/metadata.json")

    ((place, reason),) = bring(path, tmp_path / "lab").rejected
    assert place == f"{MAIN}/2/77"
    assert "unknown header" in reason


def test_a_tree_that_is_too_deep_or_too_wide_is_refused(tree, tmp_path, monkeypatch):
    (tree / "/".join("d" * 20)).mkdir(parents=True)
    refused(tree, tmp_path, "lies deeper than any study")
    shutil.rmtree(tree / "d")
    monkeypatch.setattr("batchlab.store.archive.limits.MOST_OTHERS", 5)
    refused(tree, tmp_path, "more than 5 folders without a study.json")


@pytest.mark.parametrize("name", ["study.json", "3/metadata.json", "3/measurements.csv"])
def test_a_file_of_a_tree_that_is_too_large_is_refused_unread(tree, tmp_path, name):
    os.truncate(tree / MAIN / "2" / name, 10 * 2**30)

    refused(tree, tmp_path, "10,737,418,240 bytes, more than")


@pytest.mark.parametrize("name", ["study.json", "3/metadata.json"])
def test_a_pipe_in_a_tree_is_not_waited_for(tree, tmp_path, name):
    (tree / MAIN / "2" / name).unlink()
    os.mkfifo(tree / MAIN / "2" / name)

    refused(tree, tmp_path, "link or a device")


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "pipe"])
def test_what_is_no_file_is_no_archive(tmp_path, path):
    os.mkfifo(tmp_path / "pipe")

    refused(tmp_path / path, tmp_path, "neither a folder nor a regular file")


@pytest.mark.slow
def test_an_import_is_linear_in_its_trials(tmp_path):
    """Every file of a tar was weighed against all that were held: the time grew with the square of the trials."""
    csv = "step,val/classification_error\n" + "".join(f"{step},{1 / (step + 1)}\n" for step in range(0, 101, 10))
    seconds = {}
    for number in (2_000, 20_000):
        path = tmp_path / f"{number}.tar"
        with tarfile.open(path, "w") as archive:
            study = {"batch_size": 2, "early_stopping": False, "parameter_configs": {}, "train_steps": 100}
            add(archive, f"{MAIN}/2/study.json", json.dumps(study).encode())
            for trial in range(number):
                facts = {"parameters": {"learning_rate": 0.1}, "status": "COMPLETE", "steps": 100, "trial_id": trial}
                add(archive, f"{MAIN}/2/{trial}/metadata.json", json.dumps(facts).encode())
                add(archive, f"{MAIN}/2/{trial}/measurements.csv", csv.encode())
        started = time.process_time()
        bring(path, tmp_path / f"lab-{number}")
        seconds[number] = time.process_time() - started

    assert seconds[20_000] < 20 * seconds[2_000]
