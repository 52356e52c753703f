"""What `batchlab merge` says that it did."""

from __future__ import annotations

from pathlib import Path

from batchlab.cli.merge import merge
from batchlab.run.merge import labs
from batchlab.run.merge.sweep import MergedSweep


def test_each_thing_that_was_done_or_left_out_is_said(monkeypatch, capsys):
    done = [
        MergedSweep("a", (1, 1024), (16,), (64,), ("batch size 256 of one: it is confirmed with 1 seed",)),
        MergedSweep("b", (), ()),
    ]
    monkeypatch.setattr(labs, "merge_labs", lambda sources, into: done)

    merge([Path("one")], Path("both"))

    assert capsys.readouterr().out.splitlines() == [
        "a: batch size 1, 1,024 copied; batch size 64 confirmed by replicates that were copied; "
        "batch size 16 joined, still to be closed by `run`",
        "a: left out batch size 256 of one: it is confirmed with 1 seed",
        "b: nothing new",
    ]
