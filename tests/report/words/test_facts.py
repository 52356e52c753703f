"""Terms of nested data."""

from __future__ import annotations

from batchlab.report.words.facts import facts_of


def test_nested_values_are_named_by_their_place():
    assert facts_of({"a": [1, 2], "b": {"c": {"d": "x"}}}) == [("a", "1, 2"), ("b.c.d", "x")]
