"""The made-up archive against the published one's description: layout, fields, inventory, goals."""

from __future__ import annotations

import csv
import importlib
import json
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from batchlab.core.goal import Goal
from batchlab.core.space import Range
from batchlab.published.inventory import InventoryStudy, inventory

SCALE = 0.01
STUDIES = {
    "imagenet/resnet_50/nesterov_momentum": [64, 256, 65536],
    "imagenet/vgg_11/nesterov_momentum": [65536],
    "imagenet_subsets/imagenet_half_images/resnet_50/nesterov_momentum": [1024],
    "cifar_10/resnet_8/sgd": [128],
    "open_images_v4/resnet_50/nesterov_momentum": [1024],
    "common_crawl/transformer_base/nesterov_momentum": [4096],
    "lm1b/lstm/nesterov_momentum": [16],
    "lm1b/transformer_base/nesterov_momentum": [1024],
    "mnist/fc_1024/sgd": [512],
    "mnist/simple_cnn_base/momentum": [1],
    "mnist_subsets/mnist_13750/simple_cnn_base/nesterov_momentum": [64],
    "solution_quality/mnist/simple_cnn_base/nesterov_momentum": [2048],
}
GOALS = {
    "imagenet/": "val/classification_error < 0.25",
    "imagenet/vgg_11/": "val/classification_error < 0.35",
    "imagenet_subsets/": "val/classification_error < 0.3",
    "cifar_10/": "val/classification_error < 0.3",
    "open_images_v4/": "val/average_precision > 0.31",
    "common_crawl/": "val/cross_entropy_error < 3.9",
    "lm1b/": "val/cross_entropy_error < 3.9",
    "lm1b/transformer_wide/": "val/cross_entropy_error < 4.2",
    "lm1b/transformer_narrow_and_shallow/": "val/cross_entropy_error < 4.2",
    "fashion_mnist/": "val/classification_error < 0.1",
    "solution_quality/fashion_mnist/": "val/classification_error < 0.1",
    "mnist/fc_": "val/classification_error < 0.03",
    "mnist/simple_cnn_": "val/classification_error < 0.01",
    "solution_quality/mnist/": "val/classification_error < 0.01",
    "mnist_subsets/": "val/classification_error < 0.02",
}
"""The goals of the published figures, by the beginning of the workload's name; the longest one counts."""


def goal_of(workload: str) -> Goal:
    return Goal.read(GOALS[max(filter(workload.startswith, GOALS), key=len)])


def chosen_studies() -> list[InventoryStudy]:
    return [study for study in inventory() if study.batch_size in STUDIES.get(study.workload, [])]


@pytest.fixture(scope="module")
def make_archive() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        yield importlib.import_module("make_archive")
    del sys.modules["make_archive"]


@pytest.fixture(scope="module")
def archive(make_archive: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("archive") / "batch_science"
    make_archive.write_archive(chosen_studies(), SCALE, 0, folder)
    return folder


def study_folder(archive: Path, study: InventoryStudy) -> Path:
    return archive / study.workload / str(study.batch_size)


def trial_folders(folder: Path) -> list[Path]:
    return sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda path: int(path.name))


def read_json(path: Path) -> Any:
    return json.loads(path.read_text())


