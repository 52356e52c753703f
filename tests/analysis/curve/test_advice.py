from __future__ import annotations

import pytest

from batchlab.analysis import RegimeEnd
from batchlab.analysis.curve.advice import advise

KNOWN = RegimeEnd(64, 50, 80)


@pytest.fixture
def rows(make_row):
    return [make_row(size, [10] * 8) for size in (16, 64, 1024)]


def test_what_is_known_needs_no_advice(rows):
    assert advise(rows, KNOWN, KNOWN) is None


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (RegimeEnd(None, 50, None), "was not seen: batch size 2,048 would tell."),
        (
            RegimeEnd(80, 50, None),
            "has a lower bound only, batch size 50: about 32 trials at each batch size, or a batch size larger than"
            " 1,024, might tell.",
        ),
        (RegimeEnd(None, None, 50), "was not seen: batch size 8 would tell."),
        # Twice the largest, or half the smallest, would show no end that is known to lie beyond.
        (RegimeEnd(None, 4000, None), "was not seen: batch size 4,096 would tell."),
        (RegimeEnd(None, None, 3.5), "was not seen: batch size 2 would tell."),
        (RegimeEnd(None, None, 0.5), "was not seen: it lies below batch size 1."),
        (RegimeEnd(None, None, None), "is not known: about 32 trials at each batch size might tell."),
        # Four octaves, twice as many as allowed, about 256, which is two octaves from anything tried.
        (
            RegimeEnd(256, 64, 1024),
            "is known only to within a factor of 16: batch size 256, or about 16 trials at each batch size, might "
            "tell.",
        ),
        (
            RegimeEnd(64, 16, 256),
            "is known only to within a factor of 16: about 16 trials at each batch size might tell.",
        ),
    ],
)
def test_what_is_not_known_is_said_with_what_would_tell(rows, end, expected):
    assert advise(rows, end, KNOWN) == f"Where perfect scaling ends {expected}"
    assert advise(rows, KNOWN, end) == f"Where the maximal regime begins {expected}"


def test_fewer_than_six_trials_are_too_few(make_row):
    rows = [make_row(1, [10] * 8), make_row(2, [10]), make_row(4)]

    assert advise(rows, KNOWN, KNOWN) == "One trial at a batch size is too few for a firm sentence: run 6 or more."


def test_without_chance_only_what_was_not_seen_is_missing(rows):
    assert advise(rows, RegimeEnd(64, None, None), RegimeEnd(256, None, None), is_exact=True) is None
    assert "batch size 2,048" in advise(rows, KNOWN, RegimeEnd(None, None, None), is_exact=True)


def test_without_chance_a_curve_that_is_flat_from_its_start_asks_for_smaller_batch_sizes(rows):
    found = advise(rows, RegimeEnd(None, None, None), KNOWN, is_exact=True)

    assert found == "Where perfect scaling ends was not seen: batch size 8 would tell."
    assert "batch size 8 would" in advise(rows, KNOWN, RegimeEnd(None, None, 50), is_exact=True)


def test_a_bound_below_which_nothing_smaller_can_be_tried_is_told(make_row):
    rows = [make_row(size, [10] * 8) for size in (1, 4, 16)]

    assert advise(rows, RegimeEnd(None, None, 0.25), RegimeEnd(None, None, 4.06)) == (
        "Where perfect scaling ends was not seen: it lies below batch size 1. Where the maximal regime begins has an "
        "upper bound only, batch size 4.06: more trials at the smallest batch sizes might tell."
    )


def test_a_batch_size_that_was_tried_in_vain_is_not_asked_for_as_if_it_were_new(rows, make_row):
    found = advise([*rows, make_row(2048, num_trials=8)], KNOWN, RegimeEnd(None, 50, None))

    assert found == "Where the maximal regime begins was not seen: batch size 2,048, trained for longer, would tell."
