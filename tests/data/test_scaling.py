from __future__ import annotations

import numpy as np
import pytest

from batchlab.core.workload import Named
from batchlab.data import registry
from batchlab.data.scaling import scale_for, standardised
from batchlab.errors import SpecError


def images(*pixels: list[list[int]]) -> np.ndarray:
    """Images of one row each: for every image the pixels of its channels."""
    return np.array(pixels, np.uint8)[:, :, np.newaxis]


def test_unit_divides_by_the_largest_pixel():
    scale = scale_for("unit", images([[0, 0]]))

    assert scale(images([[0, 51, 255]])).ravel() == pytest.approx([0, 0.2, 1])
    assert scale_for("unit", images([[0]]), largest=16)(images([[4]])).item() == 0.25


def test_standard_takes_mean_and_deviation_of_the_training_images_from_every_image():
    """By hand: 0, 2, 4, 10 have mean 4 and variance (16 + 4 + 0 + 36) / 4 = 14."""
    scale = scale_for("standard", images([[0, 2]], [[4, 10]]))

    assert scale(images([[0, 2]], [[4, 10]])).ravel() == pytest.approx(np.array([-4, -2, 0, 6]) / np.sqrt(14))
    assert scale(images([[4, 18]])).ravel() == pytest.approx(np.array([0, 14]) / np.sqrt(14))


def test_standard_goes_channel_by_channel():
    """By hand: the channels have means 1 and 20 and deviations 1 and 10; the third is even."""
    scale = scale_for("standard", images([[0, 2], [10, 30], [5, 5]]))

    assert scale(images([[2, 3], [20, 0], [5, 6]])).ravel().tolist() == [1, 2, 0, -2, 0, 1]


def test_per_image_takes_mean_and_deviation_of_each_image_over_all_pixels_and_channels():
    scale = scale_for("per_image", images([[7, 7]]))

    expected = np.array([-4, -2, 0, 6]) / np.sqrt(14)
    assert scale(images([[0, 2], [4, 10]])).ravel() == pytest.approx(expected)


def test_a_nearly_even_image_is_divided_by_at_least_one_over_the_root_of_its_size():
    """By hand: one of 10,000 values is 1. Its deviation 0.00999... is just below the bound of 1/100."""
    image = np.zeros((1, 1, 100, 100), np.uint8)
    image[0, 0, 0, 0] = 1

    assert standardised(image)[0, 0, 0, 0] == pytest.approx((1 - 1e-4) * 100, rel=1e-6)
    assert np.all(standardised(np.full((1, 3, 32, 32), 200, np.uint8)) == 0)


@pytest.mark.parametrize("scaling", ["unit", "standard", "per_image"])
def test_inputs_are_float32_of_the_images_shape(scaling):
    inputs = scale_for(scaling, images([[0, 2]]))(images([[0, 2]], [[4, 10]]))

    assert (inputs.dtype, inputs.shape) == (np.float32, (2, 1, 1, 2))


@pytest.mark.parametrize("name", ["digits", "mnist", "fashion_mnist", "cifar_10"])
def test_a_scaling_that_is_not_known_is_refused_with_those_that_are(name):
    with pytest.raises(SpecError, match=rf'dataset {name}: Unknown scaling "standart"\. Did you mean "standard"\?'):
        registry.facts(Named(name=name, scaling="standart"))
    with pytest.raises(SpecError, match="scaling = 255 of dataset .* must be one of unit, standard, per_image"):
        registry.facts(Named(name=name, scaling=255))


@pytest.mark.parametrize("name", ["imagenet", "scene", "wikitext_2", "nqm"])
def test_other_datasets_take_no_scaling(name):
    with pytest.raises(SpecError, match=f'Unknown option of dataset {name} "scaling"'):
        registry.facts(Named(name=name, scaling="unit"))


def test_the_mean_and_deviation_are_those_of_the_training_split():
    train = registry.load(Named(name="digits", scaling="standard")).train.inputs

    assert (train.mean(dtype=np.float64), train.std(dtype=np.float64)) == pytest.approx((0, 1), abs=1e-6)


def test_a_subset_is_scaled_as_the_whole_set_is():
    whole = registry.load(Named(name="digits", scaling="standard"))
    part = registry.load(Named(name="digits", scaling="standard", train_examples=10))

    assert np.array_equal(whole.take(10).train.inputs, part.train.inputs)
    assert np.array_equal(whole.val.inputs, part.val.inputs)


def test_bare_names_mean_what_they_always_meant():
    bare = registry.load(Named(name="digits"))

    assert np.array_equal(registry.load(Named(name="digits", scaling="unit")).train.inputs, bare.train.inputs)
    assert (bare.train.inputs.min(), bare.train.inputs.max()) == (0, 1)


@pytest.mark.parametrize("name", ["mnist", pytest.param("fashion_mnist", marks=pytest.mark.slow)])
def test_mnist_is_scaled_by_its_55000_training_images(shared_data, name):
    loaded = registry.load(Named(name=name, scaling="standard"), shared_data)
    train = loaded.train.inputs

    assert (train.mean(dtype=np.float64), train.std(dtype=np.float64)) == pytest.approx((0, 1), abs=1e-5)
    assert 1e-4 < abs(loaded.val.inputs.mean(dtype=np.float64)) < 0.05


def test_each_image_of_mnist_can_be_standardised(shared_data):
    test = registry.load(Named(name="mnist", scaling="per_image"), shared_data).test.inputs

    assert np.allclose(test.mean(axis=(1, 2, 3)), 0, atol=1e-5)
    assert np.allclose(test.std(axis=(1, 2, 3)), 1, atol=1e-5)
