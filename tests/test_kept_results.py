"""Kept results say what the analysis says of their own files today."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from batchlab.analysis.summary import curve_json
from batchlab.report.answers import summarise
from batchlab.spec.load import load_sweep
from batchlab.verify.lab import verify_lab

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path.parent for path in (ROOT / "docs" / "results").rglob("curve.json"))
LABS = sorted(path.parent for path in (ROOT / "docs" / "results").rglob("lab.json"))


@pytest.fixture(scope="module")
def scripts():
    """The scripts that write and read them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        import answer_again
        import keep_result

        yield SimpleNamespace(answer_again=answer_again, keep_result=keep_result)


@pytest.fixture(scope="module")
def read_results(scripts):
    return scripts.answer_again.read_results


def leaves(data, place=()):
    """Yield every value of some JSON with its place."""
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            yield from leaves(value, (*place, key))
    else:
        yield place, data


def test_there_are_kept_results():
    assert len(FOLDERS) >= 12


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.parent.name)
def test_kept_labs_are_sound(lab):
    """They were begun with the defaults of their day: a new default must not take them for another sweep's."""
    verification = verify_lab(lab)

    assert verification.is_sound, verification


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_curve_json_is_what_the_tables_give(read_results, folder):
    (spec,) = folder.glob("*.toml")
    sweep = load_sweep(str(spec))

    found = json.loads(json.dumps(curve_json(summarise(read_results(folder, sweep), sweep.search.hardest_goal))))

    kept = dict(leaves(json.loads((folder / "curve.json").read_text())))
    assert dict(leaves(found)) == {
        place: pytest.approx(value, rel=1e-6) if isinstance(value, float) else value for place, value in kept.items()
    }


def test_a_replicate_ends_where_the_lab_ended_it(read_results):
    """Momentum at batch size 2,048: the fewest steps are 64, and none of the replicates needed four times that."""
    folder = ROOT / "docs" / "results" / "fc-optimizers" / "momentum"
    (spec,) = folder.glob("*.toml")

    (result,) = [each for each in read_results(folder, load_sweep(str(spec))) if each.batch_size == 2048]

    assert result.confirmation.end_step == 256
    assert max(each.last_step for each in result.confirmation.replicates) == 92


def test_what_the_confirmation_took_is_told_apart_from_the_search(scripts, monkeypatch, capsys, tmp_path):
    def study(batch_size, *seconds):
        replicates = [SimpleNamespace(wall_seconds=each) for each in seconds]
        made = SimpleNamespace(replicates=replicates) if seconds else None
        return SimpleNamespace(batch_size=batch_size, confirmation=made)

    record = SimpleNamespace(record=lambda: SimpleNamespace(wall_seconds=600.0))
    lab = SimpleNamespace(open=lambda folder: SimpleNamespace(study_folder=lambda *_: record))
    answer = SimpleNamespace(execute=lambda *_: SimpleNamespace(fetchone=lambda: (10, 80, 2)))
    monkeypatch.setattr(scripts.keep_result, "Lab", lab)
    monkeypatch.setattr(scripts.keep_result, "connect", lambda folder: answer)
    results = SimpleNamespace(results=[study(8, 70.0, 110.0), study(64), study(512, 5.0, None)])

    scripts.keep_result.print_cost(tmp_path, "own", results, 4)

    assert capsys.readouterr().out.splitlines()[1:] == [
        "2 trials, 10 steps, 80 examples; 4 replicates besides.",
        "Batch size 8, of one core: 10 min for the search, 3 min for the confirmation.",
        "Batch size 64, of one core: 10 min for the search.",
        "Batch size 512, of one core: 10 min for the search.",
    ]
