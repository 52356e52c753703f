"""A batch in microbatches: the gradient of the whole, for every family of models."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from batchlab.core.clock import Clock
from batchlab.core.workload import Named
from batchlab.data.base import Dataset, Examples, ImageView
from batchlab.engine import microbatch
from batchlab.engine import program as program_module
from batchlab.engine.base import Point
from batchlab.engine.forward import Packed, Single
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.parameters import ParameterMatrix
from batchlab.engine.problem import Problem
from batchlab.engine.program import TorchProgram
from batchlab.engine.source import Split
from batchlab.engine.torch_trainer import TorchTrainer
from batchlab.errors import BatchlabError
from batchlab.models.base import Network

CLASSES = 5


def images(shape, dtype=np.float32, num_examples=300):
    random = np.random.default_rng(0)
    if dtype == np.uint8:
        return random.integers(0, 256, (num_examples, *shape), np.uint8)
    return random.normal(size=(num_examples, *shape)).astype(np.float32)


def classes(num_examples=300):
    return np.random.default_rng(1).integers(0, CLASSES, num_examples)


def dataset(inputs, labels, **facts):
    examples = Examples(inputs, labels)
    return Dataset("made", examples, examples.at(slice(0, 40)), examples.at(slice(0, 40)), CLASSES, **facts)


def sentences(num_tokens=7, num_examples=300):
    """Return sentences of different lengths."""
    random = np.random.default_rng(0)
    tokens = random.integers(1, CLASSES, (num_examples, num_tokens)).astype(np.int32)
    lengths = random.integers(1, num_tokens + 1, num_examples)
    return np.where(np.arange(num_tokens) < lengths[:, None], tokens, 0).astype(np.int32)


TOKENS = sentences()
MANY = np.random.default_rng(2).integers(0, 2, (300, CLASSES)).astype(np.uint8)
VIEW = ImageView(6, (0.5,) * 3, (0.25,) * 3)
SMALL_RESNET = Named(name="resnet_50", blocks=[1, 1], width=4)
FAMILIES = {
    "fc": (Named(name="fc_8"), dataset(images((1, 4, 4)), classes())),
    "simple_cnn": (Named(name="simple_cnn_narrow", dropout=0.4), dataset(images((1, 4, 4)), classes())),
    "resnet_8": (Named(name="resnet_8", filters=[2, 3, 4]), dataset(images((3, 8, 8)), classes())),
    "resnet_50": (SMALL_RESNET, dataset(images((3, 8, 8)), classes())),
    "resnet_50 with cuts": (SMALL_RESNET, dataset(images((8, 8, 3), np.uint8), classes(), view=VIEW)),
    "resnet_50 with several labels": (SMALL_RESNET, dataset(images((3, 8, 8)), MANY, task="multi_label")),
    "vgg_11": (Named(name="vgg_11", filters=[4] * 8, hidden=6), dataset(images((3, 8, 8)), classes())),
    "transformer": (
        Named(name="transformer_base", layers=1, width=8, feed_forward=8, heads=2),
        dataset(TOKENS, TOKENS, task="language_model"),
    ),
    "lstm": (
        Named(name="lstm", embedding=4, hidden=6, projection=3),
        dataset(TOKENS, TOKENS, task="language_model"),
    ),
}


def make_study(make_digits_study, model, batch_size=256):
    study = make_digits_study(batch_size=batch_size)
    return study.model_copy(update={"workload": study.workload.model_copy(update={"model": model})})


def make_program(data, study, size="auto"):
    return TorchTrainer(data, "cpu", microbatch_size=size).program(
        study, [Point(0, {"learning_rate": 0.0, "momentum": 0.0})]
    )


def in_double_precision(program):
    """Let the program compute in float64, so that what is compared is the sums and not their rounding."""
    forward, train = program._forward, program._problem.train
    is_packed = isinstance(forward, Packed)
    matrix = ParameterMatrix(forward.parameters.values.double(), forward.parameters.layout, is_written=is_packed)
    program._forward = Packed(forward.network, matrix) if is_packed else Single(deepcopy(forward.network), matrix)
    inputs = train.inputs.double() if train.inputs.is_floating_point() else train.inputs
    program._problem = replace(program._problem, train=Split(inputs, train.labels))
    program._batches = program._problem.train.batches(program._study, program.trial_ids.tolist(), program._device)


def first_batch(program):
    return program._batches.ahead(Clock(), [program._study.batch_size])[0]


def first_gradient(data, study, size):
    """Return loss, gradient and running averages of the first batch, computed in microbatches of `size`."""
    program = make_program(data, study, size)
    if program._problem.image_view is None:
        in_double_precision(program)
    losses = program._differentiate(first_batch(program))
    return losses, program._parameters.gradients, program._forward.buffers


@pytest.mark.parametrize("family", FAMILIES)
def test_the_gradient_of_a_batch_is_that_of_its_microbatches(family, make_digits_study):
    """Pieces of 256, 128, 100 (ragged; where there are no ghosts that it would cut) and 32 of a batch of 256."""
    model, data = FAMILIES[family]
    study = make_study(make_digits_study, model)
    loss, gradient, averages = first_gradient(data, study, 256)
    sizes = [128, 32] if "resnet_50" in family else [128, 100, 32]

    for size in sizes:
        its_loss, its_gradient, its_averages = first_gradient(data, study, size)

        assert float((its_gradient - gradient).norm() / gradient.norm()) < 1e-6
        torch.testing.assert_close(its_loss, loss, rtol=1e-6, atol=0)
        for name, values in averages.items():
            np.testing.assert_allclose(its_averages[name], values, rtol=1e-5, atol=1e-6)


def test_auto_takes_the_whole_batch_where_it_fits(make_digits_study):
    model, data = FAMILIES["resnet_8"]

    program = make_program(data, make_study(make_digits_study, model))

    assert program._microbatch_size == 256


@pytest.mark.parametrize(("fits", "expected"), [(255, 128), (128, 128), (127, 64), (40, 32), (3, 32)])
def test_auto_takes_the_largest_power_of_two_that_fits_and_no_less_than_a_ghost(
    fits, expected, make_digits_study, monkeypatch
):
    model, data = FAMILIES["resnet_8"]
    monkeypatch.setattr(microbatch, "microbatch_bytes", lambda device: 1000 * fits)
    monkeypatch.setattr(microbatch, "bytes_per_example", lambda problem, forward: 1000)

    program = make_program(data, make_study(make_digits_study, model))

    assert program._microbatch_size == expected


@pytest.mark.parametrize(
    ("ghost_size", "fits", "expected"), [(32, 0, 32), (48, 3, 48), (48, 200, 192), (100, 250, 200), (256, 40, 256)]
)
def test_auto_keeps_ghosts_whole(ghost_size, fits, expected, make_digits_study, monkeypatch):
    """Also where less than an example, or than a ghost, would keep to the bound."""
    model, data = SMALL_RESNET.model_copy(update={"ghost_size": ghost_size}), FAMILIES["resnet_50"][1]
    monkeypatch.setattr(microbatch, "microbatch_bytes", lambda device: 1000 * fits + 999)
    monkeypatch.setattr(microbatch, "bytes_per_example", lambda problem, forward: 1000)

    program = make_program(data, make_study(make_digits_study, model))

    assert program._microbatch_size == expected


@pytest.mark.parametrize(
    ("size", "ghost_size", "expected"), [(256, 1, 128), (3, 1, 1), (96, 32, 32), (160, 32, 64), (50, 32, 32)]
)
def test_a_microbatch_is_halved_in_whole_ghosts(size, ghost_size, expected):
    assert microbatch.halved(size, ghosts_of(ghost_size)) == expected


@pytest.mark.parametrize(("size", "ghost_size", "fewest"), [(1, 1, "one example"), (32, 32, "a ghost of 32 examples")])
def test_what_cannot_be_halved_is_told(size, ghost_size, fewest):
    with pytest.raises(BatchlabError, match=f"^The device has not enough memory for {fewest}: "):
        microbatch.halved(size, ghosts_of(ghost_size))


def ghosts_of(size):
    """A network of ours that computes so many examples together."""
    network = Network()
    network.ghost_size = size
    return network


def test_batches_of_somebody_elses_module_are_not_cut_without_a_word():
    with pytest.raises(BatchlabError, match="not enough memory for 1,024 examples of BatchNorm1d at once: cut batches"):
        microbatch.halved(1024, nn.BatchNorm1d(4))


def test_what_an_example_keeps_is_measured(make_digits_study):
    """One dense layer: at the least its input (16 values of 4 bytes) is kept, twice; the weights are not counted."""
    model, data = Named(name="fc_8"), FAMILIES["fc"][1]
    program = make_program(data, make_study(make_digits_study, model))

    size = microbatch.bytes_per_example(program._problem, program._forward)

    assert 2 * 16 * 4 <= size <= 20 * 16 * 4


def test_a_device_that_runs_out_of_memory_gets_smaller_microbatches(make_digits_study, monkeypatch):
    """The step is computed again from its start: the gradient is the same."""
    model, data = FAMILIES["resnet_50"]
    study = make_study(make_digits_study, model)
    _, expected, averages = first_gradient(data, study, 64)
    program = make_program(data, study, 256)
    in_double_precision(program)
    loss_sums = program._loss_sums

    def limited(microbatch, *details):
        if microbatch.inputs.shape[1] > 64:
            raise torch.OutOfMemoryError("no room")
        return loss_sums(microbatch, *details)

    monkeypatch.setattr(program, "_loss_sums", limited)
    program._differentiate(first_batch(program))

    assert program._microbatch_size == 64
    torch.testing.assert_close(program._parameters.gradients, expected)
    for name, values in averages.items():
        np.testing.assert_allclose(program._forward.buffers[name], values, rtol=1e-5, atol=1e-7)


class Normalised(nn.Sequential):
    """The user's own batch normalisation notes a microbatch in its forward pass, whatever becomes of it."""

    def __init__(self):
        super().__init__(nn.Flatten(), nn.Linear(16, 4), nn.BatchNorm1d(4), nn.Linear(4, 10))


