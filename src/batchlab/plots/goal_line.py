"""The goal as a line across a panel whose y axis is its metric."""

from __future__ import annotations

from batchlab.core.goal import Goal
from batchlab.plots.panel import Axis, Point, Series


def goal_line(goal: Goal, x_axis: Axis, workload: str) -> Series:
    """Return the threshold from one end of the x axis to the other."""
    ends = (Point(x_axis.low, goal.threshold), Point(x_axis.high, goal.threshold))
    return Series(label=f"goal: {goal}", kind="goal", workload=workload, quantity=goal.metric, points=ends)
