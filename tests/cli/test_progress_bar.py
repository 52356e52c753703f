"""How far a long reading is."""

from __future__ import annotations

import io
import sys

import pytest

from batchlab.cli import progress_bar as progress_bar_module
from batchlab.cli.progress_bar import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_elsewhere_than_on_a_terminal_it_is_a_line_now_and_then(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 10.5])
    monkeypatch.setattr(progress_bar_module.time, "perf_counter", lambda: next(clock))
    with progress_bar("verifying") as report:
        for share in (0.1, 0.5, 0.6):
            report(share)

    assert capsys.readouterr().err == "verifying: 50 % done, about 10 s left\n"


def test_on_a_terminal_it_is_a_bar_that_goes_away(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("importing") as report:
        report(0.25)

    assert "importing" in terminal.getvalue()
    assert "25 %" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")


def test_a_bar_is_taken_away_after_an_error(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with pytest.raises(KeyError), progress_bar("importing"):
        raise KeyError

    assert terminal.getvalue().endswith("\x1b[2K")
