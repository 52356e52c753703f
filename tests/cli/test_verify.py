"""batchlab verify: what it prints and how it ends."""

from __future__ import annotations

import json

from batchlab.errors import VERIFY


def test_a_sound_lab_is_one_line(call, small_lab):
    answer = call("verify")

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("lab: 2 studies, 6 files, ")
    assert answer.out.endswith(" bytes: sound.\n")


def test_a_damaged_file_is_named_with_what_follows(call, small_lab):
    path = small_lab / "sweeps" / "small" / "4" / "measurements.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    answer = call("verify")

    assert answer.code == 1
    lines = answer.out.splitlines()
    assert lines[0].startswith("lab/sweeps/small/4/measurements.parquet is damaged: ")
    assert lines[1] == (
        "  What follows: `batchlab verify --repair` sets it aside, and `batchlab run` trains what it held again."
    )
    assert lines[-1].endswith(": 1 not as written.")
    assert VERIFY not in answer.out


def test_repair_says_what_it_did_and_run_completes(call, small_lab, small_spec):
    expected = call("curve", "--json").out
    (small_lab / "sweeps" / "small" / "4" / "measurements.parquet").write_bytes(b"")
    answer = call("verify", "--repair")

    assert answer.code == 0
    assert "lab/sweeps/small/4: `batchlab run` trains it again" in answer.out
    assert call("run", small_spec, "--workers", 1).code == 0
    assert call("curve", "--json").out == expected
    assert call("verify", "--deep").code == 0


def test_json_tells_the_same(call, small_lab):
    (small_lab / "sweeps" / "small" / "4" / "trials.json").write_text("[]")
    data = json.loads(call("verify", "--json").out)

    assert [finding["path"] for finding in data["findings"]] == ["lab/sweeps/small/4/trials.json"]
    assert VERIFY not in data["findings"][0]["problem"]
    assert (data["format"], data["studies"], data["files"], data["done"]) == (4, 2, 6, [])


def test_an_edit_is_accepted_by_the_command_that_the_error_names(call, small_lab):
    path = small_lab / "sweeps" / "small" / "4" / "trials.json"
    path.write_text(json.dumps(json.loads(path.read_text())))
    refusal = call("curve")

    assert refusal.code == 1
    assert "`batchlab verify --accept lab/sweeps/small/4/trials.json`" in refusal.err
    assert call("verify", "--accept", "lab/sweeps/small/4/trials.json").code == 0
    assert call("curve").code == 0


def test_there_is_nothing_to_verify_where_there_is_no_lab(refused):
    assert "There is no lab in lab." in refused("verify")
