from __future__ import annotations

import pytest

from batchlab.analysis import Estimate, Interval, choose_headline
from batchlab.core.protocol import Protocol

SIX = [10, 20, 30, 40, 50, 60]


def test_the_headline_is_the_best_answer_that_every_reached_row_has(make_row):
    confirmed = make_row(8, SIX, replicate_steps=[20] * 6)

    assert choose_headline([confirmed, make_row(16)]) == "confirmed"
    assert choose_headline([confirmed, make_row(16, SIX)]) == "best_of"
    assert choose_headline([confirmed, make_row(16, SIX[:5])]) == "minimum"
    assert choose_headline([make_row(8)]) == "minimum"


def test_an_answer_without_a_value_does_not_lead(make_row):
    assert choose_headline([make_row(8, SIX, replicate_steps=[20, *[None] * 5])]) == "best_of"
    assert choose_headline([make_row(8, [10, 20, 30], num_trials=6)]) == "minimum"


def test_the_published_data_keep_the_minimum(make_row):
    assert choose_headline([make_row(8, SIX, protocol=Protocol(kind="imported"))]) == "minimum"


@pytest.mark.parametrize(
    ("headline", "expected"),
    [
        ("minimum", Estimate(10, None)),
        ("best_of", Estimate(35, Interval(10, 60))),
        ("confirmed", Estimate(20, Interval(20, 20))),
    ],
)
def test_each_answer_has_its_name(make_row, headline, expected):
    assert expected == make_row(8, SIX, replicate_steps=[20] * 6).estimate(headline)


def test_an_answer_that_was_not_made_is_none(make_row):
    assert make_row(8, SIX).estimate("confirmed") == Estimate(None, None)
