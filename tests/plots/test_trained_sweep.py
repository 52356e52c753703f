from __future__ import annotations

import pytest

from batchlab.errors import InputError
from batchlab.plots.trained_sweep import evenly


def sizes(sweep):
    return [study.batch_size for study in sweep.studies]


def test_batch_sizes_can_be_chosen(make_trained):
    sweep = make_trained().only([256, 16])

    assert [16, 256] == sizes(sweep)
    assert [16, 256] == [row.batch_size for row in sweep.rows]
    assert "Shown: 2 of 3 batch sizes." == sweep.share
    assert "" == make_trained().share


def test_a_batch_size_that_is_not_there_is_refused_with_those_that_are(make_trained):
    with pytest.raises(InputError, match=r"has no finished study of batch size 1,024\. Choose from 16, 64 and 256\.$"):
        make_trained().only([16, 1024])


def test_of_too_many_the_ends_stay_and_the_rest_is_named(make_trained):
    chosen, left_out = make_trained().spread(2)

    assert ([16, 256], [64]) == (sizes(chosen), left_out)
    assert [] == make_trained().spread(3)[1]


def test_values_are_spread_evenly():
    assert [1, 4, 16, 128, 512, 1297] == evenly([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1297], 6)


def test_a_race_that_ended_early_is_known(make_trained, race):
    assert make_trained(protocol=race).is_cut_short
    assert not make_trained().is_cut_short
