from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from batchlab.core.workload import Named
from batchlab.data import registry
from batchlab.errors import DataError, SpecError


def offline(url: str, max_bytes: int) -> bytes:
    raise OSError("no network")


def test_all_datasets_are_listed():
    images = ["cifar_10", "imagenet", "imagenet_half_classes", "imagenet_half_images", "open_images_v4", "scene"]
    texts = ["common_crawl", "lm1b", "lm1b_sample", "tiny_shakespeare", "wikitext_2"]
    small = ["digits", "fashion_mnist", "mnist", "nqm", "tiny_imagenet"]

    assert registry.names() == sorted([*images, *texts, *small])


@pytest.mark.parametrize("name", registry.names())
def test_what_cannot_be_fetched_says_where_to_put_it(name, tmp_path):
    facts = registry.facts(Named(name=name))

    assert registry.data_state(Named(name=name), tmp_path) != "missing" or facts.place or facts.files


@pytest.mark.parametrize("name", ["digits", "mnist", "fashion_mnist"])
def test_classification_sets_share_their_metrics_splits_and_options(name):
    facts = registry.facts(Named(name=name))

    assert facts.name == name
    assert facts.metrics == ("classification_error", "cross_entropy_error")
    assert facts.splits == ("train", "val", "test")
    assert facts.options == ("train_examples", "scaling")
    assert "licence" in facts.source


def test_the_noisy_quadratic_model_has_no_examples_and_no_files():
    facts = registry.facts(Named(name="nqm"))

    assert (facts.train_examples, facts.val_examples, facts.test_examples) == (None, None, None)
    assert (facts.metrics, facts.splits, facts.files) == (("risk",), ("val",), ())
    assert facts.input_shape == (100,)
    assert registry.facts(Named(name="nqm", dimension=7)).input_shape == (7,)


def test_an_unknown_dataset_is_refused_with_the_closest_name():
    with pytest.raises(SpecError, match=r'Unknown dataset "minst"\. Did you mean "mnist"\?'):
        registry.facts(Named(name="minst"))


@pytest.mark.parametrize(("name", "option"), [("mnist", "train_exampels"), ("mnist", "dimension"), ("nqm", "seed")])
def test_an_unknown_option_is_refused_with_the_known_ones(name, option):
    known = ", ".join(sorted(registry.facts(Named(name=name)).options))

    with pytest.raises(SpecError, match=f'Unknown option of dataset {name} "{option}".*Known: {known}.'):
        registry.facts(Named.model_validate({"name": name, option: 5}))


@pytest.mark.parametrize("value", [0, -1, 55_001, 10.0, "10", True, None])
def test_train_examples_must_be_a_whole_number_up_to_the_full_size(value):
    with pytest.raises(SpecError, match=f"train_examples = {value!r} of dataset mnist must be .* from 1 to 55,000"):
        registry.facts(Named(name="mnist", train_examples=value))


@pytest.mark.parametrize("value", [1, 55_000])
def test_train_examples_changes_only_the_size_of_the_training_set(value):
    facts = registry.facts(Named(name="mnist", train_examples=value))

    assert (facts.train_examples, facts.val_examples, facts.test_examples) == (value, 5_000, 10_000)


@pytest.mark.parametrize("value", [0, 2.5, False])
def test_dimension_must_be_a_whole_number_from_1(value):
    with pytest.raises(SpecError, match=f"dimension = {value!r} of dataset nqm"):
        registry.facts(Named(name="nqm", dimension=value))


def test_loading_a_subset_gives_part_of_the_training_set_and_all_of_the_others():
    full = registry.load(Named(name="digits"))
    subset = registry.load(Named(name="digits", train_examples=100))

    assert np.array_equal(subset.train.inputs, full.take(100, seed=0).train.inputs)
    assert (len(subset.train), len(subset.val), len(subset.test)) == (100, 250, 250)


def test_the_noisy_quadratic_model_cannot_be_loaded():
    with pytest.raises(SpecError, match='Dataset "nqm" has no examples to load'):
        registry.load(Named(name="nqm"))


@pytest.mark.parametrize("name", ["digits", "nqm"])
def test_what_needs_no_files_is_present(name):
    assert registry.data_state(Named(name=name)) == "present"


def test_data_state_follows_the_files(shared_data, tmp_path):
    mnist = Named(name="mnist", train_examples=10)

    assert registry.data_state(mnist, shared_data) == "present"
    assert registry.data_state(mnist, tmp_path) == "fetchable"
    shutil.copytree(shared_data / "mnist", tmp_path / "mnist", copy_function=shutil.copyfile)
    assert registry.data_state(mnist, tmp_path) == "present"
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    assert registry.data_state(mnist, tmp_path) == "fetchable"
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(b"cut")
    assert registry.data_state(mnist, tmp_path) == "missing"


def test_missing_files_are_fetched_and_serve_the_next_load(shared_data, cache):
    def published(url: str, max_bytes: int) -> bytes:
        return (shared_data / "mnist" / url.rpartition("/")[2]).read_bytes()

    fetched = registry.load(Named(name="mnist", train_examples=10), None, published)

    assert registry.data_state(Named(name="mnist")) == "present"
    assert sorted(path.name for path in (cache / "mnist").iterdir()) == sorted(
        file.name for file in registry.facts(Named(name="mnist")).files
    )
    again = registry.load(Named(name="mnist", train_examples=10), None, offline)
    assert np.array_equal(fetched.train.inputs, again.train.inputs)


def test_offline_a_missing_file_is_named():
    with pytest.raises(DataError, match=r"fashion-mnist/train-images-idx3-ubyte\.gz is missing"):
        registry.load(Named(name="fashion_mnist"), None, offline)


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"])
def test_a_truncated_file_is_refused_by_name(shared_data, tmp_path, name):
    shutil.copytree(shared_data / "mnist", tmp_path / "mnist", copy_function=shutil.copyfile)
    os.truncate(tmp_path / "mnist" / name, 1000)

    with pytest.raises(DataError, match=f"{name} is not the published .* of 1,000 bytes"):
        registry.load(Named(name="mnist"), tmp_path, offline)


def test_the_files_of_another_dataset_are_refused(shared_data):
    """MNIST and Fashion-MNIST use the same file names."""
    with pytest.raises(DataError, match=r"is not the published mnist/train-images-idx3-ubyte\.gz"):
        registry.load(Named(name="mnist"), shared_data / "fashion-mnist", offline)


def test_facts_are_told_without_importing_anything_heavy():
    program = (
        "import sys; from batchlab.core.workload import Named; from batchlab.data import registry;"
        "registry.facts(Named(name='digits')); registry.data_state(Named(name='mnist'));"
        "print([name for name in ('sklearn', 'scipy', 'torch', 'PIL', 'urllib.request') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == "[]"
