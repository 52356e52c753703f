"""The paper's workloads: names and batch sizes of the archive's README table, goals of the reference, section 8.4."""

from __future__ import annotations

import pytest

from batchlab.catalogue.paper import paper_names, paper_spec, search_space_source
from batchlab.core.sweep import Sweep
from batchlab.errors import SpecError
from batchlab.published.inventory import inventory
from batchlab.spec.check import check_sweep

POWERS = [2**power for power in range(17)]


def sweep_of(name):
    return Sweep.parse(paper_spec(name), name)


def test_there_are_as_many_as_in_the_archive():
    assert len(paper_names()) == 35
    assert set(paper_names()) == {study.workload for study in inventory()}


@pytest.mark.parametrize("name", paper_names())
def test_every_spec_is_sound_and_goes_by_the_name_of_the_archive(name):
    sweep = sweep_of(name)

    check_sweep(sweep)

    assert sweep.workload.name == name
    assert sweep.search.protocol == "full"
    assert sweep.search.attempts == 500
    assert sweep.search.batch_sizes == tuple(study.batch_size for study in inventory() if study.workload == name)


def test_no_sweep_is_named_like_another_or_like_an_import():
    """`batchlab import` names a sweep after its workload, with -- for /."""
    names = {paper_spec(name)["name"] for name in paper_names()}

    assert len(names) == 35
    assert not names & {name.replace("/", "--") for name in paper_names()}


@pytest.mark.parametrize(
    ("name", "batch_sizes"),
    [
        ("mnist/simple_cnn_base/nesterov_momentum", [1, 2, 8, 32, 128, 512, 2048, 8192, 32768, 55000]),
        ("mnist/fc_1024/sgd", [*POWERS[:16], 55000]),
        ("mnist_subsets/mnist_6875/simple_cnn_base/nesterov_momentum", [*POWERS[:13], 6875]),
        ("cifar_10/resnet_8/sgd", POWERS[1:14]),
        ("imagenet/resnet_50/nesterov_momentum", POWERS[6:17]),
        ("imagenet/vgg_11/nesterov_momentum", [32, 64, *POWERS[8:17]]),
        ("lm1b/transformer_shallow/sgd", [32, 128, 512, 2048, 8192]),
        ("common_crawl/transformer_base/nesterov_momentum", [32, 64, 256, 1024, 4096, 16384]),
    ],
)
def test_batch_sizes_are_those_of_the_reference(name, batch_sizes):
    """Reference, section 9."""
    assert paper_spec(name)["sweep"]["batch_sizes"] == batch_sizes


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("mnist/simple_cnn_base/nesterov_momentum", "val/classification_error < 0.01"),
        ("mnist/fc_2048_2048_2048/sgd", "val/classification_error < 0.03"),
        ("mnist_subsets/mnist_13750/simple_cnn_base/nesterov_momentum", "val/classification_error < 0.02"),
        ("fashion_mnist/simple_cnn_base/nesterov_momentum", "val/classification_error < 0.1"),
        ("cifar_10/resnet_8/nesterov_momentum", "val/classification_error < 0.3"),
        ("imagenet/resnet_50/nesterov_momentum", "val/classification_error < 0.25"),
        ("imagenet/vgg_11/nesterov_momentum", "val/classification_error < 0.35"),
        (
            "imagenet_subsets/imagenet_half_classes/resnet_50/nesterov_momentum",
            "val/classification_error < 0.3",
        ),
        ("open_images_v4/resnet_50/nesterov_momentum", "val/average_precision > 0.31"),
        ("lm1b/transformer_base/nesterov_momentum", "val/cross_entropy_error < 3.9"),
        ("lm1b/transformer_wide/nesterov_momentum", "val/cross_entropy_error < 4.2"),
    ],
)
def test_goals_are_those_of_the_reference(name, goal):
    assert str(sweep_of(name).search.hardest_goal) == goal


def test_three_workloads_have_half_the_trials():
    """Reference, section 7, point 5."""
    halved = {name for name in paper_names() if paper_spec(name)["sweep"]["trials"] == 50}

    assert halved == {
        "lm1b/transformer_shallow/sgd",
        "lm1b/lstm/nesterov_momentum",
        "common_crawl/transformer_base/nesterov_momentum",
    }
    assert {paper_spec(name)["sweep"]["trials"] for name in set(paper_names()) - halved} == {100}


def test_the_published_box_of_imagenet_is_taken_as_it_is():
    """Reference, section 7.1, first row."""
    spec = paper_spec("imagenet/resnet_50/nesterov_momentum")

    assert spec["sweep"]["max_steps"] == 600_000
    assert spec["search_space"] == {
        "learning_rate": {"min": 1e-4, "max": 10, "scale": "log"},
        "momentum": {"min": 0.9, "max": 0.9999, "scale": "reverse_log"},
        "end_learning_rate_factor": {"min": 1e-4, "max": 0.1, "scale": "log"},
        "learning_rate_decay_steps": {"min": 300_000, "max": 600_000, "type": "integer"},
        "label_smoothing": {"values": [0.0, 0.01, 0.1]},
    }


