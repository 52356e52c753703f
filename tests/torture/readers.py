"""Readers beside a writer: every answer is that of before or of after, and nothing is taken for damage."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from tests.torture.case import Case, Cases
from tests.torture.kills import (
    SCENARIOS,
    Scenario,
    check_completed,
    check_readers,
    end_session,
    facts_of,
    start_copy,
)
from tests.torture.stock import Sample

KIND = "readers"


def cases(stock: Sequence[Sample], seed: int, numbers: range | None = None) -> Cases:
    """Yield cases without an end, or those of some numbers: every command that writes, by turns."""
    by_name = {sample.name: sample for sample in stock}
    for number in numbers if numbers is not None else count():
        yield _case(SCENARIOS[number % len(SCENARIOS)], by_name, number)


def _case(scenario: Scenario, stock: dict[str, Sample], number: int) -> Case:
    facts = facts_of(stock)[scenario.name]
    return Case(
        KIND, number, f"readers beside {scenario.name}", lambda place: list(_judge(scenario, stock, facts, place))
    )


def _judge(scenario: Scenario, stock: dict[str, Sample], facts: dict[str, Any], place: Path) -> Iterator[str]:
    """Read without a pause while a command writes, then look at what it wrote."""
    scenario.prepare(place, stock)
    problems: dict[str, None] = {}
    process = start_copy(scenario.arguments, place)
    try:
        while process.poll() is None:
            problems |= dict.fromkeys(check_readers(scenario, place / "lab", facts))
    finally:
        end_session(process)
    yield from problems
    yield from check_completed(scenario, place, facts)
    shutil.rmtree(place / "cache", ignore_errors=True)
