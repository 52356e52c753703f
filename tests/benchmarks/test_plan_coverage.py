"""What is called a 95 % interval of a step time or of a plan: on a tenth of what benchmarks/plan_coverage.py draws."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def plan_coverage():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        import plan_coverage as module

        yield module


@pytest.mark.parametrize("number", range(6))
def test_intervals_of_step_times_cover(plan_coverage, number):
    (row,) = plan_coverage.measure_throughput(200, plan_coverage.MACHINES[number : number + 1])

    for name in ("t0", "tau", "measured", "between", "beyond"):
        assert row[name] >= 0.9, row


@pytest.mark.parametrize("number", range(4))
def test_intervals_of_plans_cover(plan_coverage, number):
    workloads, machines = plan_coverage.WORKLOADS[number : number + 1], plan_coverage.MACHINES[3:4]

    (row,) = plan_coverage.measure_plans(200, workloads, machines)

    for name in ("tuned", "between", "beyond", "fastest"):
        assert row[name] >= 0.9, row
