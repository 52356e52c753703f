"""Numbers from the published archive's README: its table, and the sums of it in the reference notes."""

from __future__ import annotations

import dataclasses
from itertools import groupby

import pytest

from batchlab.published.inventory import InventoryStudy, inventory


def test_inventory_has_454_studies_of_35_workloads() -> None:
    assert 454 == len(inventory())
    assert 35 == len({study.workload for study in inventory()})
    assert 454 == len({(study.workload, study.batch_size) for study in inventory()})


def test_inventory_adds_up_to_the_trials_of_the_readme() -> None:
    assert 108_194 == sum(study.complete for study in inventory())
    assert 43_508 == sum(study.incomplete for study in inventory())
    assert 42_697 == sum(study.infeasible for study in inventory())


def test_a_study_is_a_row_of_the_table() -> None:
    row = InventoryStudy("cifar_10", "cifar_10", "resnet_8", "nesterov_momentum", 2, 165, 0, 108)

    assert row == inventory()[0]


def test_workload_is_the_path_in_the_archive() -> None:
    names = {study.workload for study in inventory()}

    assert "mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum" in names
    assert "imagenet/vgg_11/nesterov_momentum" in names


def test_dataset_is_the_last_part_of_the_base_dir() -> None:
    assert all(study.dataset == study.base_dir.split("/")[-1] for study in inventory())


def test_batch_sizes_ascend_within_a_workload_and_workloads_are_not_torn() -> None:
    groups = [(name, [s.batch_size for s in studies]) for name, studies in groupby(inventory(), lambda s: s.workload)]

    assert 35 == len(groups)
    assert all(sizes == sorted(sizes) for _, sizes in groups)


def test_outlier_of_vgg_11_at_its_largest_batch_size() -> None:
    largest = [s for s in inventory() if s.model == "vgg_11"][-1]

    assert (65_536, 1_035) == (largest.batch_size, largest.infeasible)


def test_studies_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        inventory()[0].complete = 0  # type: ignore[misc]