def read_rows(trial: Path) -> dict[str, np.ndarray]:
    with (trial / "measurements.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, np.array(rows, dtype=float).T, strict=True))


def all_trials(archive: Path) -> list[tuple[InventoryStudy, Path, dict[str, Any]]]:
    return [
        (study, trial, read_json(trial / "metadata.json"))
        for study in chosen_studies()
        for trial in trial_folders(study_folder(archive, study))
    ]


def test_all_twelve_workloads_are_in_the_inventory() -> None:
    assert 14 == len(chosen_studies())


def test_layout_is_the_published_one(archive: Path, make_archive: Any) -> None:
    expected = set()
    for study in chosen_studies():
        folder = study_folder(archive, study)
        expected.add(folder / "study.json")
        for trial_id in range(1, 1 + sum(make_archive.trial_counts(study, SCALE).values())):
            expected |= {folder / str(trial_id) / name for name in ("metadata.json", "measurements.csv")}

    assert expected == {path for path in archive.rglob("*") if path.is_file()}


def test_study_json_of_the_readme_sample(archive: Path) -> None:
    """The published README prints this study, in this style: sorted, two spaces, a space after the comma."""
    text = (archive / "imagenet/resnet_50/nesterov_momentum/256/study.json").read_text()

    assert {
        "batch_size": 256,
        "dataset": "imagenet",
        "early_stopping": False,
        "model": "resnet_50",
        "optimizer": "nesterov_momentum",
        "parameter_configs": {
            "end_learning_rate_factor": {
                "max_value": 0.1,
                "min_value": 0.0001,
                "scale": "LOG_SCALE",
                "type": "DOUBLE",
            },
            "label_smoothing": {"feasible_points": [0.0, 0.01, 0.1], "type": "DISCRETE"},
            "learning_rate": {"max_value": 10.0, "min_value": 0.0001, "scale": "LOG_SCALE", "type": "DOUBLE"},
            "learning_rate_decay_steps": {
                "max_value": 600000,
                "min_value": 300000,
                "scale": "",
                "type": "INTEGER",
            },
            "momentum": {"max_value": 0.9999, "min_value": 0.9, "scale": "REVERSE_LOG_SCALE", "type": "DOUBLE"},
        },
        "train_steps": 600000,
    } == json.loads(text)
    assert text.startswith('{\n  "batch_size": 256, \n  "dataset": "imagenet", \n  "early_stopping": false, \n')


def test_every_study_json_names_its_own_folder(archive: Path) -> None:
    for study in chosen_studies():
        record = read_json(study_folder(archive, study) / "study.json")

        assert [
            "batch_size",
            "dataset",
            "early_stopping",
            "model",
            "optimizer",
            "parameter_configs",
            "train_steps",
        ] == list(record)
        assert study.batch_size == record["batch_size"]
        assert (study.dataset, study.model, study.optimizer) == tuple(
            record[name] for name in ("dataset", "model", "optimizer")
        )


@pytest.mark.parametrize(
    ("place", "names"),
    [
        ("cifar_10/resnet_8/sgd/128", "learning_rate learning_rate_decay_steps"),
        ("imagenet/vgg_11/nesterov_momentum/65536", "learning_rate learning_rate_decay_steps momentum"),
        (
            "imagenet/resnet_50/nesterov_momentum/64",
            "end_learning_rate_factor learning_rate learning_rate_decay_steps momentum",
        ),
        ("mnist/fc_1024/sgd/512", "learning_rate"),
        ("mnist/simple_cnn_base/momentum/1", "learning_rate momentum"),
        ("lm1b/transformer_base/nesterov_momentum/1024", "learning_rate momentum"),
    ],
)
def test_fixed_metaparameters_are_missing(archive: Path, place: str, names: str) -> None:
    """ResNet-8 and VGG-11 have a fixed end factor, SGD has no momentum, some studies have no label smoothing."""
    configs = read_json(archive / place / "study.json")["parameter_configs"]

    assert names.split() == list(configs)
    for trial in trial_folders(archive / place):
        assert names.split() == list(read_json(trial / "metadata.json")["parameters"])


def test_a_time_budget_is_told_by_zero_steps(archive: Path) -> None:
    folder = archive / "common_crawl/transformer_base/nesterov_momentum/4096"
    records = [read_json(trial / "metadata.json") for trial in trial_folders(folder)]

    assert 0 == read_json(folder / "study.json")["train_steps"]
    assert 1 < len({record["steps"] for record in records if record["status"] == "COMPLETE"})


def test_every_metadata_json_has_the_published_fields(archive: Path) -> None:
    for _, trial, record in all_trials(archive):
        assert ["_internal_study_name", "_internal_trial_id", "parameters", "status", "steps", "trial_id"] == list(
            record
        )
        assert int(trial.name) == record["trial_id"] == record["_internal_trial_id"]
        assert isinstance(record["_internal_study_name"], str) and isinstance(record["steps"], int)


def test_metaparameters_lie_in_the_search_space(archive: Path) -> None:
    for _, trial, record in all_trials(archive):
        configs = read_json(trial.parent / "study.json")["parameter_configs"]
        for name, value in record["parameters"].items():
            if configs[name]["type"] == "DISCRETE":
                assert value in configs[name]["feasible_points"]
            else:
                assert configs[name]["min_value"] <= value <= configs[name]["max_value"]
            assert (configs[name]["type"] == "INTEGER") == isinstance(value, int)


def test_trials_are_counted_as_the_inventory_has_them(make_archive: Any) -> None:
    study = InventoryStudy("a", "a", "b", "sgd", 2, 165, 0, 108)

    assert [165, 0, 108] == list(make_archive.trial_counts(study, 1.0).values())
    assert [16, 0, 11] == list(make_archive.trial_counts(study, 0.1).values())
    assert [4, 0, 1] == list(make_archive.trial_counts(study, 0.001).values())


def test_statuses_on_disk_have_those_counts(archive: Path, make_archive: Any) -> None:
    for study in chosen_studies():
        trials = trial_folders(study_folder(archive, study))
        counts = Counter(read_json(trial / "metadata.json")["status"] for trial in trials)

        assert {status: n for status, n in make_archive.trial_counts(study, SCALE).items() if n} == counts


@pytest.mark.parametrize(
    ("place", "columns"),
    [
        (
            "mnist/fc_1024/sgd/512",
            "train/cross_entropy_error,train/classification_error,val/cross_entropy_error,val/classification_error,"
            "test/cross_entropy_error,test/classification_error",
        ),
        (
            "open_images_v4/resnet_50/nesterov_momentum/1024",
            "train/cross_entropy_error,train/average_precision,val/cross_entropy_error,val/average_precision,"
            "test/cross_entropy_error,test/average_precision",
        ),
        (
            "lm1b/lstm/nesterov_momentum/16",
            "train/cross_entropy_error,val/cross_entropy_error,test/cross_entropy_error",
        ),
        ("common_crawl/transformer_base/nesterov_momentum/4096", "train/cross_entropy_error,val/cross_entropy_error"),
    ],
)
def test_columns_follow_the_kind_of_workload(archive: Path, place: str, columns: str) -> None:
    for trial in trial_folders(archive / place):
        assert f"step,{columns}" == (trial / "measurements.csv").read_text().splitlines()[0]


def test_steps_start_at_zero_and_ascend_on_the_grid(archive: Path) -> None:
    """Grids as read from the published figures: 500 steps for large datasets, 10 to 100 for small ones."""
    units = {"mnist": 100, "mnist_13750": 50, "cifar_10": 100}
    for study, trial, _ in all_trials(archive):
        steps = read_rows(trial)["step"]
        unit = 10 if study.batch_size >= 512 and "mnist" in study.dataset else units.get(study.dataset, 500)

        assert 0 == steps[0]
        assert np.all(np.diff(steps) > 0)
        assert np.all(steps % unit == 0)


def test_gaps_of_evaluations_alternate(archive: Path) -> None:
    """The published sample trial of this study has gaps of 1000 and 1500 steps."""
    gaps: set[float] = set()
    for trial in trial_folders(archive / "imagenet/resnet_50/nesterov_momentum/256"):
        gaps |= set(np.diff(read_rows(trial)["step"])[:-1])

    assert {1000.0, 1500.0} == gaps


def test_complete_trials_train_to_the_end_and_interrupted_ones_do_not(archive: Path) -> None:
    for _, trial, record in all_trials(archive):
        planned = read_json(trial.parent / "study.json")["train_steps"]
        last_step = read_rows(trial)["step"][-1]
        if record["status"] == "COMPLETE":
            assert planned <= record["steps"] == last_step
        elif planned and record["status"] == "INCOMPLETE":
            assert last_step == record["steps"] < planned
        elif planned:
            assert last_step <= record["steps"] <= planned


def test_values_have_at_most_six_significant_digits(archive: Path) -> None:
    for _, trial, _ in all_trials(archive):
        for line in (trial / "measurements.csv").read_text().splitlines()[1:]:
            for cell in line.split(",")[1:]:
                assert cell == "nan" or len(re.sub(r"e.*|\.", "", cell).lstrip("0")) <= 6


def test_only_infeasible_trials_end_in_nan_and_some_do(archive: Path) -> None:
    with_nan = {record["status"] for _, trial, record in all_trials(archive) if _has_nan(trial)}

    assert {"INFEASIBLE"} == with_nan


def _has_nan(trial: Path) -> bool:
    return any(np.isnan(values).any() for values in read_rows(trial).values())


def test_some_infeasible_trials_had_met_the_goal(make_archive: Any) -> None:
    study = next(study for study in inventory() if study.base_dir == "fashion_mnist")
    plan, rows, columns = _measured(make_archive, study, scale=0.5)
    is_met = goal_of(study.workload).is_met(columns["val/classification_error"])
    share = len(np.unique(rows.trial[is_met & (plan.status == "INFEASIBLE")[rows.trial]])) / np.sum(
        plan.status == "INFEASIBLE"
    )

    assert 0.02 < share < 0.5


def test_train_error_ends_below_validation_error(archive: Path) -> None:
    for _, trial, record in all_trials(archive):
        rows = read_rows(trial)
        if record["status"] == "COMPLETE" and "val/classification_error" in rows:
            assert rows["train/classification_error"][-1] < rows["val/classification_error"][-1]


def test_best_trial_meets_the_goal_near_the_hyperbola(archive: Path, make_archive: Any) -> None:
    for study in chosen_studies():
        law, goal = make_archive.LAWS[study.workload], goal_of(study.workload)
        met = []
        for trial in trial_folders(study_folder(archive, study)):
            rows = read_rows(trial)
            if read_json(trial / "metadata.json")["status"] == "COMPLETE":
                met += list(rows["step"][goal.is_met(rows[goal.metric])])

        assert min(met) == pytest.approx(law.s_min + law.e_min / study.batch_size, rel=0.25)


def test_every_study_has_a_trial_that_meets_its_goal(make_archive: Any) -> None:
    for study in inventory():
        plan, rows, columns = _measured(make_archive, study, scale=0.001)
        goal = goal_of(study.workload)
        is_met = goal.is_met(columns[goal.metric]) & (plan.status == "COMPLETE")[rows.trial]
        law = make_archive.LAWS[study.workload]

        assert rows.step[is_met].min() == pytest.approx(law.s_min + law.e_min / study.batch_size, rel=0.3)


def test_laws_use_the_published_goals(make_archive: Any) -> None:
    for study in inventory():
        assert goal_of(study.workload).threshold == make_archive.LAWS[study.workload].goal


def test_trials_far_from_the_optimum_need_more_steps(make_archive: Any) -> None:
    study = next(s for s in inventory() if s.workload == "mnist/fc_512_512_512/sgd" and s.batch_size == 64)
    plan, rows, columns = _measured(make_archive, study, scale=0.5)
    is_met = goal_of(study.workload).is_met(columns["val/classification_error"])
    is_met &= (plan.status == "COMPLETE")[rows.trial]
    trials, first = np.unique(rows.trial[is_met], return_index=True)
    steps = rows.step[is_met][first]

    assert np.corrcoef(plan.distance[trials], np.log(steps))[0, 1] > 0.9


def _measured(make_archive: Any, study: InventoryStudy, scale: float) -> tuple[Any, Any, dict[str, np.ndarray]]:
    rng = make_archive.study_generator(study, 0)
    plan = make_archive.plan_study(study, scale, rng)
    rows = make_archive.make_rows(plan, rng)
    return plan, rows, make_archive.make_columns(plan, rows, rng)


def test_smoothing_is_needed_only_at_the_largest_batches(make_archive: Any) -> None:
    """Figure 7 of the paper: with 65,536 examples a batch only the strongest label smoothing meets the goal."""
    reached = {}
    for study in inventory():
        if study.workload == "imagenet/resnet_50/nesterov_momentum" and study.batch_size in (1024, 65536):
            plan, rows, columns = _measured(make_archive, study, scale=1.0)
            is_met = columns["val/classification_error"] < 0.25
            is_met &= (plan.status == "COMPLETE")[rows.trial]
            points = [plan.space.point(units) for units in plan.units]
            reached[study.batch_size] = {points[trial]["label_smoothing"] for trial in rows.trial[is_met]}

    assert {1024: {0.0, 0.01, 0.1}, 65536: {0.1}} == reached


def test_known_search_space_of_the_transformer(make_archive: Any) -> None:
    """Figures 9 and 10 of the paper show these extents."""
    study = next(s for s in inventory() if s.workload.startswith("lm1b/transformer_base") and s.batch_size == 512)
    space = make_archive.search_space(study, 1000)

    assert Range(min=1e-4, max=1e-1, scale="log") == space["learning_rate"]
    assert Range(min=0.0, max=0.9999, scale="reverse_log") == space["momentum"]


def test_full_scale_has_the_published_trials_and_measurements(make_archive: Any) -> None:
    """194,399 trials in the README's table, 71,638,836 measurements in the paper's abstract; nothing is written."""
    plans = [make_archive.plan_study(study, 1.0, make_archive.study_generator(study, 0)) for study in inventory()]

    assert 194_399 == sum(len(plan.status) for plan in plans)
    assert sum(plan.rows.sum() for plan in plans) == pytest.approx(71_638_836, rel=0.01)


def test_six_digits_by_hand(make_archive: Any) -> None:
    values = np.array([0.0, 1.0, 0.0123456789, 23456.789, 1.23456789e-7, np.nan])

    np.testing.assert_array_equal([0.0, 1.0, 0.0123457, 23456.8, 1.23457e-7, np.nan], make_archive.six_digits(values))


def test_bytes_do_not_depend_on_the_number_of_processes(make_archive: Any, archive: Path, tmp_path: Path) -> None:
    make_archive.write_archive(chosen_studies(), SCALE, 0, tmp_path, processes=2)

    assert contents(archive) == contents(tmp_path)


def test_another_seed_gives_other_curves(make_archive: Any, archive: Path, tmp_path: Path) -> None:
    study = chosen_studies()[0]
    make_archive.write_study(study, SCALE, 1, tmp_path)
    name = Path(study.workload) / str(study.batch_size) / "1" / "measurements.csv"

    assert (archive / name).read_bytes() != (tmp_path / name).read_bytes()


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_counted_is_what_is_written(make_archive: Any, tmp_path: Path) -> None:
    written = make_archive.write_study(chosen_studies()[0], SCALE, 0, tmp_path)
    files = contents(tmp_path)
    tables = [text for path, text in files.items() if path.name == "measurements.csv"]

    assert len(tables) == written.trials
    assert sum(text.count(b"\n") - 1 for text in tables) == written.rows
    assert sum(map(len, files.values())) == written.bytes


@pytest.mark.parametrize("compression", ["bz2", "gz", "xz"])
def test_tar_holds_the_files_below_batch_science(
    make_archive: Any, archive: Path, tmp_path: Path, compression: str
) -> None:
    studies = chosen_studies()[:1]
    path = tmp_path / "packed"
    make_archive.write_tar(studies, archive, path, compression)
    with tarfile.open(path, f"r:{compression}") as tar:  # type: ignore[call-overload]
        files = {member.name: tar.extractfile(member).read() for member in tar.getmembers() if member.isfile()}
    folder = study_folder(archive, studies[0])

    assert {
        f"batch_science/{folder.relative_to(archive) / name}": text for name, text in contents(folder).items()
    } == files


def test_a_folder_in_the_way_is_refused(
    make_archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "batch_science").mkdir()
    monkeypatch.setattr(sys, "argv", ["make_archive.py", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        make_archive.main()

    assert "batch_science exists already; remove it or choose another folder" in capsys.readouterr().err


@pytest.mark.parametrize("scale", ["0", "1.5", "nan"])
def test_a_scale_that_is_no_fraction_is_refused(
    make_archive: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], scale: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["make_archive.py", str(tmp_path), "--scale", scale])
    with pytest.raises(SystemExit, match="2"):
        make_archive.main()

    assert f"--scale {scale} is not a fraction" in capsys.readouterr().err
