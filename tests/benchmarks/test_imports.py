"""Benchmarks and scripts are run rarely: what they import from batchlab must be there all the same."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted(path for folder in ("benchmarks", "scripts", "examples") for path in (ROOT / folder).rglob("*.py"))


def imported(program: Path) -> Iterator[tuple[str, str]]:
    """Yield the modules of batchlab that a program imports from, each with a name."""
    for node in ast.walk(ast.parse(program.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "batchlab":
            yield from ((node.module, name.name) for name in node.names)


def is_there(module: str, name: str) -> bool:
    """Return whether a name can be imported from a module."""
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.import_module(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_what_a_program_imports_is_there(program):
    assert [] == [each for each in imported(program) if not is_there(*each)]


def test_a_name_that_is_not_there_is_found():
    assert not is_there("batchlab.report.answers", "no_such_name")
    assert not is_there("batchlab.no_such_module", "name")
