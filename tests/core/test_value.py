from __future__ import annotations

from typing import ClassVar

import pytest
from pydantic import ValidationError

from batchlab.core.value import Items, Value
from batchlab.errors import SpecError


class Inner(Value):
    size: int
    weight: float = 1.0


class Outer(Value):
    inner: Inner
    parts: Items[Inner] = ()
    note: str | None = None


def failure(data) -> str:
    with pytest.raises(SpecError) as error:
        Outer.parse(data, "spec.toml")
    return str(error.value)


def test_a_misspelt_key_is_named_before_the_missing_one():
    message = failure({"inner": {"sise": 3}})

    assert message == 'spec.toml: Unknown key "inner.sise". Did you mean "inner.size"? Known: inner.size, inner.weight.'


def test_a_missing_key_is_named_by_its_place():
    assert failure({"inner": {}}) == "spec.toml: `inner.size` is missing."
    assert failure({"inner": {"size": 1}, "parts": [{"size": 1}, {}]}) == "spec.toml: `parts[1].size` is missing."


def test_a_wrong_value_is_shown():
    assert failure({"inner": {"size": "big"}}).startswith("spec.toml: `inner.size` = 'big': give a whole number")


class Said(Value):
    written: ClassVar[str] = "a table, such as {size = 3}"

    size: int


class Saying(Value):
    said: Said | None = None
    several: dict[str, Said] | None = None


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"said": 3}, "`said` = 3: give a table, such as {size = 3}."),
        ({"several": {"one": 3}}, "`several.one` = 3: give a table, such as {size = 3}."),
        ({"several": 3}, "`several` = 3: give a table, such as {name = value}."),
    ],
)
def test_a_value_that_is_no_table_is_told_how_its_place_is_written(data, sentence):
    with pytest.raises(SpecError) as error:
        Saying.parse(data, "spec.toml")

    assert str(error.value) == f"spec.toml: {sentence}"


def test_data_that_is_no_table_at_all_is_shown():
    assert failure([1]).startswith("spec.toml: [1]: give a table")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_are_finite(number):
    assert "`inner.weight`" in failure({"inner": {"size": 1, "weight": number}})


def test_the_message_is_one_line_without_the_error_it_came_from():
    with pytest.raises(SpecError) as error:
        Outer.parse({"inner": {"size": []}, "note": 3}, "spec.toml")

    assert "\n" not in str(error.value)
    assert error.value.__suppress_context__


def test_plain_data_leaves_out_what_is_not_set_and_reads_back():
    value = Outer(inner=Inner(size=2), parts=(Inner(size=3, weight=0.1),))

    assert value.plain() == {"inner": {"size": 2, "weight": 1.0}, "parts": [{"size": 3, "weight": 0.1}]}
    assert Outer.parse(value.plain(), "spec.toml") == value


def test_a_value_is_frozen():
    with pytest.raises(ValidationError, match="frozen"):
        Inner(size=2).size = 3
