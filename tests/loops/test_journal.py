"""What is kept of a loop's trial: every report, and nothing that is not of it."""

from __future__ import annotations

import math

import pytest

from batchlab.loops.base import checkpoint_folder
from batchlab.loops.journal import Journal
from batchlab.loops.report import Report

REPORTS = [Report(5, {"val/loss": 0.3}, 40), Report(9, {"val/loss": math.inf, "a": 0.1}, 90)]


@pytest.fixture
def written(make_study, tmp_path):
    journal = Journal(tmp_path / "place", make_study(), 3)
    journal.begin([])
    for report in REPORTS:
        journal.add(report)
    return tmp_path / "place" / "reports.jsonl"


def test_what_was_written_down_is_read_again(written, make_study):
    journal = Journal(written.parent, make_study(), 3)

    assert journal.reports() == REPORTS
    assert journal.seconds > 0


def test_a_line_that_a_kill_has_cut_is_left_out(written, make_study):
    written.write_bytes(written.read_bytes()[:-9])

    assert Journal(written.parent, make_study(), 3).reports() == REPORTS[:1]


@pytest.mark.parametrize("damage", ["gone", "other trial", "other study", "garbage", "list", "step"])
def test_what_is_damaged_or_of_another_is_nothing_to_go_on_from(written, make_study, damage):
    text, trial_id = written.read_text(), 4 if damage == "other trial" else 3
    study = make_study("true {seed} {batch_size} {learning_rate}") if damage == "other study" else make_study()
    changed = {"garbage": f"%{text}", "list": text.replace('{"step": 5', '[{"step": 5'), "step": text.replace("5", "x")}
    written.write_text(changed.get(damage, text))
    if damage == "gone":
        written.unlink()

    assert Journal(written.parent, study, trial_id).reports() is None


def test_a_trial_that_begins_anew_finds_an_empty_folder_and_one_that_goes_on_its_checkpoint(written, make_study):
    kept = checkpoint_folder(written.parent) / "weights"
    kept.write_text("w")
    journal = Journal(written.parent, make_study(), 3)

    journal.begin(REPORTS)
    assert kept.read_text() == "w" and journal.reports() == REPORTS
    journal.begin([])
    assert not kept.exists() and journal.reports() == []


def test_in_the_end_only_what_was_printed_is_left(written, make_study):
    journal = Journal(written.parent, make_study(), 3)
    (written.parent / "output.txt").write_text("hello")

    journal.close()

    assert [path.name for path in written.parent.iterdir()] == ["output.txt"]
