"""The trainer of networks: which examples it evaluates on, under which names, and on which device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from batchlab.data.base import Dataset, Examples, train_subset
from batchlab.engine.base import Point
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.errors import SpecError

POINTS = [Point(0, {"learning_rate": 0.1, "momentum": 0.9}), Point(1, {"learning_rate": 0.2, "momentum": 0.5})]


def test_every_evaluated_split_has_its_metrics(trainer, make_digits_study):
    study = make_digits_study(every=20, splits=["train", "val", "test"])
    names = (
        *("train/cross_entropy_error", "train/classification_error"),
        *("val/cross_entropy_error", "val/classification_error"),
        *("test/cross_entropy_error", "test/classification_error"),
    )

    metrics = trainer.program(study, POINTS).evaluate()

    assert trainer.metrics(study) == names
    assert tuple(metrics) == names
    assert all(values.shape == (2,) for values in metrics.values())


def test_only_the_validation_set_is_measured_unless_told(trainer, make_digits_study):
    study = make_digits_study()

    assert trainer.metrics(study) == ("val/cross_entropy_error", "val/classification_error")
    assert tuple(trainer.program(study, POINTS).evaluate()) == trainer.metrics(study)


def test_splits_are_what_their_names_say(dataset, make_digits_study):
    """Labels all wrong in one split at a time: only that split's error goes to one."""
    study = make_digits_study(every=20, splits=["train", "val", "test"])

    def errors(**changed):
        splits = {name: getattr(dataset, name) for name in ("train", "val", "test")} | changed
        trainer = TorchTrainer(Dataset(name="digits", num_classes=11, **splits), device="cpu")
        metrics = trainer.program(study, POINTS).evaluate()
        return {name: metrics[f"{name}/classification_error"] for name in splits}

    sound = errors()
    for name in sound:
        examples = getattr(dataset, name)
        never = Examples(examples.inputs, np.full(len(examples), 10))  # a class that no example has
        changed = errors(**{name: never})
        for other in sound:
            assert np.array_equal(changed[other], sound[other]) == (other != name)


def test_train_metrics_come_from_as_many_examples_as_validation_has(dataset, make_digits_study):
    """250 of them, drawn from all, not the first ones: a training set may be sorted by class."""
    study = make_digits_study(every=20, splits=["train"])
    measured = train_subset(len(dataset.train), 250)
    assert measured.max() > 1000
    inputs = np.zeros_like(dataset.train.inputs)
    inputs[measured] = dataset.train.inputs[measured]
    shortened = Dataset(
        name="digits",
        train=Examples(inputs, dataset.train.labels),
        val=dataset.val,
        test=dataset.test,
        num_classes=10,
    )

    first, second = (
        TorchTrainer(data, device="cpu").program(study, POINTS).evaluate() for data in (dataset, shortened)
    )

    for name in first:
        assert np.array_equal(first[name], second[name])


def test_examples_may_be_memory_maps(tmp_path, dataset, make_digits_study):
    path = tmp_path / "inputs.npy"
    np.save(path, dataset.train.inputs)
    mapped = replace(dataset, train=Examples(np.load(path, mmap_mode="r"), dataset.train.labels))
    study = make_digits_study()

    programs = [TorchTrainer(data, device="cpu").program(study, POINTS) for data in (dataset, mapped)]
    for program in programs:
        program.advance(3)

    assert np.array_equal(*(program.state()["parameters"] for program in programs))


def test_float32_means_float32(dataset, make_digits_study, monkeypatch):
    """On a GPU convolutions would be computed in a rougher format where nobody said otherwise."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)

    TorchTrainer(dataset).program(make_digits_study(), POINTS)

    assert not torch.backends.cudnn.allow_tf32


def test_auto_takes_cuda_where_there_is_one(dataset):
    expected = "cuda" if torch.cuda.is_available() else "cpu"

    assert TorchTrainer(dataset).device_name == expected


def test_a_device_that_is_none_is_refused(dataset, make_digits_study):
    with pytest.raises(SpecError, match='engine.device = "abacus" is no device that PyTorch finds here') as caught:
        TorchTrainer(dataset, device="abacus").program(make_digits_study(), POINTS)

    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_device_that_is_absent_is_refused(dataset, make_digits_study):
    with pytest.raises(SpecError, match='engine.device = "cuda" is no device that PyTorch finds here'):
        TorchTrainer(dataset, device="cuda").program(make_digits_study(), POINTS)
