from __future__ import annotations

import pytest

import batchlab.plots.style as style
from batchlab.analysis.curve.regimes import RegimeEnd, Regimes
from batchlab.plots.regime_spans import regime_spans


def make_regimes(perfect: RegimeEnd, maximal: RegimeEnd, is_thin: bool = False) -> Regimes:
    """Return regimes with these ends."""
    return Regimes(
        source="fit", perfect_up_to=perfect, maximal_from=maximal, efficiencies=(), is_thin=is_thin, advice=None
    )


def parts(spans):
    """Return colour and ends of each part."""
    return [(span.colour, span.left, span.right) for span in spans]


def test_ranges_are_hatched_parts_between_the_regimes():
    spans = regime_spans(make_regimes(RegimeEnd(25, 20, 30), RegimeEnd(400, 350, 500)), 1, 4096)

    assert [
        (style.GREEN, 1, 20),
        (None, 20, 30),
        (style.ORANGE, 30, 350),
        (None, 350, 500),
        (style.PURPLE, 500, 4096),
    ] == parts(spans)
    assert ("perfect scaling\nup to 25 (20 to 30)", "perfect\nscaling") == spans[0].labels
    assert ("diminishing\nreturns",) == spans[2].labels
    assert ("maximal parallelism\nfrom 400 (350 to 500)", "maximal\nparallelism") == spans[4].labels


def test_ranges_that_overlap_leave_no_part_of_diminishing_returns():
    spans = regime_spans(make_regimes(RegimeEnd(25, 10, 200), RegimeEnd(400, 100, 1000)), 1, 4096)

    assert [(style.GREEN, 1, 10), (None, 10, 1000), (style.PURPLE, 1000, 4096)] == parts(spans)
    assert ("regime\nnot known",) == spans[1].labels


def test_an_open_range_leaves_the_rest_open():
    spans = regime_spans(make_regimes(RegimeEnd(25, 20, None), RegimeEnd(400, 350, None)), 1, 64)

    assert [(style.GREEN, 1, 20), (None, 20, 64)] == parts(spans)


def test_ends_beyond_the_axis_do_not_show():
    spans = regime_spans(make_regimes(RegimeEnd(2500, 2000, 3000), RegimeEnd(4e4, 3e4, 5e4)), 1, 64)

    assert [(style.GREEN, 1, 64)] == parts(spans)


@pytest.mark.parametrize("ends", [(None, None, None), (25, 0.5, 300)])
def test_where_nothing_is_known_there_is_one_part_without_a_colour(ends):
    spans = regime_spans(make_regimes(RegimeEnd(*ends), RegimeEnd(400, None, None), is_thin=True), 1, 64)

    assert [("none", 1, 64)] == parts(spans)
    assert [("regimes are not known from these data", "regimes not known")] == [span.labels for span in spans]


def test_without_regimes_there_is_no_part():
    assert () == regime_spans(None, 1, 64)
