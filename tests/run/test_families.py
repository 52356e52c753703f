"""Every workload of the paper by its small sibling: a few steps on real data, and the loss falls."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from batchlab.catalogue.paper import paper_names
from batchlab.catalogue.small import small_spec
from batchlab.core.space import Range
from batchlab.core.sweep import Sweep
from batchlab.core.workload import Named
from batchlab.data import registry
from batchlab.engine.base import Point
from batchlab.engine.torch_trainer import TorchTrainer

BATCH_SIZE, NUM_STEPS, NUM_EVALUATED = 32, 25, 256
LINKED = ("mnist", "fashion-mnist", "scene", "tiny-imagenet-subset", "lm1b-sample", "c4-sample")


@pytest.fixture(autouse=True)
def _one_thread(one_thread): ...


@pytest.fixture(scope="session")
def data_dir(shared_data, tmp_path_factory) -> Path:
    """The real datasets as a user would have them; CIFAR-10 is restored from its lossless pictures when asked for."""
    folder = tmp_path_factory.mktemp("data")
    for name in LINKED:
        (folder / name).symlink_to(shared_data / name)
    return folder


@pytest.fixture(scope="session")
def load(data_dir, shared_data, tmp_path_factory):
    """Return a function that loads a dataset once, with few examples to evaluate; its cache is the tests' own."""
    cached = tmp_path_factory.mktemp("cache")

    @cache
    def load_once(dataset: Named):
        if dataset.name == "cifar_10":
            script = shared_data / "cifar-10" / "restore_cifar10.py"
            subprocess.run([sys.executable, str(script), str(data_dir)], check=True, capture_output=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(cached))
            whole = registry.load(dataset, data_dir)
        return replace(whole, val=whole.val.at(slice(0, NUM_EVALUATED)))

    yield load_once
    shutil.rmtree(data_dir)


def lowest(dimension) -> float:
    return dimension.min if isinstance(dimension, Range) else dimension.values[0]


def point(sweep: Sweep) -> Point:
    """Return a careful point: half of the lowest learning rate that is searched, with the usual momentum."""
    searched = {name: lowest(sweep.search_space[name]) for name in sweep.search_space.names}
    searched["learning_rate"] /= 2
    if "momentum" in searched:
        searched["momentum"] = 0.9
    return Point(0, {**sweep.workload.fixed_metaparameters, **searched})


LONG = ("cifar_10/resnet_8/nesterov_momentum", "cifar_10/resnet_8/sgd", "mnist/simple_cnn_wide/sgd")
"""Workloads that take many seconds: CIFAR-10 has to be restored."""


LONG_MODELS = ("resnet_50", "lstm", "transformer_wide")
"""Models that take many seconds, each of which has a smaller relative among the others or tests of its own."""


def cases() -> list[Any]:
    """Return all names; those that take long, and all but the first of each model, as cases for the long tests."""
    found, models = [], set(LONG_MODELS)
    for name in paper_names():
        model = name.split("/")[-2]
        is_short = name not in LONG and model not in models
        models |= {model} if is_short else set()
        found.append(name if is_short else pytest.param(name, marks=pytest.mark.slow))
    return found


@pytest.mark.parametrize("name", cases())
def test_the_loss_of_every_workload_falls(name, load):
    spec = small_spec(name)
    spec["sweep"]["evaluate"] = {"every": NUM_STEPS, "splits": ["train"]}
    sweep = Sweep.parse(spec, name)
    study = sweep.study(sweep.search.batch_sizes[0]).model_copy(update={"batch_size": BATCH_SIZE})
    program = TorchTrainer(load(sweep.workload.dataset), "cpu").program(study, [point(sweep)])
    before = program.evaluate()["train/cross_entropy_error"][0]

    while program.step < NUM_STEPS:
        program.advance(NUM_STEPS)

    assert program.diverged == {}
    assert program.evaluate()["train/cross_entropy_error"][0] < before
