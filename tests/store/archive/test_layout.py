"""Paths and JSON of an archive: each value is of its kind or rejected, and no message is endless."""

from __future__ import annotations

import json

import pytest

from batchlab.core.space import SearchSpace
from batchlab.store.archive.layout import (
    Member,
    RejectedError,
    StudyPath,
    is_workload,
    parameter_configs,
    parse_path,
    read_metadata,
    read_study,
)

PATH = StudyPath("mnist/fc/sgd", 64)
STUDY = {"batch_size": 64, "early_stopping": False, "parameter_configs": {}, "train_steps": 10}
TRIAL = {"parameters": {"learning_rate": 0.1}, "status": "COMPLETE", "steps": 10, "trial_id": 1}
RANGE = {"type": "DOUBLE", "min_value": 0.1, "max_value": 1.0, "scale": "LOG_SCALE"}


def reason(read, content: bytes | str, *details: object) -> str:
    """Why it is rejected; nothing else may be raised, and the reason is one line of bounded length."""
    with pytest.raises(RejectedError) as error:
        read(content.encode() if isinstance(content, str) else content, *details)
    assert len(str(error.value)) < 400
    assert str(error.value).isprintable()
    return str(error.value)


def test_a_path_is_what_it_says():
    assert parse_path(["batch_science", "mnist", "fc", "sgd", "064", "study.json"]) == Member(PATH, "study")
    assert parse_path(["mnist", "fc", "sgd", "64", "7", "measurements.csv"]) == Member(PATH, "measurements", 7)
    assert [parse_path(path.split("/")) for path in ("README", "fc/sgd/64/study.json", "mnist/fc/sgd/64/7/x")] == [
        None
    ] * 3


@pytest.mark.parametrize("batch_size", ["two", "-1", "1.5", "٣", "9" * 5000, str(2**63), ""])
def test_a_folder_that_is_no_number_is_rejected(batch_size):
    with pytest.raises(RejectedError, match="is no batch size"):
        parse_path(["mnist", "fc", "sgd", batch_size, "study.json"])


@pytest.mark.parametrize(
    "workload",
    [
        "../fc/sgd",
        "mnist/../sgd",
        "/fc/sgd",
        "mnist//sgd",
        "mnist/fc",
        "mnist\\x/fc/sgd",
        ".mnist/fc/sgd",
        "-mnist/fc/sgd",
        "mn\nist/fc/sgd",
        "mn\x1b[31mist/fc/sgd",
        "mn\udcffist/fc/sgd",
        "mn\u202eist/fc/sgd",
        f"{'a' * 10_000}/fc/sgd",
    ],
)
def test_a_name_that_leads_elsewhere_is_no_workload(workload):
    assert not is_workload(workload)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "",
        "null",
        "[]",
        "7",
        '"text"',
        "[" * 10_000 + "]" * 10_000,
        '{"a":' * 10_000 + "1" + "}" * 10_000,
        f'{{"batch_size": {"9" * 5000}}}',
        b"\xff\xfe\xfd",
        b'{"a": "\xff"}',
        b'{"a": "\xed\xa0\x80"}',
        json.dumps({**STUDY, **TRIAL, "_batchlab": {"environment": {"a": "\ud800"}}}),
        json.dumps({**STUDY, **TRIAL, "parameters": {"\ud800": 1}, "parameter_configs": {"\ud800": RANGE}}),
        "{}",
    ],
)
def test_what_is_no_json_of_its_kind_is_rejected(content):
    reason(read_study, content, PATH)
    reason(read_metadata, content, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_size": 63},
        {"batch_size": True},
        {"batch_size": "64"},
        {"batch_size": None},
        {"batch_size": float("nan")},
        {"train_steps": -1},
        {"train_steps": 10.5},
        {"train_steps": "10"},
        {"train_steps": 2**63},
        {"train_steps": float("inf")},
        {"train_steps": [10]},
        {"early_stopping": "no"},
        {"early_stopping": 0},
        {"parameter_configs": []},
        {"parameter_configs": None},
        {"parameter_configs": {"a": None}},
        {"parameter_configs": {"a": []}},
        {"parameter_configs": {"a": {}}},
        {"parameter_configs": {"a": {**RANGE, "type": {}}}},
        {"parameter_configs": {"a": {**RANGE, "scale": []}}},
        {"parameter_configs": {"a": {**RANGE, "min_value": "0.1"}}},
        {"parameter_configs": {"a": {**RANGE, "min_value": True}}},
        {"parameter_configs": {"a": {**RANGE, "min_value": float("nan")}}},
        {"parameter_configs": {"a": {**RANGE, "max_value": float("inf")}}},
        {"parameter_configs": {"a": {**RANGE, "max_value": 10**400}}},
        {"parameter_configs": {"a": {**RANGE, "min_value": 5}}},
        {"parameter_configs": {"a": {"type": "DISCRETE", "feasible_points": []}}},
        {"parameter_configs": {"a": {"type": "DISCRETE", "feasible_points": ["x"]}}},
        {"parameter_configs": {"a": {"type": "DISCRETE", "feasible_points": 7}}},
        {"parameter_configs": {f"a{i}": RANGE for i in range(1001)}},
        {"early_stopping": "x" * 100_000},
        {"_batchlab": None},
        {"_batchlab": [1]},
        {"_batchlab": "x"},
    ],
)
def test_a_study_with_a_value_of_the_wrong_kind_is_rejected(changes):
    reason(read_study, json.dumps({**STUDY, **changes}), PATH)