DECAYING = [name for name in paper_names() if paper_spec(name)["workload"]["schedule"] != "constant"]


def test_seven_workloads_decay():
    """Reference, section 6: ResNet-8, ResNet-50 and VGG-11."""
    assert len(DECAYING) == 7
    assert {name.split("/")[-2] for name in DECAYING} == {"resnet_8", "resnet_50", "vgg_11"}


@pytest.mark.parametrize("name", DECAYING)
def test_decaying_workloads_have_a_length_for_each_batch_size(name):
    sweep = sweep_of(name)

    assert sorted(sweep.at) == list(sweep.search.batch_sizes)
    for study in sweep.studies():
        decay = study.search_space["learning_rate_decay_steps"]
        assert (decay.min, decay.max) == (study.max_steps // 2, study.max_steps)


@pytest.mark.parametrize(
    ("name", "lengths"),
    [
        # Figure 1: 128300, 6574, 1087 and 934 steps
        ("cifar_10/resnet_8/nesterov_momentum", {2: 260_000, 32: 14_000, 256: 2_200, 8192: 1_900}),
        # Figure 1: 1416000, 13000 and 6406 steps; 256 is published
        ("imagenet/resnet_50/nesterov_momentum", {64: 2_900_000, 256: 600_000, 8192: 26_000, 65536: 13_000}),
        # Figure 1: 1627000 and 13880 steps
        ("imagenet/vgg_11/nesterov_momentum", {32: 3_300_000, 65536: 28_000}),
        # as on all of ImageNet
        ("imagenet_subsets/imagenet_half_images/resnet_50/nesterov_momentum", {256: 770_000, 32768: 17_000}),
        # Figure 4: plain SGD ends up about four times as high as Nesterov momentum
        ("cifar_10/resnet_8/sgd", {2: 260_000, 8192: 7_000}),
    ],
)
def test_a_length_is_twice_the_published_steps_rounded_up_to_two_digits(name, lengths):
    sweep = sweep_of(name)

    assert {size: sweep.study(size).max_steps for size in lengths} == lengths


@pytest.mark.parametrize("name", sorted(set(paper_names()) - set(DECAYING)))
def test_workloads_of_constant_rate_have_one_length_for_all(name):
    assert "at" not in paper_spec(name)


def test_the_published_box_of_the_transformer_is_taken_as_it_is():
    """Reference, section 7.1, second row."""
    assert paper_spec("lm1b/transformer_base/nesterov_momentum")["search_space"] == {
        "learning_rate": {"min": 1e-4, "max": 1e-1, "scale": "log"},
        "momentum": {"min": 0.0, "max": 0.9999, "scale": "reverse_log"},
    }


def test_what_is_not_published_is_called_ours():
    sources = {name: search_space_source(name) for name in paper_names()}

    assert {name for name, source in sources.items() if source == "published"} == {
        "imagenet/resnet_50/nesterov_momentum",
        "lm1b/transformer_base/nesterov_momentum",
    }
    assert set(sources.values()) == {"published", "ours"}


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("cifar_10/resnet_8/sgd", {"name": "linear_decay", "end_learning_rate_factor": 0.01}),
        ("imagenet/vgg_11/nesterov_momentum", {"name": "linear_decay", "end_learning_rate_factor": 0.001}),
        ("open_images_v4/resnet_50/nesterov_momentum", "linear_decay"),
        ("mnist/simple_cnn_wide/sgd", "constant"),
        ("lm1b/lstm/nesterov_momentum", "constant"),
    ],
)
def test_schedules_are_those_of_the_reference(name, schedule):
    """Reference, section 6.1."""
    assert paper_spec(name)["workload"]["schedule"] == schedule


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        (
            "mnist_subsets/mnist_27500/simple_cnn_base/nesterov_momentum",
            {"name": "mnist", "train_examples": 27500, "scaling": "per_image"},
        ),
        (
            "solution_quality/mnist/simple_cnn_base/nesterov_momentum",
            {"name": "mnist", "scaling": "per_image"},
        ),
        ("imagenet_subsets/imagenet_half_images/resnet_50/nesterov_momentum", "imagenet_half_images"),
    ],
)
def test_a_workload_that_would_be_taken_for_another_has_an_alias(name, dataset):
    workload = paper_spec(name)["workload"]

    assert (workload["dataset"], workload["alias"]) == (dataset, name)
    assert "alias" not in paper_spec("mnist/fc_1024/sgd")["workload"]


@pytest.mark.parametrize("name", [name for name in paper_names() if "mnist" in name])
def test_every_image_of_the_mnists_is_standardised_and_trials_are_looked_at_every_10_steps(name):
    sweep = sweep_of(name)

    assert sweep.workload.dataset.options["scaling"] == "per_image"
    assert (sweep.search.evaluate.every, sweep.search.evaluate.growth) == (10, 1.03)


def test_an_unknown_name_is_told_with_the_closest():
    with pytest.raises(SpecError, match='^Unknown paper workload "cifar_10/resnet_8/sdg"') as caught:
        paper_spec("cifar_10/resnet_8/sdg")

    assert 'Did you mean "cifar_10/resnet_8/sgd"?' in str(caught.value)
