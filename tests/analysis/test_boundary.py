from __future__ import annotations

import pytest

from batchlab.analysis import at_boundary
from batchlab.core.space import Range, SearchSpace, Values
from batchlab.core.trial import Status, Trial

SPACE = SearchSpace(
    {
        "learning_rate": Range(min=1e-3, max=10.0, scale="log"),
        "momentum": Range(min=0.0, max=0.999, scale="reverse_log"),
        "label_smoothing": Values(values=(0.0, 0.1)),
    }
)


def trial(**metaparameters: float) -> Trial:
    return Trial(trial_id=0, status=Status.COMPLETE, metaparameters=metaparameters, last_step=10)


@pytest.mark.parametrize(
    ("learning_rate", "momentum", "expected"),
    [
        (0.1, 0.9, ()),
        (1e-3 * 10 ** (4 * 0.049), 0.9, ("learning_rate",)),  # 4.9 % of four decades from the lower end
        (1e-3 * 10 ** (4 * 0.051), 0.9, ()),
        (10.0, 0.9, ("learning_rate",)),
        (0.1, 0.0, ("momentum",)),
        (0.1, 0.9989, ("momentum",)),
        (0.1, 0.99, ()),  # a third of the way in scaled units, though 0.9 % from the end in plain ones
        (10.0, 0.0, ("learning_rate", "momentum")),
    ],
)
def test_the_outer_twentieth_in_scaled_units_is_the_edge(learning_rate, momentum, expected):
    assert expected == at_boundary(trial(learning_rate=learning_rate, momentum=momentum), SPACE)


def test_a_list_of_values_has_no_edge():
    assert at_boundary(trial(learning_rate=0.1, momentum=0.9, label_smoothing=0.0), SPACE) == ()


def test_a_metaparameter_the_trial_does_not_record_is_passed_over():
    assert at_boundary(trial(momentum=0.9), SPACE) == ()


def test_a_range_of_a_single_value_has_no_edge():
    assert at_boundary(trial(decay=5.0), SearchSpace({"decay": Range(min=5.0, max=5.0)})) == ()


def test_the_margin_can_be_chosen():
    assert at_boundary(trial(learning_rate=0.005), SPACE, margin=0.2) == ("learning_rate",)
