"""Scaling: how the pixels of an image become inputs.

`unit` divides by the largest value. `standard` takes away the mean of the training set and divides by its deviation,
channel by channel. `per_image` does that with the mean and deviation of each image.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, get_args

import numpy as np

Scaling = Literal["unit", "standard", "per_image"]

SCALINGS: tuple[Scaling, ...] = get_args(Scaling)

Scale = Callable[[np.ndarray], np.ndarray]
"""From images [num_examples, channels, height, width] to float32 inputs of that shape."""


def scale_for(scaling: Scaling, train_images: np.ndarray, largest: float = 255) -> Scale:
    """Return what turns images into inputs; `largest` is the largest pixel, `standard` looks at the training images.

    >>> scale_for("unit", np.zeros((1, 1, 1, 2), np.uint8))(np.array([[[[0, 51]]]], np.uint8))
    array([[[[0. , 0.2]]]], dtype=float32)
    """
    if scaling == "unit":
        return partial(_divided, divisor=largest)
    if scaling == "per_image":
        return standardised
    mean = train_images.mean(axis=(0, 2, 3), keepdims=True, dtype=np.float64)
    std = train_images.std(axis=(0, 2, 3), keepdims=True, dtype=np.float64)
    return partial(_less, mean=mean, divisor=np.where(std > 0, std, 1))


def standardised(images: np.ndarray) -> np.ndarray:
    """Return every image less its mean, divided by its standard deviation, over all pixels and channels; float32.

    As TensorFlow does it, the divisor is at least 1 / sqrt(number of values), so that an even image becomes 0.

    >>> standardised(np.array([[1, 3], [5, 5]], np.uint8))
    array([[-1.,  1.],
           [ 0.,  0.]], dtype=float32)
    """
    values = images.reshape(len(images), -1).astype(np.float32)
    mean = values.mean(axis=1, keepdims=True, dtype=np.float64)
    std = values.std(axis=1, keepdims=True, dtype=np.float64)
    values -= mean.astype(np.float32)
    values /= np.maximum(std, values.shape[1] ** -0.5).astype(np.float32)
    return values.reshape(images.shape)


def _divided(images: np.ndarray, divisor: float) -> np.ndarray:
    inputs = images.astype(np.float32)
    inputs /= divisor
    return inputs


def _less(images: np.ndarray, mean: np.ndarray, divisor: np.ndarray) -> np.ndarray:
    inputs = images.astype(np.float32)
    inputs -= mean.astype(np.float32)
    inputs /= divisor.astype(np.float32)
    return inputs
