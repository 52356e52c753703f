"""Spec files that are none: each refused unread or in one line."""

from __future__ import annotations

import os
import time

import pytest

from batchlab.errors import SpecError
from batchlab.spec.load import load_sweep

CONTENTS = {
    "a byte order mark": (b'\xef\xbb\xbfname = "x"', "it begins with a byte order mark"),
    "a NUL byte": (b'name = "\x00"', "not valid TOML: Illegal character '\\x00'"),
    "no UTF-8": (b'name = "\xff"', "it is no UTF-8 text (byte 8)"),
    "10,000 brackets": (b"x = " + b"[" * 10_000, "nested more than 32 deep"),
    "brackets that the parser takes": (b"x = " + b"[" * 100 + b"]" * 100, "nested more than 32 deep"),
    "a key of 60,000 parts": (b".".join([b"a"] * 60_000) + b" = 1", "a key has more than 32 parts"),
    "a number of 5,000 digits": (b"seed = " + b"9" * 5000, "a number has more than 4,300 digits"),
    "a hexadecimal one": (b'extends = "nqm"\nseed = 0x' + b"f" * 5000, "`seed` = a number of more than 4,300 digits"),
    "an absurd name": (b'extends = "nqm"\nname = "' + b"x" * 100_000 + b'"', "... (100,002 characters)"),
    "a control character in a key": (b'"\\u001b[31m" = 1', 'Unknown key "\\x1b[31m"'),
    "text without quotes": (
        b'name = "x"\n[workload]\nmodel = fc_128  # small',
        'Invalid value (at line 3, column 9): text needs quotes, model = "fc_128".',
    ),
    "no value at all": (b"[workload]\nmodel =", "not valid TOML: Invalid value (at end of document)."),
    "a list of base studies": (b"extends = [1, 2]", 'Unknown study "[1, 2]"'),
}


@pytest.mark.parametrize("case", CONTENTS)
def test_a_file_that_is_no_spec_is_refused_in_one_line(tmp_path, case):
    content, words = CONTENTS[case]
    path = tmp_path / "spec.toml"
    path.write_bytes(content)
    began = time.process_time()

    with pytest.raises(SpecError) as caught:
        load_sweep(str(path))

    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1_000
    assert time.process_time() - began < 20


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "spec.toml")

    with pytest.raises(SpecError, match="it is no regular file"):
        load_sweep(str(tmp_path / "spec.toml"))


def test_a_device_is_not_read():
    with pytest.raises(SpecError, match="Could not read /dev/zero: it is no regular file"):
        load_sweep("/dev/zero")


def test_gigabytes_are_not_read(tmp_path):
    with (tmp_path / "spec.toml").open("wb") as file:
        file.truncate(5 << 30)

    with pytest.raises(SpecError, match="it has 5,368,709,120 bytes, more than 262,144"):
        load_sweep(str(tmp_path / "spec.toml"))


def test_a_spec_whose_workload_is_none_may_get_one_by_a_setting(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text('name = "x"\nworkload = 5\n[sweep]\nbatch_sizes = [4]\ntrials = 1\nmax_steps = 3\n'
                    'goal = "val/risk < 1"\n[search_space]\nlearning_rate = {values = [0.1]}\n')  # fmt: skip
    workload = "workload={dataset='nqm', model='quadratic', optimizer='sgd', alias='a/b/c'}"

    assert load_sweep(str(path), [workload]).workload.name == "a/b/c"
