"""What is called a 95 % interval of a share or a lag: on a tenth of what benchmarks/exchange_coverage.py draws."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def exchange_coverage():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        import exchange_coverage as module

        yield module


@pytest.mark.parametrize("number", [3, 6, 7, 10])
def test_intervals_of_what_a_step_waits_for_cover(exchange_coverage, number):
    row = exchange_coverage.cover(exchange_coverage.CASES[number], 200)

    assert row["held"] >= 0.93, row
    assert row["step on 8 workers"] >= 0.9, row
