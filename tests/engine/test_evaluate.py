"""Metrics on a split against a loop over the examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from batchlab.engine import evaluate as evaluate_module
from batchlab.engine.base import Point
from batchlab.engine.evaluate import evaluate
from batchlab.engine.forward import Forward, make_forward
from batchlab.engine.objectives import OBJECTIVES, cross_entropies
from batchlab.engine.parameters import ParameterMatrix
from batchlab.engine.problem import Problem
from batchlab.engine.source import Split
from batchlab.models.fully_connected import FullyConnected
from batchlab.optim.layout import Layout


class Fixed(Forward):
    """Logits for example i of trial k that are what the test says, whatever the parameters."""

    def __init__(self, logits):
        self.values = torch.tensor(logits, dtype=torch.float32)
        layout = Layout(("any",), ((1,),))
        super().__init__(torch.nn.Identity(), ParameterMatrix(torch.zeros(len(self.values), 1), layout))

    def logits(self, inputs, masks=None):
        assert masks is None
        assert not self.network.training
        rows = inputs[0, :, 0].long()
        return self.values[:, rows]

    def keep(self, rows):
        raise NotImplementedError


def evaluate_fixed(logits, labels):
    num_examples = np.shape(logits)[1]
    inputs = torch.arange(num_examples, dtype=torch.float32)[:, None]
    split = Split(inputs, torch.tensor(labels))
    return evaluate(make_problem(split), Fixed(logits), split)


def make_problem(split, num_classes=3):
    return Problem(
        torch.nn.Identity,
        OBJECTIVES["classification"],
        num_classes,
        train=split,
        evaluated={},
        device=torch.device("cpu"),
    )


def test_metrics_equal_a_loop_over_the_examples():
    """Two trials, three examples, by hand: -log of the softmax at the label, and the share of wrong answers."""
    logits = [[[0.0, 1.0], [2.0, 0.0], [0.0, 0.5]], [[3.0, 1.0], [0.0, 1.0], [1.0, 0.0]]]
    labels = [1, 1, 0]
    entropies = [
        [-math.log(math.exp(row[label]) / sum(map(math.exp, row))) for row, label in zip(trial, labels, strict=True)]
        for trial in logits
    ]

    metrics = evaluate_fixed(logits, labels)

    assert metrics["cross_entropy_error"].dtype == np.float64
    np.testing.assert_allclose(metrics["cross_entropy_error"], np.mean(entropies, axis=1), rtol=1e-6)
    np.testing.assert_allclose(metrics["classification_error"], [2 / 3, 1 / 3])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_an_answer_that_is_no_number_is_wrong(bad):
    """Where argmax alone would point at the label: NaN and infinity count as the largest."""
    logits = [[[bad, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
    labels = [1 if bad == -math.inf else 0, 1]

    metrics = evaluate_fixed(logits, labels)

    assert metrics["classification_error"].tolist() == [0.5, 0.0 if bad != -math.inf else 0.5]
    assert np.isfinite(metrics["cross_entropy_error"][1])


def test_all_answers_not_numbers_is_an_error_of_one():
    metrics = evaluate_fixed(np.full((1, 4, 3), math.nan).tolist(), [0, 1, 2, 0])

    assert metrics["classification_error"].tolist() == [1.0]
    assert np.isnan(metrics["cross_entropy_error"]).all()


@pytest.mark.parametrize("chunk", [1, 7, 40, 512])
def test_metrics_do_not_depend_on_the_chunks(monkeypatch, chunk):
    """Forty examples, in one pass or in several with a ragged last one."""
    random, networks = np.random.default_rng(0), [FullyConnected([5], (1, 2, 2), 3) for _ in range(2)]
    for network in networks:
        network.start(random)
    forward = make_forward(networks)
    split = Split(
        torch.from_numpy(random.random((40, 1, 2, 2), np.float32)), torch.from_numpy(random.integers(0, 3, 40))
    )
    problem = make_problem(split)
    expected = evaluate(problem, forward, split)

    monkeypatch.setattr(evaluate_module, "CHUNK_EXAMPLES", chunk)
    metrics = evaluate(problem, forward, split)

    np.testing.assert_allclose(metrics["cross_entropy_error"], expected["cross_entropy_error"], rtol=1e-6)
    assert np.array_equal(metrics["classification_error"], expected["classification_error"])


def test_images_are_evaluated_in_chunks_of_so_many_pixels(monkeypatch):
    seen = []

    class Watched(Fixed):
        def logits(self, inputs, masks=None):
            seen.append(inputs.shape[1])
            return super().logits(inputs[..., 0, 0], masks)

    inputs = torch.arange(10.0)[:, None, None, None].expand(10, 1, 4, 5)
    split = Split(inputs, torch.zeros(10, dtype=torch.int64))
    monkeypatch.setattr(evaluate_module, "CHUNK_PIXELS", 80)

    evaluate(make_problem(split), Watched(np.zeros((1, 10, 3))), split)

    assert seen == [4, 4, 2]


def test_only_the_rows_of_a_split_are_evaluated():
    logits = [[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]]
    split = Split(torch.arange(4.0)[:, None], torch.tensor([0, 0, 0, 0]), rows=torch.tensor([0, 1, 2]))

    metrics = evaluate(make_problem(split), Fixed(logits), split)

    assert metrics["classification_error"].tolist() == [pytest.approx(1 / 3)]


def test_cross_entropies_belong_to_their_examples():
    logits = torch.tensor([[[0.0, 0.0], [10.0, 0.0]], [[0.0, 10.0], [0.0, 0.0]]])

    losses = cross_entropies(logits, torch.tensor([[0, 0], [0, 1]]))

    torch.testing.assert_close(losses, torch.tensor([[math.log(2), 0.0], [10.0, math.log(2)]]), rtol=1e-4, atol=1e-4)


def test_evaluation_leaves_no_gradient_behind(trainer, make_digits_study):
    program = trainer.program(make_digits_study(), [Point(0, {"learning_rate": 0.1, "momentum": 0.9})])
    program.advance(1)
    before = program.state()

    program.evaluate()

    for name, array in program.state().items():
        assert np.array_equal(array, before[name])
