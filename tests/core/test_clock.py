"""The clock, and that nobody but it makes examples of steps and a batch size."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np

import batchlab
from batchlab.core.clock import Clock, Clocks, constant_examples, constant_steps

SOURCE = Path(batchlab.__file__).parent


def test_clocks_tell_what_is_done_before_each_update():
    clocks = Clocks.of(Clock(10, 100), [8, 8, 16, 32])

    assert clocks.step.tolist() == [10, 11, 12, 13]
    assert clocks.examples.tolist() == [100, 108, 116, 132]


def test_clocks_go_on_where_the_clock_stands():
    clock, sizes = Clock(), [3, 5, 5, 40]
    seen = []
    for size in sizes:
        seen.append((clock.step, clock.examples))
        clock = clock.after(size)

    clocks = Clocks.of(Clock(), sizes)

    assert seen == list(zip(clocks.step.tolist(), clocks.examples.tolist(), strict=True))
    assert clock == Clock(4, 53)


def test_updates_and_examples_of_one_batch_size():
    assert constant_examples(np.array([0, 5]), 64).tolist() == [0, 320]
    assert [constant_steps(examples, 64) for examples in (63, 64, 127.9, 128)] == [0, 1, 1, 2]


def names_in(node: ast.expr) -> set[str]:
    return {
        each.attr if isinstance(each, ast.Attribute) else each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute | ast.Name)
    }


def test_nobody_else_multiplies_steps_by_a_batch_size():
    """All other examples are those of the clock, or of the column in which it was stored."""
    found = {
        f"{path.relative_to(SOURCE)}: {ast.unparse(node)}"
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
        for names in [names_in(node)]
        if "batch_size" in names and any("step" in name for name in names)
    }

    assert found == {"core/clock.py: steps * batch_size"}
