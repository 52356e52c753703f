"""A lab in which something is not as it was written, asked through the command line: named, and the rest answered."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

STUDY = Path("lab/sweeps/small/4")


def edit(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def digit(value):
    """Return a number with one digit changed."""
    return float(str(value).replace("1", "2", 1) if "1" in str(value) else str(value).replace("3", "4", 1))


def learning_rate(trials):
    table = trials[0]["metaparameters"]
    table["learning_rate"] = digit(table["learning_rate"])


def point(study):
    study["points"][0]["learning_rate"] = digit(study["points"][0]["learning_rate"])


EDITS = {
    "a trial removed": ("trials.json", lambda trials: trials.pop()),
    "ids doubled": ("trials.json", lambda trials: trials[1].update(trial_id=trials[0]["trial_id"])),
    "a digit of a learning rate": ("trials.json", learning_rate),
    "a digit of a point": ("study.json", point),
    "a digit of the goal": ("study.json", lambda study: study["study"].update(goal="val/risk <= 0.4")),
    "a digit of the steps to the goal": ("study.json", lambda study: study.update(best_steps=study["best_steps"] + 1)),
}


@pytest.mark.parametrize("what", EDITS)
def test_a_value_that_was_changed_answered_without_a_word(call, small_lab, what):
    name, change = EDITS[what]
    before = json.loads(call("curve", "--json").out)["rows"]
    edit(STUDY / name, change)

    answer = call("curve", "--json")

    assert answer.code == 1
    assert f"{STUDY / name} was changed after it was written" in answer.err
    rows = json.loads(answer.out)["rows"]
    assert [row["steps"] for row in rows if row["batch_size"] == 64] == [before[1]["steps"]]
    assert 4 not in [row["batch_size"] for row in rows if row["steps"] is not None]


def test_a_changed_digit_of_the_goal_of_a_sweep_is_named(call, small_lab, small_spec):
    assert call("run", small_spec, "--workers", 1, "--set", "name=second").code == 0
    path = Path("lab/sweeps/small/sweep.json")
    edit(path, lambda spec: spec["sweep"].update(goal="val/risk <= 0.4"))

    assert f"{path} was changed after it was written" in call("curve", "small").err
    answer = call("status")
    assert answer.code == 1
    assert str(path) in answer.err and "second" in answer.out


@pytest.mark.parametrize("name", ["study.json", "trials.json", "measurements.parquet", ""])
def test_files_exchanged_between_two_labs_are_named(call, small_lab, small_spec, name):
    """Each is as it was written, for a study of the same name and batch size, of another seed."""
    assert call("run", small_spec, "--workers", 1, "--lab", "other", "--set", "seed=1").code == 0
    theirs = Path("other/sweeps/small/4")
    if name:
        shutil.copy(theirs / name, STUDY / name)
    else:
        shutil.rmtree(STUDY)
        shutil.copytree(theirs, STUDY)

    answer = call("curve", "--json")

    assert answer.code == 1
    assert str(STUDY) in answer.err
    assert [row["batch_size"] for row in json.loads(answer.out)["rows"] if row["steps"] is not None] == [64]


READERS = [
    ("curve",),
    ("report",),
    ("figure", "steps-to-result"),
    ("export", "out"),
    ("verify",),
    ("run", "small.toml", "--workers", "1"),
    ("merge", "lab", "--into", "both"),
]


@pytest.mark.parametrize("name", ["study.json", "trials.json", "measurements.parquet"])
@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
def test_whoever_reads_a_damaged_file_names_it(call, small_lab, small_spec, command, name):
    content = bytearray((STUDY / name).read_bytes())
    content[len(content) // 2] ^= 1
    (STUDY / name).write_bytes(content)

    answer = call(*command)

    assert str(STUDY / name) in answer.out + answer.err
    assert answer.code == 1
    assert (STUDY / name).read_bytes() == content


def test_the_status_names_a_damaged_study_json_which_is_all_that_it_reads(call, small_lab):
    edit(STUDY / "study.json", lambda study: study["counts"].update(COMPLETE=9))

    answer = call("status")

    assert (answer.code, answer.out.splitlines()[1].split()[0]) == (1, "1/2")
    assert str(STUDY / "study.json") in answer.err


DAMAGES = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "a bit flipped": lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
    "gone": None,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["4/study.json", "4/trials.json", "4/measurements.parquet", "sweep.json"])
def test_the_advice_to_remove_and_run_again_is_given_no_more(call, small_lab, small_spec, name, damage):
    path = STUDY.parent / name
    path.write_bytes(DAMAGES[damage](path.read_bytes())) if DAMAGES[damage] else path.unlink()

    said = call("curve").err + call("run", small_spec, "--workers", 1).err

    assert not any(word in said.lower() for word in ("remove", "delete", "run again"))
    assert "`batchlab verify" in said or not said


@pytest.mark.parametrize("name", ["study.json", "trials.json", "measurements.parquet"])
def test_following_the_advice_stores_no_trial_twice_and_ends_in_no_key_error(call, small_lab, small_spec, name):
    expected = call("curve", "--json").out
    (STUDY / name).write_bytes(b"{")

    assert "`batchlab verify" in call("curve").err
    assert call("verify").code == 1
    assert call("verify", "--repair").code == 0
    assert call("run", small_spec, "--workers", 1).code == 0
    assert [trial["trial_id"] for trial in json.loads((STUDY / "trials.json").read_text())] == [0, 1, 2]
    assert call("curve", "--json").out == expected


CONTENTS = {
    "an integer of 5,000 digits": b'{"format": ' + b"9" * 5000 + b', "digest": ' + b"9" * 5000 + b"}",
    "10,000 brackets": b"[" * 10_000 + b"]" * 10_000,
    "no UTF-8": b'{"name": "\xff\xfe"}',
    "null": b"null",
    "a list": b"[1, [2], {}]",
    "an empty table": b"{}",
    "control characters": b'{"name": "\\u001b[31m\\n"}',
}

READERS_OF = {"trials.json": ("curve", "verify"), "rejected.json": ("status", "verify")}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("name", ["lab.json", "sweeps/small/sweep.json", "sweeps/small/4/study.json",
                                  "sweeps/small/4/trials.json", "rejected.json"])  # fmt: skip
def test_whatever_stands_in_a_file_of_a_lab_is_told_without_a_traceback(call, small_lab, name, content):
    (small_lab / name).write_bytes(CONTENTS[content])

    for command in (["curve"], ["status"], ["verify", "--deep"]):
        answer = call(*command)
        if command[0] in READERS_OF.get(Path(name).name, (command[0],)):
            assert answer.code in (1, 2), command
            assert f"lab/{name}" in answer.out + answer.err
        assert "This should not happen" not in answer.err
        assert all(line.isprintable() for line in answer.err.splitlines())
        assert len(answer.err) < 2_000
    assert (small_lab / name).read_bytes() == CONTENTS[content]
