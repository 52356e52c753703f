"""Images that are kept as bytes: where they are cut, and how they are scaled."""

from __future__ import annotations

import numpy as np
import torch

from batchlab.data.base import ImageView
from batchlab.engine.objectives import OBJECTIVES
from batchlab.engine.problem import Problem, view_images
from batchlab.engine.source import Split

PLAIN = ImageView(size=2, mean=(0.0,), std=(1 / 255,))  # values as they are
IMAGE = torch.arange(16, dtype=torch.uint8).reshape(1, 4, 4, 1)


def test_the_middle_is_seen_where_nothing_is_drawn():
    assert view_images(IMAGE, PLAIN)[0, 0].tolist() == [[5.0, 6.0], [9.0, 10.0]]


def test_a_cut_starts_where_it_says_and_may_be_flipped():
    images = IMAGE.expand(2, 4, 4, 1)

    views = view_images(images, PLAIN, torch.tensor([[0, 2, 0], [2, 0, 1]]))

    assert views[0, 0].tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert views[1, 0].tolist() == [[9.0, 8.0], [13.0, 12.0]]


def test_channels_come_first_and_are_scaled_each_by_its_own():
    images = torch.tensor([[[[255, 0]]]], dtype=torch.uint8)
    view = ImageView(size=1, mean=(0.5, 0.25), std=(0.5, 0.25))

    assert view_images(images, view)[0].flatten().tolist() == [1.0, -1.0]


def test_cuts_cover_the_image_and_flip_half_of_the_time():
    split = Split(torch.zeros(1, 6, 5, 3, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64))
    problem = Problem(
        None, OBJECTIVES["classification"], 2, split, {}, torch.device("cpu"), ImageView(4, (0,) * 3, (1,) * 3)
    )

    cuts = problem.draw_cuts(np.random.default_rng(0), 4000)

    assert set(cuts[:, 0]) == {0, 1, 2}
    assert set(cuts[:, 1]) == {0, 1}
    assert 0.45 < cuts[:, 2].mean() < 0.55
