"""Export: the authors' layout, read back as the same lab."""

from __future__ import annotations

import json
import shutil

import pandas as pd
import pyarrow.parquet as pq
import pytest

from batchlab.core.sweep import Sweep
from batchlab.errors import InputError, LabError
from batchlab.run.run_sweep import run_sweep
from batchlab.store.archive.exporter import export_lab
from batchlab.store.archive.importer import import_archive
from batchlab.store.lab import Lab
from batchlab.store.stored_sweep import ImportRecord


def files(lab):
    return {str(path.relative_to(lab)): path.read_bytes() for path in lab.rglob("*") if path.is_file()}


def said(content):
    """What a JSON file says, but for the seals: metaparameters come back in alphabetical order."""
    data = json.loads(content)
    return {key: value for key, value in data.items() if key not in ("digest", "files")} if "digest" in data else data


def rows(path):
    table = pq.read_table(path).replace_schema_metadata(None)
    return table.schema, table.to_pydict()


def test_a_lab_that_was_run_comes_back(run_lab, tmp_path):
    list(export_lab(Lab.open(run_lab), tmp_path / "out"))
    import_archive(tmp_path / "out", tmp_path / "lab", processes=1)
    before, after = files(run_lab), files(tmp_path / "lab")
    assert after.pop("rejected.json") == b"[]\n"
    after.pop("sweeps/small/source.json")

    assert before.keys() == after.keys()
    for name in before:
        if name.endswith(".json"):
            assert said(before[name]) == said(after[name]), name
        elif name.endswith(".parquet"):
            assert rows(run_lab / name) == rows(tmp_path / "lab" / name), name


def test_the_authors_loader_would_read_it(run_lab, tmp_path):
    """What their code does: read study.json, walk the trials by number, read each table by step."""
    (study, _) = list(export_lab(Lab.open(run_lab), tmp_path / "out"))
    assert study == tmp_path / "out" / "nqm" / "quadratic" / "sgd" / "1"
    told = json.loads((study / "study.json").read_text())
    assert (told["batch_size"], told["dataset"], told["model"], told["optimizer"]) == (1, "nqm", "quadratic", "sgd")
    assert told["parameter_configs"]["learning_rate"] == {
        "max_value": 1.5,
        "min_value": 0.1,
        "scale": "LOG_SCALE",
        "type": "DOUBLE",
    }
    trials = sorted(int(path.name) for path in study.iterdir() if path.is_dir())
    assert trials == [0, 1, 2]
    for trial_id in trials:
        metadata = json.loads((study / str(trial_id) / "metadata.json").read_text())
        table = pd.read_csv(study / str(trial_id) / "measurements.csv", index_col="step")
        assert (metadata["trial_id"], metadata["status"]) == (trial_id, "COMPLETE")
        assert metadata["steps"] == table.index[-1]
        assert list(table.columns) == ["val/risk"]


def test_an_imported_lab_comes_back(tree, tmp_path):
    import_archive(tree, tmp_path / "first", processes=1)
    list(export_lab(Lab.open(tmp_path / "first"), tmp_path / "out"))
    import_archive(tmp_path / "out", tmp_path / "second", processes=1)

    first, second = files(tmp_path / "first"), files(tmp_path / "second")
    assert first.keys() == second.keys()
    same = [name for name in first if name.endswith((".parquet", "trials.json", "study.json"))]
    assert len(same) == 9
    assert [name for name in same if first[name] != second[name]] == []


def test_one_workload_can_be_exported(tree, tmp_path):
    import_archive(tree, tmp_path / "lab", processes=1)
    folders = list(export_lab(Lab.open(tmp_path / "lab"), tmp_path / "out", "mnist/simple_cnn_base/sgd"))

    assert [folder.name for folder in folders] == ["2", "4"]


def test_two_sweeps_of_one_workload_are_refused(small_spec, tmp_path):
    run_sweep(Sweep.parse(small_spec, "spec"), tmp_path / "lab", num_workers=1)
    run_sweep(Sweep.parse({**small_spec, "name": "again"}, "spec"), tmp_path / "lab", num_workers=1)

    with pytest.raises(
        InputError, match=r"have the workload nqm/quadratic/sgd; .* Export one of them, --workload again, "
    ):
        list(export_lab(Lab.open(tmp_path / "lab"), tmp_path / "out"))

    assert list(export_lab(Lab.open(tmp_path / "lab"), tmp_path / "out", "again"))


# Into its folder only


def test_an_export_never_writes_into_a_folder_that_holds_something(run_lab, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("mine")

    with pytest.raises(InputError, match="is not empty. Export into a new folder"):
        list(export_lab(Lab.open(run_lab), tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine"]


def test_an_empty_folder_is_as_good_as_a_new_one(run_lab, tmp_path):
    (tmp_path / "out").mkdir()

    assert len(list(export_lab(Lab.open(run_lab), tmp_path / "out"))) == 2


def test_a_file_is_no_folder_to_export_to(run_lab, tmp_path):
    (tmp_path / "out").write_text("mine")

    with pytest.raises(InputError, match="Could not write to .*out: Not a directory"):
        list(export_lab(Lab.open(run_lab), tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("workload", ["../../outside/x", "/tmp/outside/x", "a/../../../outside", "a\x1b/b/c", "a/b"])
def test_an_export_never_leaves_its_folder(tree, tmp_path, workload):
    """A lab of somebody else may say that a workload is called ../../outside."""
    import_archive(tree, tmp_path / "lab", processes=1)
    lab = Lab.open(tmp_path / "lab")
    name = "mnist--simple_cnn_base--sgd"
    record = ImportRecord(name=name, workload=workload, batch_sizes=(2, 4), source={})
    lab.save_import(record)
    before = set(tmp_path.rglob("*"))

    with pytest.raises(LabError, match="cannot be a path|exchanged|is of|damaged"):
        list(export_lab(lab, tmp_path / "deep" / "out", name))
    assert set(tmp_path.rglob("*")) == before


def test_a_half_finished_sweep_is_exported_as_far_as_it_is(run_lab, tmp_path):
    shutil.copytree(run_lab, tmp_path / "lab")
    shutil.rmtree(tmp_path / "lab" / "sweeps" / "small" / "16")

    assert [path.name for path in export_lab(Lab.open(tmp_path / "lab"), tmp_path / "out")] == ["1"]
    import_archive(tmp_path / "out", tmp_path / "again", processes=1)
    assert Lab.open(tmp_path / "again").results(Lab.open(tmp_path / "again").sweep("small")).unfinished == [16]
