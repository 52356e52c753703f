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


def trial(status: Status = Status.COMPLETE, **metaparameters: float) -> Trial:
    return Trial(trial_id=0, status=status, metaparameters=metaparameters, last_step=10)


# One point at each end, and enough between them that the margin is a twentieth.
TRIED = [trial(learning_rate=rate, momentum=momentum) for rate, momentum in ((1e-3, 0.0), (10.0, 0.999))] * 16


@pytest.mark.parametrize(
    ("learning_rate", "momentum", "expected"),
    [
        (0.1, 0.9, ()),
        (1e-3 * 10 ** (4 * 0.049), 0.9, ("learning_rate",)),  # 4.9 % of four decades from the lower end
        (1e-3 * 10 ** (4 * 0.051), 0.9, ()),
        (10.0, 0.9, ("learning_rate",)),
        (0.1, 0.9989, ("momentum",)),
        (0.1, 0.99, ()),  # a third of the way in scaled units, though 0.9 % from the end in plain ones
        (10.0, 0.9989, ("learning_rate", "momentum")),
    ],
)
def test_the_outer_twentieth_in_scaled_units_is_the_edge(learning_rate, momentum, expected):
    assert expected == at_boundary(trial(learning_rate=learning_rate, momentum=momentum), SPACE, TRIED)


def test_few_points_leave_a_wider_edge():
    # Nine points: a tenth of four decades from either end.
    tried = TRIED[:9]

    assert at_boundary(trial(learning_rate=1e-3 * 10 ** (4 * 0.09)), SPACE, tried) == ("learning_rate",)
    assert at_boundary(trial(learning_rate=1e-3 * 10 ** (4 * 0.11)), SPACE, tried) == ()


def test_the_outermost_point_tried_is_at_the_edge_wherever_it_lies():
    tried = [trial(learning_rate=10 ** (-2 + i / 20)) for i in range(40)]

    assert at_boundary(tried[0], SPACE, tried) == ("learning_rate",)
    assert at_boundary(tried[39], SPACE, tried) == ("learning_rate",)
    assert at_boundary(tried[1], SPACE, tried) == ()


def test_a_diverged_point_beyond_it_was_tried_and_an_incomplete_one_was_not():
    tried = [trial(learning_rate=10 ** (-2 + i / 20)) for i in range(40)]
    beyond = {status: trial(status, learning_rate=3.0) for status in Status}

    assert at_boundary(tried[39], SPACE, [*tried, beyond[Status.INFEASIBLE]]) == ()
    assert at_boundary(tried[39], SPACE, [*tried, beyond[Status.INCOMPLETE]]) == ("learning_rate",)


def test_nothing_lies_beyond_a_lower_end_of_zero():
    assert at_boundary(trial(learning_rate=0.1, momentum=0.0), SPACE, TRIED) == ()


def test_a_list_of_values_has_no_edge():
    assert at_boundary(trial(learning_rate=0.1, momentum=0.9, label_smoothing=0.0), SPACE, TRIED) == ()


def test_a_metaparameter_the_trial_does_not_record_is_passed_over():
    assert at_boundary(trial(momentum=0.9), SPACE, TRIED) == ()


def test_a_range_of_a_single_value_has_no_edge():
    assert at_boundary(trial(decay=5.0), SearchSpace({"decay": Range(min=5.0, max=5.0)}), [trial(decay=5.0)]) == ()
