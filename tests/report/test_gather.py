"""What a report tells of a stored lab."""

from __future__ import annotations

import shutil
import weakref

import pytest

from batchlab.core.goal import Goal
from batchlab.errors import InputError
from batchlab.report import gather as gather_module
from batchlab.report.answers import read_results
from batchlab.report.gather import findings, gather
from batchlab.run.run_sweep import run_sweep
from batchlab.store.stored_sweep import ImportRecord
from batchlab.store.study_record import ImportedStudy


def test_findings_hold_the_spec_the_cost_and_the_machine(lab):
    found = findings(lab.results(lab.find()))

    assert found.spec["name"] == "nqm"
    assert found.protocol["protocol"] == "race"
    assert found.protocol["full_steps"] == 3 * 12 * 60
    assert 0 < found.protocol["trained_steps"] <= found.protocol["full_steps"]
    assert found.environment


def test_an_imported_sweep_tells_its_source(lab):
    folder, study = lab.folder / "sweeps" / "nqm", lab.study_folder("nqm", 1)
    record, result = study.record(), study.result()
    imported = {"workload": record.workload, "batch_size": 1, "search_space": result.search_space, "train_steps": 60}
    theirs = record.model_copy(update={"study": None, "sweep": None, "imported": ImportedStudy(**imported)})
    study.finish(theirs, list(result.trials), result.measurements)
    goal, source = Goal.read("val/risk <= 0.1"), {"archive": "theirs.tar"}
    lab.save_import(ImportRecord(name="nqm", workload="nqm/quadratic/sgd", batch_sizes=(1,), goal=goal, source=source))
    (folder / "sweep.json").unlink()
    shutil.rmtree(folder / "16")
    found = findings(lab.results(lab.find()))

    assert (found.spec, found.protocol) == ({}, {"archive": "theirs.tar"})


def test_a_report_holds_the_tables_of_no_more_than_two_sweeps_at_once(lab, make_nqm, monkeypatch):
    for name in ("second", "third", "fourth"):
        run_sweep(make_nqm({"sweep.max_steps": 60, "name": name}), lab.folder, num_workers=1)
    seen: list[weakref.ref] = []
    held = []

    def watched(*arguments):
        results = read_results(*arguments)
        held.append(sum(reference() is not None for reference in seen))
        seen.append(weakref.ref(results))
        return results

    monkeypatch.setattr(gather_module, "read_results", watched)

    assert len(gather(lab).findings) == 4
    assert held == [0, 1, 1, 1]


def test_a_goal_that_no_sweep_has_measured_is_misspelt(lab, make_nqm):
    run_sweep(make_nqm({"sweep.max_steps": 60, "name": "second"}), lab.folder, num_workers=1)

    with pytest.raises(InputError, match=r'Unknown metric "val/rsik". Did you mean .*val/risk'):
        gather(lab, goal=Goal.read("val/rsik < 0.1"))
