"""What our own exports carry comes from outside, too: a record that lies is a wrong answer, and is rejected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batchlab.errors import InputError
from batchlab.store.archive.manifest import NAME
from batchlab.store.lab import Lab

WORKLOAD = "nqm/quadratic/sgd"


@pytest.fixture
def free(exported) -> Path:
    """An export without its manifest: anybody can write one."""
    (exported / NAME).unlink()
    return exported


def change(free: Path, *place: str, to: object, batch_size: int = 16) -> None:
    """Set one value of the study.json of a batch size."""
    path = free / WORKLOAD / str(batch_size) / "study.json"
    data = table = json.loads(path.read_text())
    for name in place[:-1]:
        table = table[name]
    table[place[-1]] = to
    path.write_text(json.dumps(data))


def rejected(bring, free: Path, lab: Path) -> str:
    """Import; return the one reason. The study that is sound came."""
    outcome = bring(free, lab)
    ((place, reason),) = outcome.rejected
    assert place == f"{WORKLOAD}/16"
    results = Lab.open(lab).results(Lab.open(lab).sweep("small"))
    assert ([r.batch_size for r in results.results], results.unfinished, results.problems) == ([1], [16], [])
    return reason


RECORD = ("_batchlab", "record")


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        ((*RECORD, "study", "batch_size"), 1, "is of nqm/quadratic/sgd/1"),
        ((*RECORD, "study", "workload", "dataset"), "digits", "is of digits/quadratic/sgd/16"),
        ((*RECORD, "study", "seed"), 7, "another study than its sweep's"),
        ((*RECORD, "study", "max_steps"), 5000, "another study than its sweep's"),
        ((*RECORD, "counts"), {"COMPLETE": 99, "INFEASIBLE": 0, "INCOMPLETE": 0}, "other numbers of trials"),
        ((*RECORD, "num_measurements"), 3, "rows, not 3"),
        ((*RECORD, "best_steps"), 1, "says that the goal took 1 steps"),
        ((*RECORD, "best_steps"), None, "says that the goal took None steps"),
        ((*RECORD, "end_step"), 5, "says that training ended at step 5"),
        ((*RECORD, "points"), [{"learning_rate": 0.1}] * 15, "other metaparameters than its point"),
        ((*RECORD, "state"), "running", "not that of a finished study"),
        ((*RECORD, "imported"), {}, "study.json"),
        ((*RECORD, "colour"), "red", 'Unknown key "colour"'),
        (RECORD, None, "study.json"),
        (RECORD, [], "study.json"),
        (("_batchlab",), None, "`_batchlab` of study.json is no table"),
        (("_batchlab",), [], "`_batchlab` of study.json is no table"),
        (("_batchlab",), {}, "without its sweep"),
        (("_batchlab", "sweep"), 7, "study.json"),
        (("_batchlab", "sweep", "workload", "dataset"), "digits", "is of a sweep of digits/quadratic/sgd"),
        (("_batchlab", "sweep", "sweep", "batch_sizes"), [1], "has no batch size 16"),
        (("_batchlab", "sweep", "name"), "../../outside", "begin with a letter or digit"),
        (("_batchlab", "sweep", "name"), "hidden.tmp", "no sweep can be called"),
        (("_batchlab", "sweep", "name"), "a/b", "begin with a letter or digit"),
        (("batch_size",), 1, "says batch size 1, its folder 16"),
    ],
)
def test_a_record_that_lies_is_rejected(free, tmp_path, bring, place, value, reason):
    change(free, *place, to=value)

    assert reason in rejected(bring, free, tmp_path / "lab")
    assert not (tmp_path / "outside").exists()


def test_a_changed_row_of_a_run_study_is_rejected(free, tmp_path, bring):
    """Its last row is gone: the trial no longer ends where its record says."""
    path = free / WORKLOAD / "16" / "0" / "measurements.csv"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    assert "is not that of its trials" in rejected(bring, free, tmp_path / "lab")


def test_a_run_study_that_lost_a_trial_is_rejected(free, tmp_path, bring):
    (free / WORKLOAD / "16" / "1" / "metadata.json").write_text("{")

    assert "is not that of its trials" in rejected(bring, free, tmp_path / "lab")


@pytest.mark.parametrize("name", ["other", "growing"])
def test_studies_of_one_workload_must_be_of_one_sweep(free, tmp_path, bring, name):
    """One study that names another sweep would be stored in that one's folder."""
    change(free, "_batchlab", "sweep", "name", to=name)

    with pytest.raises(InputError, match=f"{WORKLOAD}/1 and {WORKLOAD}/16 are of different sweeps"):
        bring(free, tmp_path / "lab")
    assert not (tmp_path / "lab").exists()


def test_an_export_cannot_name_the_sweep_of_another_workload(free, tree, tmp_path, bring):
    (tree / "mnist").rename(free / "mnist")
    for batch_size in (1, 16):
        change(free, "_batchlab", "sweep", "name", to="mnist--simple_cnn_base--sgd", batch_size=batch_size)

    with pytest.raises(InputError, match='two sweeps "mnist--simple_cnn_base--sgd"'):
        bring(free, tmp_path / "lab")
    assert not (tmp_path / "lab").exists()


def test_what_was_imported_can_be_exported_and_verified(exported, tmp_path, bring):
    from batchlab.verify.lab import verify_lab

    bring(exported, tmp_path / "lab")

    found = verify_lab(tmp_path / "lab", deep=True)
    assert (found.findings, found.foreign) == ([], [])
