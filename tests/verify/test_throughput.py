"""Step times are looked at, set aside and accepted like every file of a lab."""

from __future__ import annotations

import pytest

from batchlab.errors import InputError
from batchlab.store.lab import Lab
from batchlab.store.throughput import MeasuredSteps, ThroughputRecord, read_throughput, save_throughput
from batchlab.verify.accept import accept_edit
from batchlab.verify.lab import verify_lab
from batchlab.verify.repair import repair_lab


@pytest.fixture
def two_lab(copy):
    return copy("two")


@pytest.fixture
def timed(two_lab):
    record = ThroughputRecord(
        workload="nqm/quadratic/sgd",
        spec={},
        engine={},
        device="cpu",
        machine={},
        measured_at="2026-01-01T00:00:00+00:00",
        times=(MeasuredSteps(batch_size=1, seconds=(0.1,)), MeasuredSteps(batch_size=2, seconds=(0.2,))),
    )
    return save_throughput(two_lab, record)


def test_a_sound_one_is_counted(two_lab, timed):
    before = verify_lab(two_lab)

    assert before.is_sound
    assert before.foreign == []
    timed.unlink()
    assert verify_lab(two_lab).num_files == before.num_files - 1


def test_a_damaged_one_is_found_and_set_aside(two_lab, timed):
    timed.write_bytes(timed.read_bytes()[:50])

    (finding,) = verify_lab(two_lab).findings
    done, found = repair_lab(two_lab)

    assert finding.path == timed
    assert "scaling" in finding.follows
    assert found.is_sound
    assert not timed.exists()
    assert any(str(timed) in line for line in done)
    assert list((two_lab / "set-aside").rglob(timed.name))


def test_an_edit_of_ones_own_can_be_accepted(two_lab, timed):
    timed.write_bytes(timed.read_bytes().replace(b"0.2", b"0.3"))

    accept_edit(Lab.open(two_lab), timed)

    assert read_throughput(timed).times[1].seconds == (0.3,)
    assert verify_lab(two_lab).is_sound


def test_an_edit_that_makes_another_workload_of_it_is_refused(two_lab, timed):
    timed.write_bytes(timed.read_bytes().replace(b"quadratic", b"qubic"))

    with pytest.raises(InputError, match="its name should be"):
        accept_edit(Lab.open(two_lab), timed)


def test_other_files_beside_are_foreign_and_a_link_is_set_aside(two_lab, timed, tmp_path):
    (timed.parent / "notes.txt").write_text("mine")
    assert verify_lab(two_lab).foreign == [timed.parent / "notes.txt"]

    elsewhere = tmp_path / "elsewhere"
    timed.parent.rename(elsewhere)
    timed.parent.symlink_to(elsewhere)
    assert not verify_lab(two_lab).is_sound
    _, found = repair_lab(two_lab)
    assert found.is_sound
    assert (elsewhere / timed.name).exists()
