"""Numbers with their intervals in words."""

from __future__ import annotations

from batchlab.analysis import Expected, Interval
from batchlab.report.words.interval import spell_time


def test_times_have_the_unit_that_suits_them():
    times = [Expected(value) for value in (0.0123, 1.5, 130, 9000, 200_000)]

    assert [spell_time(time) for time in times] == ["12.3 ms", "1.5 s", "2.17 min", "2.5 h", "2.31 days"]


def test_an_interval_is_in_the_unit_of_its_value():
    assert spell_time(Expected(600, Interval(300, 1200))) == "10 min (95 % interval 5 to 20)"