def test_a_batch_size_of_0_is_rejected():
    assert "batch size of 0" in reason(read_study, json.dumps({**STUDY, "batch_size": 0}), StudyPath("mnist/fc/sgd", 0))


@pytest.mark.parametrize(
    "changes",
    [
        {"trial_id": True},
        {"trial_id": 2},
        {"trial_id": "1"},
        {"steps": -1},
        {"steps": None},
        {"steps": 2**63},
        {"steps": float("nan")},
        {"status": "DONE"},
        {"status": []},
        {"status": None},
        {"parameters": []},
        {"parameters": None},
        {"parameters": {"a": None}},
        {"parameters": {"a": True}},
        {"parameters": {"a": "0.1"}},
        {"parameters": {"a": float("nan")}},
        {"parameters": {"a": float("inf")}},
        {"parameters": {"a": 10**400}},
        {"parameters": {"a": [1]}},
        {"parameters": {f"a{i}": 1 for i in range(1001)}},
        {"_batchlab": None},
        {"_batchlab": [1]},
        {"_batchlab": {"colour": "red"}},
        {"_batchlab": {"round": True}},
        {"_batchlab": {"wall_seconds": "long"}},
    ],
)
def test_a_trial_with_a_value_of_the_wrong_kind_is_rejected(changes):
    reason(read_metadata, json.dumps({**TRIAL, **changes}), 1)


def test_characters_may_be_escaped_and_the_file_begin_with_a_mark():
    content = b"\xef\xbb\xbf" + json.dumps({**TRIAL, "parameters": {"\u00e9\U0001f600": 1}}).encode()

    assert list(read_metadata(content, 1).metaparameters) == ["\u00e9\U0001f600"]


def test_whole_numbers_may_be_written_as_floats():
    study, extra = read_study(json.dumps({**STUDY, "train_steps": 10.0}).encode(), PATH)

    assert (study.train_steps, extra) == (10, None)
    assert read_metadata(json.dumps({**TRIAL, "steps": 10.0}).encode(), 1).last_step == 10


def test_a_range_in_a_unit_is_exported_as_its_metaparameter():
    space = SearchSpace.model_validate(
        {
            "learning_rate": {"min": 1, "max": 100, "scale": "log", "unit": "linear_rule"},
            "momentum": {"min": 64, "max": 6400, "scale": "log", "unit": "half_life_examples"},
        }
    ).read_at(64)

    configs = parameter_configs(space)

    assert (configs["learning_rate"]["min_value"], configs["learning_rate"]["max_value"]) == (0.25, 25)
    assert configs["learning_rate"]["scale"] == "LOG_SCALE"
    assert (configs["momentum"]["min_value"], configs["momentum"]["max_value"]) == (0.5, pytest.approx(0.5**0.01))
    assert configs["momentum"]["scale"] == "REVERSE_LOG_SCALE"
