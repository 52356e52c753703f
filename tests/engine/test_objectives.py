"""Losses and metrics of the tasks against slow loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from batchlab.core.tokens import PADDING
from batchlab.data.base import METRICS
from batchlab.engine.objectives import OBJECTIVES, Classification, count_tokens, smoothed_cross_entropies


def log_softmax(row):
    total = math.log(sum(math.exp(value) for value in row))
    return [value - total for value in row]


def random_logits(*shape):
    return torch.from_numpy(np.random.default_rng(0).normal(size=shape).astype(np.float32))


# Label smoothing


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 0.1])
def test_the_true_class_gets_one_minus_s_and_the_others_share_s(smoothing):
    """The paper's convention: s / (C - 1) for each of the other C - 1 classes."""
    logits, labels = random_logits(1, 5, 4), torch.tensor([[0, 1, 2, 3, 1]])
    expected = []
    for row, label in zip(logits[0].tolist(), labels[0].tolist(), strict=True):
        targets = [1 - smoothing if c == label else smoothing / 3 for c in range(4)]
        expected.append(-sum(t * log for t, log in zip(targets, log_softmax(row), strict=True)))

    losses = smoothed_cross_entropies(logits, labels, torch.tensor([[smoothing]]))

    np.testing.assert_allclose(losses[0].numpy(), expected, rtol=1e-5)


def test_the_convention_is_not_the_mixture_with_all_classes():
    """The two agree where s' = s C / (C - 1)."""
    logits, labels, s, classes = random_logits(1, 6, 10), torch.arange(6)[None], 0.1, 10
    mixture = torch.nn.functional.cross_entropy(
        logits[0], labels[0], label_smoothing=s * classes / (classes - 1), reduction="none"
    )

    losses = smoothed_cross_entropies(logits, labels, torch.tensor([[s]]))

    torch.testing.assert_close(losses[0], mixture)


def test_each_trial_has_its_own_smoothing():
    logits = random_logits(1, 3, 4).expand(2, 3, 4)
    labels = torch.tensor([[0, 1, 2], [0, 1, 2]])

    sums = Classification().smoothed_loss_sums(logits, labels, torch.tensor([[0.0], [0.1]]))

    torch.testing.assert_close(sums[0], OBJECTIVES["classification"].loss_sums(logits, labels)[0])
    assert sums[1] != sums[0]


# Tokens


def test_the_loss_per_token_equals_a_loop_and_counts_no_padding():
    logits = random_logits(1, 3, 4, 6)
    tokens = torch.tensor([[[3, 4, 2, PADDING], [5, 2, PADDING, PADDING], [1, 2, 3, 4]]], dtype=torch.int32)
    expected, count = 0.0, 0
    for sentence, rows in zip(tokens[0].tolist(), logits[0].tolist(), strict=True):
        for token, row in zip(sentence, rows, strict=True):
            if token != PADDING:
                expected -= log_softmax(row)[token]
                count += 1
    objective = OBJECTIVES["language_model"]

    assert count_tokens(tokens).tolist() == [count] == [9]
    np.testing.assert_allclose(objective.loss_sums(logits, tokens).numpy(), [expected], rtol=1e-5)


def test_token_metrics_are_averaged_over_tokens_not_sentences():
    objective, logits = OBJECTIVES["language_model"], random_logits(1, 2, 3, 5)
    tokens = torch.tensor([[1, PADDING, PADDING], [1, 2, 3]], dtype=torch.int32)
    whole, pieces = objective.scores(1), objective.scores(1)

    whole.add(logits, tokens)
    for i in range(2):
        pieces.add(logits[:, i : i + 1], tokens[i : i + 1])

    expected = objective.loss_sums(logits, tokens[None]).item() / 4
    assert whole.metrics()["cross_entropy_error"] == pytest.approx([expected])
    assert pieces.metrics()["cross_entropy_error"] == pytest.approx([expected])


# Several labels


def test_average_precision_equals_that_of_scikit_learn_with_ties():
    labels = torch.tensor([[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 1, 0]], dtype=torch.uint8)
    logits = torch.tensor([[[0.5, 0.5, 0.5], [0.1, 0.5, 0.9], [0.9, 0.1, 0.1], [0.5, 0.1, 0.9]]])
    scores = OBJECTIVES["multi_label"].scores(1)

    for i in range(4):
        scores.add(logits[:, i : i + 1], labels[i : i + 1])

    expected = average_precision_score(labels.numpy(), logits[0].numpy(), average="micro")
    assert scores.metrics()["average_precision"] == pytest.approx([expected])


def test_average_precision_of_many_scores_in_chunks_equals_that_of_scikit_learn():
    """Scores of few different values, so that positives and negatives tie everywhere, and two trials."""
    random = np.random.default_rng(0)
    labels = torch.from_numpy((random.random((500, 20)) < 0.05).astype(np.uint8))
    logits = torch.from_numpy(random.integers(-50, 50, (2, 500, 20)).astype(np.float32) / 8) + 0.5 * labels
    scores = OBJECTIVES["multi_label"].scores(2)

    for start in range(0, 500, 90):
        scores.add(logits[:, start : start + 90], labels[start : start + 90])

    expected = [average_precision_score(labels.numpy(), trial.numpy(), average="micro") for trial in logits]
    np.testing.assert_allclose(scores.metrics()["average_precision"], expected, rtol=1e-12)


def test_precision_without_anything_positive_is_no_number():
    scores = OBJECTIVES["multi_label"].scores(1)
    scores.add(torch.zeros(1, 2, 2), torch.zeros(2, 2, dtype=torch.uint8))

    assert np.isnan(scores.metrics()["average_precision"]).all()


def test_the_loss_of_several_labels_is_the_mean_over_classes_of_a_yes_or_no():
    logits, labels = torch.tensor([[[0.0, 2.0], [-1.0, 0.0]]]), torch.tensor([[[1, 0], [0, 1]]], dtype=torch.uint8)
    yes = lambda x: -math.log(1 / (1 + math.exp(-x)))  # noqa: E731
    expected = (yes(0.0) + yes(-2.0)) / 2 + (yes(1.0) + yes(0.0)) / 2

    sums = OBJECTIVES["multi_label"].loss_sums(logits, labels)

    assert sums.tolist() == pytest.approx([expected])


def test_precision_of_what_is_no_number_is_no_number():
    scores = OBJECTIVES["multi_label"].scores(1)
    scores.add(torch.full((1, 2, 2), float("nan")), torch.ones(2, 2, dtype=torch.uint8))

    assert np.isnan(scores.metrics()["average_precision"]).all()


@pytest.mark.parametrize(
    ("task", "shape", "labels"),
    [
        ("classification", (2, 3, 4), torch.zeros(3, dtype=torch.int64)),
        ("multi_label", (2, 3, 4), torch.ones(3, 4, dtype=torch.uint8)),
        ("language_model", (2, 3, 5, 4), torch.ones(3, 5, dtype=torch.int32)),
    ],
)
def test_the_metrics_are_those_that_the_task_names(task, shape, labels):
    scores = OBJECTIVES[task].scores(2)
    scores.add(torch.zeros(shape), labels)

    assert tuple(scores.metrics()) == METRICS[task]
    assert all(values.shape == (2,) for values in scores.metrics().values())
