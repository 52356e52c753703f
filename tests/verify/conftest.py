"""Small labs that were really run, copied for each test: one of two sweeps, one that is growing, one imported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batchlab.core.sweep import Sweep
from batchlab.run.run_sweep import run_sweep
from batchlab.store.archive.exporter import export_lab
from batchlab.store.archive.importer import import_archive
from batchlab.store.archive.manifest import NAME as MANIFEST
from batchlab.store.lab import Lab

SAMPLES = Path(__file__).parents[1] / "store" / "labs"
SPEC: dict[str, Any] = {
    "name": "quad",
    "workload": {"dataset": {"name": "nqm", "dimension": 10}, "model": "quadratic", "optimizer": "sgd"},
    "sweep": {
        "batch_sizes": [4, 16],
        "trials": 3,
        "max_steps": 60,
        "goal": "val/risk <= 0.4",
        "evaluate": {"growth": 1.3},
    },
    "search_space": {"learning_rate": {"min": 0.05, "max": 1.5, "scale": "log"}},
    "engine": {"pack_size": 3},
}


def spec(name: str = "quad", **changes: Any) -> Sweep:
    """Return the sweep, with values of its table `sweep` changed."""
    return Sweep.parse({**SPEC, "name": name, "sweep": {**SPEC["sweep"], **changes}}, "spec.toml")


@pytest.fixture(scope="session")
def _labs(tmp_path_factory) -> Path:
    """Make every lab once."""
    folder = tmp_path_factory.mktemp("labs")
    run_sweep(spec(), folder / "two", num_workers=1)
    run_sweep(spec("other", goal="val/risk <= 0.5"), folder / "two", num_workers=1)
    shutil.copytree(folder / "two", folder / "growing")
    run_sweep(spec(trials=5), folder / "growing", num_workers=1, only=range(3, 5))
    shutil.copytree(folder / "two", folder / "grown")
    run_sweep(spec(trials=5), folder / "grown", num_workers=1)
    _import(folder)
    return folder


def _import(folder: Path) -> None:
    run_sweep(spec("published"), folder / "own", num_workers=1)
    for _ in export_lab(Lab.open(folder / "own"), folder / "archive"):
        pass
    for path in (folder / "archive").rglob("*.json"):
        plain = json.loads(path.read_text())
        plain.pop("_batchlab", None)
        path.write_text(json.dumps(plain))
    (folder / "archive" / MANIFEST).unlink()
    import_archive(folder / "archive", folder / "imported", processes=1)


@pytest.fixture
def copy(_labs, tmp_path) -> Callable[[str], Path]:
    """Return a function that copies one of the labs."""

    def make(name: str) -> Path:
        shutil.copytree(_labs / name, tmp_path / name)
        return tmp_path / name

    return make


@pytest.fixture
def make_spec() -> Callable[..., Sweep]:
    return spec


def rows(lab: Path, name: str) -> dict[int, bytes]:
    """Return the curves of every finished study of a sweep."""
    store = Lab.open(lab)
    results = store.results(store.sweep(name))
    assert results.problems == []
    return {result.batch_size: result.measurements.metrics["val/risk"].tobytes() for result in results.results}


@pytest.fixture
def curves() -> Callable[[Path, str], dict[int, bytes]]:
    return rows


@pytest.fixture
def sample(tmp_path) -> Path:
    """The kept sample lab of this format: a sweep that is finished and confirmed, and one in training."""
    return Path(shutil.copytree(SAMPLES / "format-3", tmp_path / "sample"))


@pytest.fixture(scope="session")
def nqm_sweep(make_nqm) -> Sweep:
    return make_nqm({"sweep.max_steps": 60, "sweep.batch_sizes": [1, 16]})


@pytest.fixture(scope="session")
def _nqm(nqm_sweep, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nqm")
    run_sweep(nqm_sweep, folder / "lab", num_workers=1)
    return folder / "lab"


@pytest.fixture
def nqm(_nqm, tmp_path) -> Path:
    """A lab with one finished sweep, that `run` completes in no time."""
    return Path(shutil.copytree(_nqm, tmp_path / "nqm"))
