from __future__ import annotations

import numpy as np
import pytest

from batchlab.analysis import RegimeEnd, Regimes, find_regimes, fit_critical_batch
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


def test_a_knee_is_read_off_the_shape(make_row):
    rows = [make_row(size, [round(max(4000, 512_000 / size))] * 8, end_step=10**6) for size in SIZES]
    regimes = find_regimes(rows, fit_critical_batch(rows))

    assert regimes.source == "shape"
    # The knee is at 128: 128 / 0.8, and 128 / 1.25.
    assert pytest.approx(regimes.perfect_up_to.value, rel=0.02) == 160
    assert pytest.approx(regimes.maximal_from.value, rel=0.02) == 102.4
    assert regimes.perfect_up_to.low < 160 < regimes.perfect_up_to.high
    assert regimes.efficiencies[0].value == 1
    assert pytest.approx(regimes.efficiencies[9].value, rel=0.02) == 0.25
    assert (regimes.regime_of(1), regimes.regime_of(8192)) == ("perfect", "maximal")


def test_unreached_rows_have_no_efficiency(make_row):
    rows = [*on_a_curve(make_row), make_row(16_384, num_trials=8, end_step=10)]
    regimes = find_regimes(rows, fit_critical_batch(rows))

    assert (len(regimes.efficiencies), regimes.efficiencies[-1]) == (15, None)


def test_few_trials_are_thin_whatever_their_range(make_row):
    rows = [make_row(size, [round(4000 + 512_000 / size)] * 3, end_step=10**6) for size in SIZES]
    regimes = find_regimes(rows, fit_critical_batch(rows))

    assert regimes.is_thin and regimes.has_few_trials
    assert {None} == {regimes.regime_of(size) for size in SIZES}
    assert regimes.advice == "Three trials at a batch size are too few for a firm sentence: run 6 or more."


def test_perfect_scaling_alone_asks_for_a_larger_batch_size(make_row):
    rows = [make_row(size, [512_000 // size] * 8, end_step=10**6) for size in SIZES[:6]]
    regimes = find_regimes(rows, fit_critical_batch(rows))

    assert regimes.perfect_up_to.value is None
    assert regimes.perfect_up_to.high is None
    assert "Where perfect scaling ends was not seen: batch size 64 would tell." in regimes.advice
    assert regimes.regime_of(32) is None


def test_a_wide_range_says_what_would_narrow_it(make_row):
    rng = np.random.default_rng(3)
    sizes = [16, 64, 256, 1024, 4096]
    noise = np.exp(0.3 * rng.standard_normal(5))
    rows = [
        make_row(b, [round((4000 + 512_000 / b) * f)] * 8, end_step=10**6) for b, f in zip(sizes, noise, strict=True)
    ]
    regimes = find_regimes(rows, fit_critical_batch(rows))

    assert regimes.is_thin
    assert "is known only to within a factor of" in regimes.advice
    assert "trials at each batch size, might tell." in regimes.advice


def test_no_fit_no_regimes(make_row):
    assert find_regimes([make_row(1, [10] * 8)], None) is None


def regimes(perfect, maximal):
    return Regimes(
        source="fit", perfect_up_to=perfect, maximal_from=maximal, efficiencies=(), is_thin=False, advice=None
    )


def test_a_batch_size_within_a_range_has_no_regime():
    found = regimes(RegimeEnd(16, 10, 30), RegimeEnd(256, 160, 480))

    assert [found.regime_of(size) for size in (10, 16, 31, 200, 480)] == [
        "perfect",
        None,
        "diminishing",
        None,
        "maximal",
    ]


def test_open_ranges_leave_regimes_open():
    found = regimes(RegimeEnd(None, 10, None), RegimeEnd(None, 160, None))

    assert [found.regime_of(size) for size in (10, 31, 10_000)] == ["perfect", None, None]


def test_steps_that_still_fall_at_the_end_show_no_maximal_regime(make_row):
    """The 1.2 B model of Zhang et al. 2024: at 16,384 its steps fall by a quarter for a doubling."""
    steps = [642000, 331000, 176000, 94000, 46500, 25000, 15360, 8900, 6500]
    rows = [make_row(64 * 2**k, [found] * 8, end_step=10**7) for k, found in enumerate(steps)]
    regimes = find_regimes(rows, fit_critical_batch(rows))

    assert regimes.source == "shape"
    assert (regimes.maximal_from.value, regimes.maximal_from.high) == (None, None)
    assert "Where the maximal regime begins was not seen: batch size 32,768 would tell." in regimes.advice
    assert regimes.regime_of(16_384) is None


def test_the_smallest_batch_size_is_not_perfect_for_being_first(make_row):
    rows = [make_row(size, [round(1000 * (1 + (128 / size) ** 0.6))] * 8, end_step=10**7) for size in SIZES]
    regimes = find_regimes(rows, fit_critical_batch(rows))

    assert regimes.source == "shape"
    assert (regimes.perfect_up_to.value, regimes.perfect_up_to.low) == (None, None)
    assert regimes.regime_of(1) is None
