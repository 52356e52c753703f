"""Imports point one way: design.md, "The way data flows". A wrong edge is named, with its file."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "batchlab"

# Each room and the rooms it may import, itself aside.
#   errors <- held <- files <- core <- data, models, optim <- engine <- spec <- run <- cli
#                      core <- published <- catalogue <-------- spec <- run <- cli
#                      core <- published <- store <-------------------- run <- cli
#                      core <- search <------------------------ spec <- run <- cli
#                      core <- search, store <- verify <------------------- cli
#                      core <- analysis, published <- plots <- report <---- cli
#                      core <- optim <- engine <- own <------------------- cli
#                      core <- engine <- own, report <- doctor <----------- cli
#                      core <- engine <- loops <- spec <- run; loops <- own
#                      core <- published <- store <- report (it only reads) <- run (what it returns shows itself)
#                      core <- link <- run, plan
#                      run, report <- plan <- cli
ALLOWED = {
    "errors": set(),
    "processes": set(),
    "held": {"errors"},
    "files": {"errors", "processes", "held"},
    "pool": {"errors", "processes", "held"},
    "folders": {"errors", "held", "files"},
    "core": {"errors", "files"},
    "data": {"errors", "files", "pool", "processes", "core"},
    "models": {"errors", "files", "core"},
    "optim": {"errors", "files", "core"},
    "engine": {"errors", "files", "core", "data", "models", "optim"},
    "loops": {"errors", "files", "folders", "processes", "core", "engine"},
    "published": {"errors", "core"},
    "store": {"errors", "held", "files", "folders", "pool", "processes", "core", "published"},
    "catalogue": {"errors", "core", "published"},
    "link": {"errors", "core"},
    "analysis": {"errors", "files", "core"},
    "plots": {"errors", "files", "core", "published", "analysis"},
    "report": {"errors", "files", "core", "published", "store", "analysis", "plots"},
    "search": {"errors", "core"},
    "spec": {"errors", "files", "core", "data", "models", "optim", "engine", "loops", "search", "catalogue"},
    "verify": {"errors", "files", "folders", "core", "published", "search", "store"},
    "run": {
        *("errors", "held", "files", "folders", "processes", "core", "data", "optim", "engine", "loops", "search"),
        *("spec", "store", "report", "link"),
    },
    "plan": {
        *("errors", "files", "core", "data", "published", "search", "engine", "store", "analysis", "report", "run"),
        "link",
    },
    "own": {"errors", "files", "processes", "core", "data", "optim", "engine", "loops", "spec"},
    "doctor": {"errors", "engine", "own", "report"},
}
ANYTHING = {"cli", "registration", "__init__", "__main__"}  # the front doors
TORCH = {"data", "models", "optim", "engine", "own", "doctor"}
MATPLOTLIB = {"plots"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def parsed(path: Path) -> ast.Module:
    """Parse without collecting garbage meanwhile: Python 3.11 fails if what is collected has something parsed too."""
    gc.disable()
    try:
        return ast.parse(path.read_text("utf-8"))
    finally:
        gc.enable()


def imports(path: Path) -> Iterator[str]:
    """Yield every module that a file names in an import, wherever in the file it stands."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import; write it out"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_rooms(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports(path) if name.startswith("batchlab.")}


def test_every_room_has_its_place():
    assert {room_of(path) for path in modules()} <= set(ALLOWED) | ANYTHING


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    room = room_of(path)
    rooms = imported_rooms(path) & (set(ALLOWED) | ANYTHING)

    if room not in ANYTHING:
        assert rooms <= ALLOWED[room] | {room}
    if room != "__main__":
        assert "cli" not in rooms - {room}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_frameworks_stay_in_their_rooms(path):
    packages = {name.split(".")[0] for name in imports(path)}

    assert "torch" not in packages or room_of(path) in TORCH
    assert "matplotlib" not in packages or room_of(path) in MATPLOTLIB
    assert "torchvision" not in packages
    assert "pickle" not in packages or path.name == "restricted_pickle.py"


def test_rooms_do_not_import_each_other_in_circles():
    """The allowed edges, followed from any room, never come back to it."""

    def reachable(room: str) -> set[str]:
        return ALLOWED[room].union(*(reachable(other) for other in ALLOWED[room]))

    for room in ALLOWED:
        assert room not in reachable(room)


@pytest.mark.parametrize(
    "module",
    [
        "batchlab",
        "batchlab.analysis",
        "batchlab.catalogue.reference",
        "batchlab.cli",
        "batchlab.data.registry",
        "batchlab.engine.quadratic",
        "batchlab.engine.torch_trainer",
        "batchlab.models.registry",
        "batchlab.optim.registry",
        "batchlab.plan.lab_plan",
        "batchlab.plan.scaling",
        "batchlab.plots",
        "batchlab.report",
        "batchlab.run.runner",
        "batchlab.spec.load",
        "batchlab.store.lab",
    ],
)
def test_importing_imports_no_torch(module):
    """In a fresh process: what was imported is asked for, not guessed from the text."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE.parent), *filter(None, sys.path)])}
    code = f"import sys, {module}; print(*sorted({{'torch', 'sklearn', 'pandas'}} & set(sys.modules)))"

    loaded = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)

    assert loaded.stdout.strip() == ""


def test_reading_a_spec_imports_no_torch():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE.parent), *filter(None, sys.path)])}
    code = "import sys, batchlab; batchlab.load_sweep('digits'); batchlab.Trainer; print('torch' in sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)

    assert loaded.stdout.strip() == "False"
