"""A little of every kind of torture with each run of the tests, more of it with the slow ones.

`scripts/torture` runs thousands; docs/reliability.md tells what is promised.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from unittest import mock

import pytest

from tests.torture import changes, kinds, stock
from tests.torture.asking import ask
from tests.torture.case import Case
from tests.torture.kills import make_facts
from tests.torture.one_process import run_case
from tests.torture.snapshot import differences, snapshot
from tests.torture.table import Outcome, table

SHORT = {"damage": 50, "exchange": 40, "kills": 20, "readers": 10, "archives": 40, "data files": 40, "specs": 50}


@pytest.fixture(scope="session")
def samples(tmp_path_factory):
    """All labs of the stock, made once."""
    folder = tmp_path_factory.mktemp("torture") / "stock"
    made = stock.make_stock(folder)
    make_facts(folder, made)
    return made


def run(kind, samples, number, place):
    """Return what failed of the first cases of a kind, by its number and what was done."""
    failed = {}
    for case in kinds.KINDS[kind](samples, 0, range(number)):
        if problems := run_case(case, place / str(case.number)):
            failed[f"{case.number}: {case.what}"] = problems
    return failed


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(kinds.KINDS))
def test_torture_finds_nothing(samples, tmp_path, kind):
    assert run(kind, samples, SHORT[kind], tmp_path) == {}


@pytest.mark.slow
def test_a_few_damages_of_an_imported_lab_are_all_named(tmp_path):
    sample = stock.make_stock(tmp_path / "stock", ["imported"])

    assert run("damage", sample, 12, tmp_path / "damage") == {}
    assert run("exchange", sample, 8, tmp_path / "exchange") == {}


def test_hostile_data_files_are_refused_in_a_line(tmp_path):
    assert run("data files", [], 8, tmp_path) == {}


def test_every_kind_has_a_share_of_the_cases():
    assert kinds.KINDS.keys() == kinds.SHARES.keys() == SHORT.keys()
    assert sum(kinds.SHARES.values()) == 100
    assert kinds.shared_out(10_000, list(kinds.KINDS))["kills"] == 1000


def test_the_same_seed_and_number_is_the_same_change():
    content = json.dumps({"learning_rate": 0.125, "trials": [1, 2, 3], "status": "COMPLETE"}).encode()
    for change in (*changes.BYTES, *changes.EDITS):
        assert change(content, random.Random(3)) == change(content, random.Random(3))


@pytest.mark.parametrize("change", changes.EDITS)
def test_an_edit_leaves_good_json_that_is_another(change):
    content = json.dumps({"learning_rate": 0.125, "trials": [1, 2, 3], "status": "COMPLETE"}, indent=1).encode()

    edited = change(content, random.Random(1))

    json.loads(edited)
    assert edited != content


def test_a_snapshot_sees_what_changed_appeared_and_went(tmp_path):
    for name in ("changes", "goes", "lock"):
        (tmp_path / name).write_text("before")
    before = snapshot(tmp_path)
    (tmp_path / "changes").write_text("after")
    (tmp_path / "lock").write_text("another process")
    (tmp_path / "goes").unlink()
    (tmp_path / "comes").symlink_to("nowhere")

    assert differences(before, snapshot(tmp_path)) == ["changes: changed", "comes: appeared", "goes: is gone"]


def test_a_case_that_fails_is_kept_and_one_that_does_not_leaves_nothing(tmp_path):
    def fail(place: Path) -> list[str]:
        (place / "evidence").touch()
        return ["something is wrong"]

    bad, good = Case("damage", 1, "what was done", fail), Case("damage", 2, "nothing", lambda place: [])

    assert run_case(bad, tmp_path / "bad") == ["something is wrong"]
    assert run_case(good, tmp_path / "good") == []
    assert (tmp_path / "bad" / "evidence").exists() and not (tmp_path / "good").exists()
    assert (tmp_path / "bad" / "problems.txt").read_text() == "what was done\nsomething is wrong\n"


def test_a_case_that_raises_has_failed(tmp_path):
    def fail(place: Path) -> list[str]:
        raise ValueError("a bug of the torture itself")

    (problem,) = run_case(Case("damage", 1, "", fail), tmp_path / "bad")

    assert "a bug of the torture itself" in problem


def test_the_table_counts(capsys):
    outcomes = [Outcome("kills", number, "", ("lost",) if number == 3 else (), 2.0) for number in range(5)]

    last = table(outcomes, 10).splitlines()[-1]

    assert last == "1 of 5 cases failed, in 10 seconds."


def test_an_error_that_nobody_wrote_a_sentence_for_is_a_failure(tmp_path):
    with mock.patch("batchlab.store.lab.Lab.open", side_effect=ZeroDivisionError):
        assert ask("status", "--lab", tmp_path).code is None
    assert ask("status", "--lab", tmp_path).code == 2
