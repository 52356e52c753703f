"""A hand-made archive of three studies, small enough to answer by hand."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from batchlab.core.sweep import Sweep
from batchlab.run.run_sweep import run_sweep
from batchlab.store.archive.exporter import export_lab
from batchlab.store.archive.importer import import_archive
from batchlab.store.lab import Lab

HEADER = "step,train/cross_entropy_error,val/classification_error"


def write_study(root: Path, workload: str, batch_size: int, train_steps: int = 100, **changes: object) -> Path:
    """Write study.json as the published archive has it."""
    folder = root / workload / str(batch_size)
    folder.mkdir(parents=True, exist_ok=True)
    dataset, model, optimizer = workload.rsplit("/", 2)
    study = {
        "batch_size": batch_size,
        "dataset": dataset.rsplit("/", 1)[-1],
        "early_stopping": False,
        "model": model,
        "optimizer": optimizer,
        "parameter_configs": {
            "label_smoothing": {"feasible_points": [0.0, 0.01, 0.1], "type": "DISCRETE"},
            "learning_rate": {"max_value": 10.0, "min_value": 0.0001, "scale": "LOG_SCALE", "type": "DOUBLE"},
            "learning_rate_decay_steps": {"max_value": 100, "min_value": 50, "scale": "", "type": "INTEGER"},
            "momentum": {"max_value": 0.9999, "min_value": 0.9, "scale": "REVERSE_LOG_SCALE", "type": "DOUBLE"},
        },
        "train_steps": train_steps,
        **changes,
    }
    (folder / "study.json").write_text(json.dumps(study, indent=2))
    return folder


def write_trial(
    study: Path, trial_id: int, rows: list[tuple[float, ...]], status: str = "COMPLETE", **parameters: float
) -> Path:
    """Write one trial: its rows are (step, train loss, validation error)."""
    folder = study / str(trial_id)
    folder.mkdir()
    metadata = {
        "_internal_study_name": "secret",
        "_internal_trial_id": 1000 + trial_id,
        "parameters": {"learning_rate": 0.1, "momentum": 0.95, **parameters},
        "status": status,
        "steps": int(rows[-1][0]) if rows else 0,
        "trial_id": trial_id,
    }
    (folder / "metadata.json").write_text(json.dumps(metadata, indent=2))
    lines = [HEADER, *(",".join(str(value) for value in row) for row in rows)]
    (folder / "measurements.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def tree(tmp_path) -> Path:
    """Three studies with every awkward case.

    B = 2: trials 3 and 10 both meet 0.3 at step 20 (a tie; 3 wins although "10" sorts before it as text); trial 4 has
    a NaN row; trial 5 diverged after it had met the goal at step 10. B = 4: trial 1 meets the goal at step 0.
    B = 8: never met, train_steps 0, no label smoothing.
    """
    root = tmp_path / "batch_science"
    two = write_study(root, "mnist/simple_cnn_base/sgd", 2)
    write_trial(two, 3, [(0, 2.3, 0.9), (10, 1.0, 0.3), (20, 0.8, 0.29), (100, 0.1, 0.05)], label_smoothing=0.1)
    write_trial(two, 10, [(0, 2.3, 0.9), (20, 0.8, 0.1), (100, 0.1, 0.04)], label_smoothing=0.0)
    write_trial(two, 4, [(0, 2.3, 0.9), (15, float("nan"), float("nan")), (100, 0.5, 0.35)])
    write_trial(two, 5, [(0, 2.3, 0.9), (10, 0.5, 0.1), (30, float("nan"), float("nan"))], status="INFEASIBLE")
    four = write_study(root, "mnist/simple_cnn_base/sgd", 4)
    write_trial(four, 1, [(0, 0.4, 0.2), (100, 0.1, 0.25)])
    write_trial(four, 2, [(0, 2.3, 0.9), (50, 0.4, 0.2)], status="INCOMPLETE")
    eight = write_study(root, "mnist_subsets/mnist_6875/simple_cnn_base/sgd", 8, train_steps=0)
    write_trial(eight, 1, [(0, 2.3, 0.9), (40, 2.0, 0.8)])
    write_trial(eight, 2, [(0, 2.3, 0.9), (60, 2.0, 0.7)])
    return root


SMALL = {
    "name": "small",
    "workload": {"dataset": "nqm", "model": "quadratic", "optimizer": "sgd"},
    "sweep": {
        "batch_sizes": [1, 16],
        "trials": 3,
        "max_steps": 50,
        "goal": "val/risk <= 1.5",
        "evaluate": {"every": 5},
    },
    "search_space": {"learning_rate": {"min": 0.1, "max": 1.5, "scale": "log"}},
}


@pytest.fixture(scope="session")
def small_spec() -> dict:
    """The spec of a sweep that is run in a moment."""
    return SMALL


@pytest.fixture(scope="session")
def run_lab(tmp_path_factory) -> Path:
    """A lab in which the sweep `small` was run. Do not write to it."""
    folder = tmp_path_factory.mktemp("run") / "lab"
    run_sweep(Sweep.parse(SMALL, "spec"), folder, num_workers=1)
    return folder


@pytest.fixture
def exported(run_lab, tmp_path) -> Path:
    """The export of the sweep that was run."""
    list(export_lab(Lab.open(run_lab), tmp_path / "exported"))
    return tmp_path / "exported"


@pytest.fixture
def bring():
    """Return a function that imports an archive in this process."""

    def run(source: Path, lab: Path, **options):
        return import_archive(source, lab, processes=1, **options)

    return run


@pytest.fixture
def pack():
    """Return a function that puts a tree into a tar file, its members in the given order."""

    def run(tree: Path, path: Path, mode: str = "w", order=None) -> Path:
        members = order or sorted(file for file in tree.rglob("*") if file.is_file())
        with tarfile.open(path, mode) as archive:
            for member in members:
                archive.add(member, member.relative_to(tree.parent))
        return path

    return run


@pytest.fixture
def all_files():
    """Return a function that gives the bytes of every file below a folder, by its path; a lock tells nothing."""

    def run(folder: Path) -> dict[str, bytes]:
        paths = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}

    return run
