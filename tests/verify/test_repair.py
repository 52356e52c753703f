"""A damaged lab, repaired: every sound part is kept, nothing is deleted, and `run` completes it."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from batchlab.errors import LabError
from batchlab.run.run_sweep import run_sweep
from batchlab.store.lab import Lab
from batchlab.store.lock import hold_lock
from batchlab.store.migrations import FORMAT
from batchlab.verify.lab import verify_lab
from batchlab.verify.repair import repair_lab

STUDY = "sweeps/nqm/16"
SAMPLES = Path(__file__).parents[1] / "store" / "labs"


def rows(lab: Path) -> list[dict[str, object]]:
    return [pq.read_table(path).to_pydict() for path in sorted(lab.glob("sweeps/*/*/measurements.parquet"))]


def contents(lab: Path) -> Counter[bytes]:
    return Counter(path.read_bytes() for path in lab.rglob("*") if path.is_file() and path.name != "lock")


def answers(lab: Path) -> dict[str, object]:
    """Return what the lab's studies answer, but for times: rows, steps, winners."""
    found = {}
    for folder in sorted(lab.glob("sweeps/*/*/")):
        study = Lab.open(lab).study_folder(folder.parent.name, int(folder.name))
        record, rows = study.record(), pq.read_table(folder / "measurements.parquet").to_pydict()
        trials = [(t.trial_id, t.status, t.metaparameters, t.last_step, t.round) for t in study.trials()]
        found[folder.name] = (record.best_steps, record.end_step, record.counts, record.points, trials, rows)
    return found


@pytest.mark.parametrize(
    "name",
    [
        "lab.json",
        "sweeps/nqm/sweep.json",
        *(f"{STUDY}/{n}" for n in ("study.json", "trials.json", "measurements.parquet")),
    ],
)
@pytest.mark.parametrize(
    "damage", [lambda content: content[:-7], lambda content: b"", None], ids=["cut", "empty", "gone"]
)
def test_whatever_was_damaged_run_completes_it_to_what_it_was(nqm, nqm_sweep, name, damage):
    expected, path = answers(nqm), nqm / name
    if damage:
        path.write_bytes(damage(path.read_bytes()))
    else:
        path.unlink()
    before = contents(nqm)

    _, found = repair_lab(nqm)

    assert found.is_sound or name == "sweeps/nqm/sweep.json"
    assert not before - contents(nqm), "something was deleted"
    run_sweep(nqm_sweep, nqm, num_workers=1)
    assert answers(nqm) == expected
    assert repair_lab(nqm) == ([], repair_lab(nqm)[1])


@pytest.mark.parametrize("name", ["study.json", "trials.json"])
def test_what_the_table_carries_is_written_again_and_nothing_is_trained(nqm, name):
    path = nqm / STUDY / name
    path.write_text("{")
    expected = (nqm / STUDY / "measurements.parquet").read_bytes()

    done, found = repair_lab(nqm)

    assert found.is_sound
    assert any(line.startswith(f"{path}: written again from measurements.parquet") for line in done)
    assert (nqm / STUDY / "measurements.parquet").read_bytes() == expected


def test_what_was_confirmed_is_written_again_from_its_table(sample):
    path = sample / "sweeps" / "finished" / "16" / "confirmed.json"
    expected = Lab.open(sample).study_folder("finished", 16).confirmation()
    path.write_text("{}")

    _, found = repair_lab(sample)

    assert found.is_sound
    restored = Lab.open(sample).study_folder("finished", 16).confirmation()
    assert expected is not None and restored is not None
    assert [(r.trial_id, r.replicate, r.goal_step, r.last_step) for r in restored.replicates] == [
        (r.trial_id, r.replicate, r.goal_step, r.last_step) for r in expected.replicates
    ]


def test_a_confirmation_without_its_table_is_forgotten_and_the_search_is_kept(sample):
    (sample / "sweeps" / "finished" / "16" / "confirmed.parquet").write_bytes(b"nothing")
    lab = Lab.open(sample)
    expected = [trial.trial_id for trial in lab.study_folder("finished", 16).trials()]

    _, found = repair_lab(sample)

    assert found.is_sound
    assert lab.study_folder("finished", 16).confirmation() is None
    assert [trial.trial_id for trial in lab.study_folder("finished", 16).trials()] == expected


