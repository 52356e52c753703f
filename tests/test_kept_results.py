"""Kept results say what the analysis says of their own files today."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batchlab.analysis.summary import curve_json
from batchlab.report.answers import summarise
from batchlab.spec.load import load_sweep

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path.parent for path in (ROOT / "docs" / "results").rglob("curve.json"))


@pytest.fixture(scope="module")
def read_results():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        from answer_again import read_results

        yield read_results


def leaves(data, place=()):
    """Yield every value of some JSON with its place."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(value, (*place, key))
    else:
        yield place, data


def test_there_are_kept_results():
    assert len(FOLDERS) >= 12


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_curve_json_is_what_the_tables_give(read_results, folder):
    (spec,) = folder.glob("*.toml")
    sweep = load_sweep(str(spec))

    found = json.loads(json.dumps(curve_json(summarise(read_results(folder, sweep), sweep.search.hardest_goal))))

    kept = dict(leaves(json.loads((folder / "curve.json").read_text())))
    assert dict(leaves(found)) == {
        place: pytest.approx(value, rel=1e-6) if isinstance(value, float) else value for place, value in kept.items()
    }
