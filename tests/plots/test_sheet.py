from __future__ import annotations

from batchlab.plots.panel import Axis, Panel, Point, Series
from batchlab.plots.sheet import Sheet


def test_the_table_has_a_row_for_each_mark_and_each_note():
    axis = Axis("", "linear", 0, 1)
    series = Series(
        label="s", kind="measured", workload="w", quantity="q", points=(Point(1, 2, 1, 3, 9), Point(4, None))
    )
    panel = Panel(name="a", title="t", x_axis=axis, y_axis=axis, series=(series,), notes=("something is missing",))
    rows = Sheet(caption="", columns=1, panel_aspect=1, panels=(panel,)).table()
    common = {"panel": "a", "title": "t"}
    of_series = {"series": "s", "kind": "measured", "workload": "w", "quantity": "q", "note": None}

    assert [
        {**common, **of_series, "x": 1, "y": 2, "low": 1, "high": 3, "num_trials": 9},
        {**common, **of_series, "x": 4, "y": None, "low": None, "high": None, "num_trials": None},
        {**dict.fromkeys(rows[0]), **common, "note": "something is missing"},
    ] == rows