@pytest.mark.parametrize("name", ["parts/trials-0-1.parquet", "checkpoints/trials-2-3.npz"])
def test_a_damaged_pack_is_set_aside_and_the_others_are_kept(sample, name):
    folder = sample / "sweeps" / "unfinished" / "32"
    others = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path != folder / name}
    (folder / name).write_bytes(b"damaged")

    _, found = repair_lab(sample)

    assert found.is_sound
    assert not (folder / name).exists()
    assert [path.read_bytes() for path in sample.glob(f"set-aside/*/sweeps/unfinished/32/{name}")] == [b"damaged"]
    assert {path: path.read_bytes() for path in others} == others


def test_a_sound_lab_is_left_as_it_is(nqm):
    before = {path: path.read_bytes() for path in nqm.rglob("*") if path.is_file()}

    assert repair_lab(nqm)[0] == []
    assert {path: path.read_bytes() for path in nqm.rglob("*") if path.is_file() and path.name != "lock"} == {
        path: content for path, content in before.items() if path.name != "lock"
    }


@pytest.mark.parametrize("format_", [1, 2])
def test_repair_brings_a_lab_of_an_older_format_up_to_date_without_loss(tmp_path, format_):
    lab = Path(shutil.copytree(SAMPLES / f"format-{format_}", tmp_path / "lab"))
    before = rows(lab)

    done, found = repair_lab(lab, deep=True)

    assert done == [f"{lab}: brought from format {format_} to {FORMAT}"]
    assert (found.is_sound, found.format) == (True, FORMAT)
    assert len(before) == 2 and rows(lab) == before
    assert repair_lab(lab)[0] == []


def test_a_lab_of_a_newer_batchlab_is_not_repaired(nqm):
    (nqm / "lab.json").write_text('{"format": 99}')

    with pytest.raises(LabError, match="written by a newer batchlab"):
        repair_lab(nqm)
    assert (nqm / "lab.json").read_text() == '{"format": 99}'
    assert not (nqm / "set-aside").exists()


def test_a_damaged_lab_in_a_folder_called_newer_was_taken_for_one_of_a_newer_batchlab(nqm):
    lab = nqm.rename(nqm.with_name("newer"))
    (lab / "lab.json").write_text("damaged")

    _, found = repair_lab(lab)

    assert found.is_sound
    assert Lab.open(lab).sweep_names() == ["nqm"]


def test_why_something_was_set_aside_is_written_beside_it(nqm):
    (nqm / STUDY / "measurements.parquet").write_bytes(b"nothing")
    repair_lab(nqm)

    (why,) = nqm.glob("set-aside/*/why.json")
    assert f'"path": "{STUDY}/measurements.parquet"' in why.read_text()


def test_an_imported_sweep_whose_import_json_is_gone_is_named_and_listed_again(copy, curves):
    """It was taken for an import that had been stopped, and nothing told of it."""
    lab = copy("imported")
    name = Lab.open(lab).sweep_names()[0]
    expected, path = curves(lab, name), lab / "sweeps" / name / "import.json"
    path.unlink()

    assert [finding.path for finding in verify_lab(lab).findings] == [path]
    done, found = repair_lab(lab)

    assert found.is_sound
    assert done == [f"{path}: written again from its studies; where they came from is lost"]
    assert curves(lab, name) == expected


def test_a_link_to_itself_for_trials_json_costs_a_study_that_grows_beside_it_nothing(copy, curves):
    lab = copy("growing")
    expected, path = curves(lab, "quad"), lab / "sweeps" / "quad" / "4" / "trials.json"
    growing = contents(lab / "sweeps" / "quad" / "growing")
    path.unlink()
    path.symlink_to(path.name)

    done, found = repair_lab(lab)

    assert found.is_sound
    assert f"{path}: written again from measurements.parquet; only it knew times and machines" in done
    assert curves(lab, "quad") == expected
    assert contents(lab / "sweeps" / "quad" / "growing") == growing


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_lies_in_the_place_of_the_lock_is_found_and_set_aside(kind, nqm, tmp_path):
    lock = nqm / "lock"
    lock.unlink(missing_ok=True)
    make = {
        "link": lambda: lock.symlink_to(tmp_path / "elsewhere"),
        "folder": lock.mkdir,
        "pipe": lambda: os.mkfifo(lock),
    }
    make[kind]()

    with pytest.raises(LabError, match=r"lock is .*batchlab verify"), hold_lock(lock):
        pass
    assert [finding.path for finding in verify_lab(nqm).findings] == [lock]
    _, found = repair_lab(nqm)

    assert found.is_sound
    assert lock.is_file() and not (tmp_path / "elsewhere").exists()
    assert [name for place in (nqm / "set-aside").iterdir() for name in os.listdir(place) if name == "lock"] == ["lock"]
