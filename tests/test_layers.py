"""Imports point one way: CONTRIBUTING.md, "Layers". Each test names all edges that are wrong, with their files."""

from __future__ import annotations

import ast
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "batchlab"

# Each room and the rooms it may import, itself aside.
ALLOWED = {
    "errors": set(),
    "processes": set(),
    "locked_folders": {"errors"},
    "files": {"errors", "processes", "locked_folders"},
    "pool": {"errors", "processes", "locked_folders"},
    "tidying": {"errors", "locked_folders", "files"},
    "core": {"errors"},
    "data": {"errors", "files", "pool", "processes", "core"},
    "models": {"errors", "core"},
    "optim": {"errors", "core"},
    "engine": {"errors", "core", "data", "models", "optim"},
    "loops": {"errors", "files", "tidying", "processes", "core", "engine"},
    "published": {"core"},
    "store": {"errors", "locked_folders", "files", "tidying", "pool", "processes", "core", "published"},
    "catalogue": {"errors", "core", "published"},
    "link": {"errors", "core"},
    "analysis": {"errors", "core"},
    "plots": {"errors", "files", "core", "published", "analysis"},
    "report": {"errors", "files", "core", "published", "store", "analysis", "plots"},
    "search": {"errors", "core"},
    "spec": {"errors", "files", "core", "data", "optim", "engine", "loops", "search", "catalogue"},
    "verify": {"errors", "files", "tidying", "core", "published", "search", "store"},
    "run": {
        *("errors", "locked_folders", "files", "tidying", "processes", "core", "data", "optim", "engine", "loops"),
        *("search", "spec", "store", "report", "link"),
    },
    "plan": {
        *("errors", "core", "data", "published", "search", "engine", "store", "analysis", "run"),
        "link",
    },
    "own": {"errors", "processes", "core", "data", "optim", "engine", "loops", "spec"},
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


def edges() -> Iterator[tuple[str, str]]:
    """Yield every file, as a path in the package, and each room that it imports; its own aside."""
    known = set(ALLOWED) | ANYTHING
    for path in modules():
        rooms = {name.split(".")[1] for name in imports(path) if name.startswith("batchlab.")}
        yield from ((str(path.relative_to(SOURCE)), room) for room in sorted(rooms & known - {room_of(path)}))


def test_every_room_has_its_place():
    assert {room_of(path) for path in modules()} <= set(ALLOWED) | ANYTHING


def test_imports_point_one_way():
    wrong = [
        f"{file} -> {room}"
        for file, room in edges()
        if room not in ALLOWED.get(room_of(SOURCE / file), {room}) or (room == "cli" and file != "__main__.py")
    ]

    assert not wrong, "\n".join(wrong)


def test_no_edge_is_allowed_that_nobody_needs():
    needed = {(room_of(SOURCE / file), room) for file, room in edges()}
    idle = [f"{room} -> {other}" for room in ALLOWED for other in sorted(ALLOWED[room]) if (room, other) not in needed]

    assert not idle, "\n".join(idle)


def test_frameworks_stay_in_their_rooms():
    wrong = [
        f"{path.relative_to(SOURCE)} -> {package}"
        for path in modules()
        for package in sorted({name.split(".")[0] for name in imports(path)})
        if not may_import(path, package)
    ]

    assert not wrong, "\n".join(wrong)


def may_import(path: Path, package: str) -> bool:
    return {
        "torch": room_of(path) in TORCH,
        "matplotlib": room_of(path) in MATPLOTLIB,
        "torchvision": False,
        "pickle": path.name == "restricted_pickle.py",
    }.get(package, True)


def test_rooms_do_not_import_each_other_in_circles():
    """The allowed edges, followed from any room, never come back to it."""

    def reachable(room: str) -> set[str]:
        return ALLOWED[room].union(*(reachable(other) for other in ALLOWED[room]))

    for room in ALLOWED:
        assert room not in reachable(room)


TORCHLESS = [
    "batchlab",
    "batchlab.analysis",
    "batchlab.catalogue.reference",
    "batchlab.cli",
    "batchlab.data.registry",
    "batchlab.engine.quadratic",
    "batchlab.engine.torch_trainer",
    "batchlab.models.registry",
    "batchlab.optim.registry",
    "batchlab.report.lab_plan",
    "batchlab.plan.scaling",
    "batchlab.plots",
    "batchlab.report",
    "batchlab.run.run_sweep",
    "batchlab.spec.load",
    "batchlab.store.lab",
]

IMPORTER = """
import importlib, sys
for module in sys.argv[1:]:
    before = set(sys.modules)
    importlib.import_module(module)
    for loaded in sorted({"torch", "sklearn", "pandas"} & set(sys.modules) - before):
        print(module, "->", loaded)
import batchlab
batchlab.load_sweep("digits"), batchlab.Trainer
if "torch" in sys.modules:
    print("load_sweep -> torch")
"""


def test_importing_and_reading_a_spec_imports_no_torch():
    """One fresh process for all: what was imported is asked for, not guessed from the text.

    What none of them has loaded by the end, none loads alone either.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCE.parent), *filter(None, sys.path)])}
    command = [sys.executable, "-c", IMPORTER, *TORCHLESS]

    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)

    assert done.stdout == ""
