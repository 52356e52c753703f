"""batchlab import and export, and what the other commands say of an imported lab."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from pathlib import Path

import pytest

from batchlab.core.confirmation import Confirmation
from batchlab.core.measurement import Measurements
from batchlab.store.lab import Lab
from batchlab.store.study_folder import StudyFolder

WORKLOAD = "mnist/simple_cnn_base/nesterov_momentum"
ERRORS = {1: [0.9, 0.4, 0.2, 0.1], 2: [0.9, 0.3, 0.02, 0.009], 3: [0.9, 0.2, 0.008, 0.02]}


def write_study(root: Path, batch_size: int, stride: int) -> None:
    folder = root / WORKLOAD / str(batch_size)
    folder.mkdir(parents=True)
    study = {
        "batch_size": batch_size,
        "dataset": "mnist",
        "early_stopping": False,
        "model": "simple_cnn_base",
        "optimizer": "nesterov_momentum",
        "parameter_configs": {
            "learning_rate": {"max_value": 1.0, "min_value": 1e-3, "scale": "LOG_SCALE", "type": "DOUBLE"}
        },
        "train_steps": 3 * stride,
    }
    (folder / "study.json").write_text(json.dumps(study))
    for trial_id, errors in ERRORS.items():
        trial = folder / str(trial_id)
        trial.mkdir()
        facts = {"parameters": {"learning_rate": 0.1}, "status": "COMPLETE", "steps": 3 * stride, "trial_id": trial_id}
        (trial / "metadata.json").write_text(json.dumps(facts))
        lines = ["step,val/classification_error", *(f"{stride * i},{error}" for i, error in enumerate(errors))]
        (trial / "measurements.csv").write_text("\n".join(lines) + "\n")


@pytest.fixture
def tree(quiet_place) -> Path:
    """Two studies whose goal 0.01 is first met by trial 3, at the second step measured after the start."""
    root = Path("batch_science")
    write_study(root, 16, 100)
    write_study(root, 64, 50)
    return root


@pytest.fixture
def lab(tree, call) -> None:
    assert call("import", str(tree), "--workers", "1").code == 0


def test_an_import_ends_with_a_comparison(call, tree):
    answer = call("import", str(tree), "--workers", "1")
    table = answer.out.splitlines()

    assert (answer.code, answer.err) == (0, "")
    assert WORKLOAD in table[1]
    assert table[-1] == "1 workload; 0 of the 1 that the paper's archive has equal its inventory."
    assert json.loads(Path("lab/rejected.json").read_text()) == []


def test_both_processes_give_the_same_lab(call, tree):
    call("import", str(tree), "--lab", "one", "--workers", "1")
    call("import", str(tree), "--lab", "two", "--workers", "2")

    assert call("curve", "--lab", "one").out == call("curve", "--lab", "two").out


def test_a_broken_trial_is_told_and_the_rest_is_there(call, tree):
    (tree / WORKLOAD / "16" / "2" / "metadata.json").write_text("{")

    answer = call("import", str(tree), "--workers", "1")
    rejected = json.loads(Path("lab/rejected.json").read_text())

    assert answer.code == 0
    assert "1 broken study or trial was left out; see lab/rejected.json" in answer.err
    assert [entry["path"] for entry in rejected] == [f"{WORKLOAD}/16/2"]


def test_strict_stops_at_the_first_broken_trial(call, tree):
    (tree / WORKLOAD / "16" / "2" / "metadata.json").write_text("{")

    answer = call("import", str(tree), "--workers", "1", "--strict")

    assert answer.code == 2
    assert f"{WORKLOAD}/16/2: not valid JSON" in answer.err
    assert not Path("lab").exists()


def test_a_file_that_is_not_there_is_named(call):
    answer = call("import", "nowhere.tar.bz2")

    assert answer.code == 2
    assert answer.err.strip().splitlines() == [
        "batchlab: nowhere.tar.bz2 does not exist. Give an unpacked archive or a tar file."
    ]


def test_a_tar_file_cut_short_is_named(call, tree):
    with tarfile.open("a.tar.bz2", "w:bz2") as archive:
        archive.add(tree)
    content = Path("a.tar.bz2").read_bytes()
    Path("a.tar.bz2").write_bytes(content[: len(content) // 2])

    answer = call("import", "a.tar.bz2", "--workers", "1")

    assert answer.code == 2
    assert len(answer.err.strip().splitlines()) == 1
    assert "a.tar.bz2 is no archive, or it is damaged or cut short" in answer.err


def test_curve_status_and_report_read_an_imported_lab(call, lab):
    rows = json.loads(call("curve", WORKLOAD, "--json").out)["rows"]
    one = json.loads(
        call("curve", WORKLOAD, "--goal", "val/classification_error < 0.25", "--trials", "2", "--json").out
    )

    assert [(row["batch_size"], row["steps"]) for row in rows] == [(16, 200), (64, 100)]
    assert [(row["batch_size"], row["steps"]) for row in one["rows"]] == [(16, 200), (64, 100)]
    assert WORKLOAD in call("status").out
    assert call("report", "--out", "report.html").code == 0
    assert WORKLOAD in Path("report.html").read_text()


def test_an_imported_sweep_is_not_confirmed(refused, lab):
    assert refused("confirm", "--lab", "lab") == (
        "batchlab: Sweep mnist--simple_cnn_base--nesterov_momentum in lab lab was imported: it cannot be trained "
        "here. Run one of your own.\n"
    )


def test_figures_of_trials_read_an_imported_lab(call, refused, lab):
    """Trial 3 has 0.008 at step 200 or 100; of the 55,000 examples of an epoch 4,800 and 9,600 were seen."""
    answers = [call("figure", "curves", "--against", "examples"), call("figure", "budgets")]
    curves, budgets = (Path(answer.out.splitlines()[2]).read_text() for answer in answers)

    assert [0, 0] == [answer.code for answer in answers]
    assert "16,3,True,200,3200,,val/classification_error,0.008" in curves
    assert "0.05 epochs" in budgets
    assert "stores no seconds, as imported ones do not. Draw them against steps" in refused(
        "figure", "curves", "--against", "seconds"
    )
    assert "has no points to tell apart: all trials have the same metaparameters" in refused("figure", "points")


def test_an_export_can_be_imported_again(call, lab):
    answer = call("export", "out")
    call("import", "out", "--lab", "again", "--workers", "1")

    assert answer.code == 0
    assert re.fullmatch(r"out: 2 studies, digest [0-9a-f]{32}\n", answer.out)
    assert call("curve", "--lab", "again").out == call("curve").out


def test_an_unknown_workload_to_export_is_refused(call, lab):
    answer = call("export", "out", "--workload", "mnist/simple_cnn_bas/nesterov_momentum")

    assert answer.code == 2
    assert "simple_cnn_base" in answer.err
    assert not Path("out").exists()


def test_a_paper_figure_is_three_files_with_the_published_points(call, lab):
    answer = call("figure", "paper-1", "--published")
    table = Path("figures/paper-1.csv").read_text()

    assert (answer.code, answer.out.split()) == (0, [f"figures/paper-1.{kind}" for kind in ("svg", "png", "csv")])
    assert "published" in table
    assert "16,200" in table.replace(".0", "")


def test_of_all_figures_those_are_drawn_that_the_lab_has_a_workload_for(call, lab):
    """The simple CNN on MNIST with Nesterov momentum is in Figures 1, 2, 4, 5 and 8."""
    answer = call("figure", "paper-all")

    assert answer.code == 0
    assert answer.out.split() == [
        f"figures/paper-{n}.{kind}" for n in (1, 2, 4, 5, 8) for kind in ("svg", "png", "csv")
    ]
    assert all(Path(name).stat().st_size for name in answer.out.split())
    assert [line.split()[2] for line in answer.err.splitlines()] == ["3", "6", "7", "9", "10", "11"]


def test_an_imported_sweep_that_lost_its_listing_is_named_and_can_be_imported_again(call, tree):
    """It left `status` and `curve` without a word."""
    call("import", str(tree), "--workers", "1")
    shutil.copytree("lab", "stopped")
    listing = Path("stopped/sweeps") / WORKLOAD.replace("/", "--") / "import.json"
    listing.unlink()

    for command in ("status", "curve", "verify"):
        answer = call(command, "--lab", "stopped")
        assert answer.code == 1
        assert f"{listing} is missing beside studies" in answer.out + answer.err
    assert call("import", str(tree), "--lab", "stopped", "--workers", "1").code == 0
    assert call("curve", "--lab", "stopped").out == call("curve").out


def test_a_file_that_is_no_archive_makes_no_lab(call, quiet_place):
    Path("spec.toml").write_text('name = "digits"\n')

    answer = call("import", "spec.toml", "--lab", "new")

    assert answer.code == 2
    assert answer.err.startswith("batchlab: spec.toml is no archive")
    assert not Path("new").exists()


@pytest.mark.parametrize("command", [("export", "out"), ("figure", "paper-2")])
def test_an_empty_lab_has_nothing_to_show(call, quiet_place, command):
    Lab.create(Path("empty"))

    answer = call(*command, "--lab", "empty")

    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "batchlab: Lab empty holds no sweep yet.\n"


def test_a_report_leaves_out_a_sweep_without_a_known_goal(call, tree):
    other = Path("batch_science/speech/lstm/sgd")
    other.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(next(tree.glob("*/*/*")), other)
    assert call("import", str(tree), "--workers", "1").code == 0

    answer = call("report")

    assert answer.code == 0
    assert "has no known goal (give it one); it is left out" in answer.err


def test_an_export_says_that_what_was_confirmed_stays_behind(call, lab):
    told = {"goal": "val/loss < 1", "seeds": 1, "trial_ids": [], "end_step": 1, "replicates": []}
    (path,) = Path("lab/sweeps").glob("*/16")
    StudyFolder(path).finish_confirmation(Confirmation.parse(told, "test"), Measurements.of([]))

    answer = call("export", "out")

    assert answer.code == 0
    assert re.fullmatch(r"out: 2 studies, digest [0-9a-f]{32}\n", answer.out)
    assert "no place for replicates" in answer.err


def test_the_count_of_what_was_left_out_stands_in_status_and_report_ever_after(call, tree):
    (tree / WORKLOAD / "16" / "2" / "metadata.json").write_text("{")
    other = tree / "speech" / "lstm" / "sgd"
    shutil.copytree(tree / WORKLOAD / "64", other / "64")
    (other / "64" / "study.json").write_text("{")
    call("import", str(tree), "--workers", "1")
    (tree / WORKLOAD / "16" / "2" / "metadata.json").unlink()
    call("import", str(tree), "--workers", "1")

    table = call("status").out.splitlines()
    rows = json.loads(call("status", "--json").out)
    call("report", "--out", "report.html")
    page = Path("report.html").read_text()

    assert table[0].split()[5] == "rejected"
    assert [(row["workload"], row["rejected"]) for row in rows] == [(WORKLOAD, 1), ("nothing came", 1)]
    assert "1 broken study or trial of its archive was left out of the lab" in page
    assert "1 broken study or trial of other workloads was left out of the lab" in page


def test_a_sweep_of_the_same_name_is_refused_and_as_gives_it_another(call, lab, tree):
    path = tree / WORKLOAD / "16" / "2" / "measurements.csv"
    path.write_text(path.read_text().replace("0.3", "0.31"))
    before = call("curve").out

    refused = call("import", str(tree), "--workers", "1")
    stored = call("import", str(tree), "--workers", "1", "--as", "other")

    assert refused.code == 2
    assert len(refused.err.splitlines()) == 1
    assert "holds a sweep" in refused.err
    assert "--as NAME" in refused.err
    assert stored.code == 0
    assert call("curve", WORKLOAD.replace("/", "--")).out == before


def test_an_import_of_what_is_there_says_so(call, lab, tree):
    answer = call("import", str(tree), "--workers", "1")

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[-1] == (
        f"The lab held sweep {WORKLOAD.replace('/', '--')} of it already, and is as it was there. Nothing was stored."
    )


def test_an_export_and_its_import_print_the_same_digest(call, lab):
    exported = call("export", "out").out.split()[-1]
    answer = call("import", "out", "--lab", "again", "--workers", "1").out

    assert f"All files are as their manifest says; its digest is {exported}." in answer


def test_an_export_into_a_folder_with_something_in_it_is_refused(call, lab):
    Path("out").mkdir()
    Path("out/mine").write_text("mine")

    answer = call("export", "out")

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("batchlab: out is not empty.")


def test_more_processes_than_any_machine_has_are_refused(call, tree):
    answer = call("import", str(tree), "--workers", "5000")

    assert answer.code == 2
    assert not Path("lab").exists()
