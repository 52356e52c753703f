"""Networks: a study that has grown equals one that was begun at that size, bit for bit where packs do not round."""

from __future__ import annotations

import numpy as np
import pytest

from batchlab.run.merge.labs import merge_labs
from batchlab.run.run_sweep import run_sweep
from batchlab.spec.load import load_sweep
from batchlab.store.lab import Lab

FEW = "sweep.confirm={seeds = 1, points = 1}"
DIGITS = [
    FEW,
    "sweep.batch_sizes=[2,16,128,1024]",
    "sweep.max_steps=2000",
    "engine.pack_size=8",
    "sweep.race_factor=1.2",
]
WILD = ["search_space.learning_rate={min = 1e-2, max = 1e3, scale = 'log'}"]
FC = [
    FEW,
    *("sweep.batch_sizes=[32,64,128,512]", "sweep.trials=8", "sweep.max_steps=300", "engine.pack_size=2"),
    *("sweep.goal='val/classification_error < 0.1'", "sweep.race_factor=1.2", *WILD),
]
CONFIRM = "sweep.confirm={seeds = 2, points = 1}"


def run(name, settings, lab, data=None, **options):
    run_sweep(load_sweep(name, settings), lab, data_dir=data, num_workers=2, **options)
    return lab


def stored(lab, name):
    """Return what is stored of a sweep, but for trained steps and times."""
    store, found = Lab.open(lab), {}
    for result in store.results(store.sweep(name)).results:
        confirmation = result.confirmation
        found[result.batch_size] = {
            "end": result.end_step,
            "trials": [trial.model_dump(exclude={"wall_seconds"}) for trial in result.trials],
            "rows": (result.measurements.trial_id.tolist(), result.measurements.step.tolist()),
            "metrics": {metric: values.tolist() for metric, values in result.measurements.metrics.items()},
            "replicates": [each.goal_step for each in confirmation.replicates] if confirmation else None,
        }
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("small", "large"),
    [
        pytest.param(["sweep.trials=8"], ["sweep.trials=32"], id="trials"),
        pytest.param(["sweep.trials=8"], ["sweep.trials=8", "sweep.race_factor=1.5"], id="race factor"),
        pytest.param(
            ["sweep.trials=8"],
            ["sweep.trials=8", "sweep.batch_sizes=[2,4,16,32,128,256,512,1024]"],
            id="batch sizes",
        ),
        pytest.param(["sweep.trials=8"], ["sweep.trials=12", "sweep.max_steps=3000", CONFIRM], id="everything"),
    ],
)
@pytest.mark.parametrize("wild", [[], WILD], ids=["tame", "diverging"])
def test_digits_grow_as_if_begun_at_that_size(tmp_path, small, large, wild):
    grown = run("digits", [*DIGITS, *small, *wild], tmp_path / "grown")
    run("digits", [*DIGITS, *large, *wild], grown)
    fresh = run("digits", [*DIGITS, *large, *wild], tmp_path / "fresh")

    assert stored(grown, "digits") == stored(fresh, "digits")


@pytest.mark.slow
@pytest.mark.parametrize(
    "more",
    [["sweep.trials=32"], ["sweep.race_factor=1.5"], ["sweep.batch_sizes=[16,32,48,64,96,128,256,512]"]],
    ids=["trials", "race factor", "batch sizes"],
)
def test_mnist_grows_as_if_begun_at_that_size(tmp_path, shared_data, more):
    grown = run("mnist-fc", FC, tmp_path / "grown", shared_data)
    run("mnist-fc", [*FC, *more], grown, shared_data)
    fresh = run("mnist-fc", [*FC, *more], tmp_path / "fresh", shared_data)

    result = stored(grown, "mnist-fc")
    assert any(trial["status"] == "INFEASIBLE" for study in result.values() for trial in study["trials"])
    assert result == stored(fresh, "mnist-fc")


@pytest.mark.slow
def test_the_simple_cnn_grows_to_rounding(tmp_path, shared_data):
    settings = [
        FEW,
        *("sweep.batch_sizes=[64]", "sweep.max_steps=30", "engine.pack_size=2", "sweep.evaluate={every = 10}"),
        *("sweep.goal='val/classification_error < 0.5'", "search_space.learning_rate={min = 1e-3, max = 0.05}"),
        "search_space.momentum={values = [0.9]}",
    ]
    grown = run("mnist-cnn", [*settings, "sweep.trials=2"], tmp_path / "grown", shared_data)
    run("mnist-cnn", [*settings, "sweep.trials=5"], grown, shared_data)
    fresh = run("mnist-cnn", [*settings, "sweep.trials=5"], tmp_path / "fresh", shared_data)

    one, other = stored(grown, "mnist-cnn")[64], stored(fresh, "mnist-cnn")[64]
    assert one["rows"] == other["rows"]
    for metric, values in other["metrics"].items():
        np.testing.assert_allclose(one["metrics"][metric], values, rtol=1e-3, atol=2e-3)


@pytest.mark.slow
def test_two_labs_merged_equal_one_lab(tmp_path):
    settings = [*DIGITS, *WILD, "sweep.trials=16"]
    one = run("digits", settings, tmp_path / "one", only=range(8))
    other = run("digits", settings, tmp_path / "other", only=range(8, 16))
    merge_labs([one, other], tmp_path / "both")
    run("digits", settings, tmp_path / "both")
    alone = run("digits", settings, tmp_path / "alone")

    assert stored(tmp_path / "both", "digits") == stored(alone, "digits")
