"""Running averages: one update per batch, in however many pieces it came."""

from __future__ import annotations

import numpy as np
import torch

from batchlab.models.averages import RunningAverages


def rows(*values: float) -> torch.Tensor:
    """Return the statistics [G, 1] of G ghosts of one channel."""
    return torch.tensor(values).unsqueeze(1)


def test_they_start_at_mean_0_and_variance_1():
    averages = RunningAverages({"first": 2, "second": 1})

    assert not averages.is_training
    assert {name: mean.tolist() for name, mean in averages.means.items()} == {"first": [0, 0], "second": [0]}
    assert {name: variance.tolist() for name, variance in averages.variances.items()} == {
        "first": [1, 1],
        "second": [1],
    }


def test_an_update_keeps_nine_tenths_and_takes_one_of_the_mean_over_ghosts():
    averages = RunningAverages({"norm": 1})

    averages.add("norm", rows(1.0, 3.0), rows(4.0, 8.0))
    averages.commit()
    averages.add("norm", rows(10.0), rows(1.0))
    averages.commit()

    # 0.9 * 0 + 0.1 * 2 = 0.2, then 0.9 * 0.2 + 0.1 * 10; 0.9 * 1 + 0.1 * 6 = 1.5, then 0.9 * 1.5 + 0.1 * 1.
    np.testing.assert_allclose(averages.means["norm"], [1.18], rtol=1e-6)
    np.testing.assert_allclose(averages.variances["norm"], [1.45], rtol=1e-6)


def test_pieces_make_the_same_update_as_the_whole_batch():
    """Every ghost weighs the same, so pieces of different sizes do too."""
    whole, pieces = RunningAverages({"norm": 1}), RunningAverages({"norm": 1})

    whole.add("norm", rows(1.0, 2.0, 6.0), rows(1.0, 2.0, 9.0))
    pieces.add("norm", rows(1.0, 2.0), rows(1.0, 2.0))
    pieces.add("norm", rows(6.0), rows(9.0))
    whole.commit()
    pieces.commit()

    np.testing.assert_allclose(whole.means["norm"], [0.3], rtol=1e-6)
    np.testing.assert_allclose(pieces.means["norm"], [0.3], rtol=1e-6)
    np.testing.assert_allclose(pieces.variances["norm"], [0.9 + 0.4], rtol=1e-6)


def test_nothing_changes_before_commit_and_nothing_by_a_second_one():
    averages = RunningAverages({"norm": 1})

    averages.add("norm", rows(5.0), rows(5.0))
    before = averages.means["norm"].item()
    averages.commit()
    averages.commit()

    assert before == 0
    np.testing.assert_allclose(averages.means["norm"], [0.5], rtol=1e-6)


def test_what_is_added_carries_no_gradient():
    averages = RunningAverages({"norm": 1})

    averages.add("norm", rows(5.0).requires_grad_(), rows(5.0).requires_grad_())
    averages.commit()

    assert not averages.means["norm"].requires_grad
    assert not averages.variances["norm"].requires_grad


def test_restore_goes_on_from_state():
    averages, restored = RunningAverages({"a": 1, "b": 2}), RunningAverages({"a": 1, "b": 2})
    averages.add("b", torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    averages.commit()

    state = averages.state()
    restored.restore(state)
    averages.add("a", rows(9.0), rows(9.0))
    averages.commit()

    assert sorted(state) == ["a.mean", "a.variance", "b.mean", "b.variance"]
    np.testing.assert_array_equal(restored.means["b"], averages.means["b"])
    np.testing.assert_array_equal(restored.variances["b"], averages.variances["b"])
    assert state["a.mean"].tolist() == [0]  # a copy, not a view
    assert restored.means["a"].tolist() == [0]
