from __future__ import annotations

import pytest

from batchlab.analysis import find_regimes, fit_critical_batch
from batchlab.core.protocol import Protocol

SIZES = [2**k for k in range(14)]


def on_a_curve(make_row, sizes=SIZES, **options):
    return [make_row(size, [round(4000 + 512_000 / size)] * 8, end_step=10**6, **options) for size in sizes]


def test_the_ends_lie_a_factor_of_four_from_the_critical_batch_size(make_row):
    rows = on_a_curve(make_row)
    regimes = find_regimes(rows, fit_critical_batch(rows))

    assert regimes.source == "fit"
    assert pytest.approx(regimes.perfect_up_to.value, rel=1e-3) == 32
    assert pytest.approx(regimes.maximal_from.value, rel=1e-3) == 512
    assert pytest.approx(regimes.efficiencies[7].value, rel=1e-3) == 0.5  # 50 % at B_crit = 128
    assert [regimes.regime_of(size) for size in (16, 128, 1024)] == ["perfect", "diminishing", "maximal"]
    assert not regimes.is_thin


def test_a_closed_form_has_ends_without_ranges_and_regimes_all_the_same(make_row):
    rows = on_a_curve(make_row, protocol=Protocol(kind="full", is_closed_form=True))
    regimes = find_regimes(rows, fit_critical_batch(rows))

    assert (regimes.perfect_up_to.low, regimes.maximal_from.high) == (None, None)
    assert [regimes.regime_of(size) for size in (16, 128, 1024)] == ["perfect", "diminishing", "maximal"]