def test_a_step_that_is_computed_again_counts_once_in_running_averages(make_digits_study, monkeypatch):
    data = FAMILIES["fc"][1]
    split = Split(torch.from_numpy(data.train.inputs), torch.from_numpy(data.train.labels))
    problem = Problem(Normalised, OBJECTIVES["classification"], 10, split, {}, torch.device("cpu"))
    points = [Point(0, {"learning_rate": 0.0, "momentum": 0.0})]
    expected, program = (
        TorchProgram(problem, make_digits_study(batch_size=256), points, microbatch_size=size) for size in (64, 256)
    )
    monkeypatch.setattr(program_module, "may_run_out", lambda device: True)
    loss_sums, computed = program._loss_sums, []

    def limited(microbatch, *details):
        computed.append(loss_sums(microbatch, *details))
        if program._microbatch_size > 64 or len(computed) == 5:  # too large twice, then once in the middle of a step
            raise torch.OutOfMemoryError("no room")
        return computed[-1]

    monkeypatch.setattr(program, "_loss_sums", limited)
    monkeypatch.setattr("batchlab.engine.gang.sharing.halved", lambda size, ghost_size: max(64, size // 2))
    for each in (program, expected):
        each._differentiate(first_batch(each))

    assert program._microbatch_size == 64
    assert program._forward.buffers["2.num_batches_tracked"].tolist() == [4]
    for name, values in expected._forward.buffers.items():
        assert torch.equal(program._forward.buffers[name], values)
    assert torch.equal(program._parameters.gradients, expected._parameters.gradients)


def test_a_single_example_that_does_not_fit_is_told(make_digits_study, monkeypatch):
    model, data = FAMILIES["fc"]
    program = make_program(data, make_study(make_digits_study, model))

    def never(*details):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(program, "_loss_sums", never)

    with pytest.raises(BatchlabError, match="not enough memory for one example"):
        program.advance(1)
