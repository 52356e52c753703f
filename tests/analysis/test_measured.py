from __future__ import annotations

import pytest

from batchlab.analysis.measured import check_measured
from batchlab.errors import InputError


def test_where_nothing_was_measured_no_names_are_promised(make_result):
    """A loop whose first report lies beyond its budget leaves a row without a value."""
    with pytest.raises(InputError, match="^val/loss was not measured: nothing was, up to the step to which"):
        check_measured(make_result([[float("nan")]]).measurements, "val/loss")
