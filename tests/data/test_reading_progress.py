from __future__ import annotations

from batchlab.data.reading_progress import ReadingProgress


def test_a_line_every_ten_seconds_tells_the_time_left(capsys):
    now = 0.0
    making = ReadingProgress("text: reading", 1000, clock=lambda: now)

    for now, expected in [  # noqa: B007 (the clock reads it)
        (9.0, ""),
        (10.0, "text: reading: 20%, about 40 s left (done once, then kept)\n"),
        (19.0, ""),
        (300.0, "text: reading: 40%, about 8 min left (done once, then kept)\n"),
        (7200.0, "text: reading: 50%, about 2.0 h left (done once, then kept)\n"),
    ]:
        making(100)
        assert capsys.readouterr().err == expected
