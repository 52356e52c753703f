"""Samplers: the points of a study, all drawn up front, so that they never depend on timing.

Version 1 of the quasirandom samplers only scrambled digits. In base 2 that flips them, so trial 7 of two batch sizes
had learning rates that went together. Version 2 makes the studies of a sweep independent: each shifts its points by a
random vector of its own, modulo 1, and shuffles their order within blocks of 8, 8, 16, 32, ... points. Version 3
shuffles a grid, too, and spaces its whole numbers evenly; the other samplers draw as in version 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

import numpy as np

from batchlab.core.limits import MOST_POINTS
from batchlab.core.seeds import Stream, generator
from batchlab.core.study import Study
from batchlab.errors import SpecError, shown, unknown_name

Design = Callable[[int, int, np.random.Generator], np.ndarray]

_FIRST_BLOCK = 8


def draw_points(study: Study) -> list[dict[str, float]]:
    """Return the searched metaparameters of trial 0, 1, ... of a study: `attempts` points, or the whole grid.

    The first N points are the same for any number of attempts. Where nothing is searched the one point is
    repeated: its trials differ by their seeds.
    """
    space = study.search_space
    if not space.names:
        return [{} for _ in range(study.attempts)]
    rng = generator(study.seed, Stream.DESIGN, study.batch_size)
    if study.sampler == "grid":
        return _grid(study, rng)
    if study.sampler not in _DESIGNS:
        raise SpecError(unknown_name("sampler", study.sampler, [*_DESIGNS, "grid"]))
    return [space.point(units) for units in _design(study)(study.attempts, len(space.names), rng)]


def _design(study: Study) -> Design:
    design = _DESIGNS[study.sampler]
    if study.sampler_version == 1 or study.sampler == "random":
        return design
    return partial(_independent, design)


def _independent(design: Design, num_points: int, num_dimensions: int, rng: np.random.Generator) -> np.ndarray:
    """Return points of a quasirandom design, shifted and shuffled so that two studies have nothing in common.

    Whole blocks are drawn and then cut, and their number grows to the right alone, so that the first points are the
    same however many are asked for.
    """
    ends = _block_ends(num_points)
    units = design(ends[-1], num_dimensions, rng)
    units = (units + rng.random(num_dimensions)) % 1
    blocks = [rng.permutation(block) for block in np.split(units, ends[:-1])]
    return np.concatenate(blocks)[:num_points]


def _block_ends(num_points: int) -> list[int]:
    """Return where the blocks end that hold `num_points`: 8, 16, 32, 64, ...

    >>> _block_ends(20)
    [8, 16, 32]
    """
    ends = [_FIRST_BLOCK]
    while ends[-1] < num_points:
        ends.append(2 * ends[-1])
    return ends


def _halton(num_points: int, num_dimensions: int, rng: np.random.Generator) -> np.ndarray:
    from scipy.stats import qmc  # slow to import, and only runs draw points

    return np.asarray(qmc.Halton(num_dimensions, scramble=True, rng=rng).random(num_points))


def _sobol(num_points: int, num_dimensions: int, rng: np.random.Generator) -> np.ndarray:
    from scipy.stats import qmc

    # Only a power of two of Sobol points is balanced, and scipy warns of other numbers: draw one and cut.
    exponent = (num_points - 1).bit_length()
    return np.asarray(qmc.Sobol(num_dimensions, scramble=True, rng=rng).random_base2(exponent)[:num_points])


def _random(num_points: int, num_dimensions: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((num_points, num_dimensions))


_DESIGNS: dict[str, Design] = {"halton": _halton, "sobol": _sobol, "random": _random}


def _grid(study: Study, rng: np.random.Generator) -> list[dict[str, float]]:
    """Return every combination of the dimensions' grid values, in an order of this study's own.

    So fewer trials than combinations are spread over the grid. Before version 3 the last dimension changed fastest,
    and the first trials lay in one corner.
    """
    check_points(study)
    space, is_even = study.search_space, study.sampler_version >= 3
    combinations = list(itertools.product(*(space[name].grid(is_even=is_even) for name in space.names)))
    order = rng.permutation(len(combinations)) if is_even else range(len(combinations))
    return [space.read(dict(zip(space.names, combinations[i], strict=True))) for i in order]


def check_points(study: Study) -> None:
    """Raise SpecError where a grid has fewer points than trials, or more than can be; none is drawn."""
    if study.sampler != "grid" or not study.search_space.names:
        return
    size = math.prod(_grid_size(study, name) for name in study.search_space.names)
    if size < study.trials:
        raise SpecError(
            f"The grid has {size} points, but sweep.trials = {study.trials}. "
            "Take more `points` from a range, or ask for fewer trials."
        )
    if size > MOST_POINTS:
        raise SpecError(f"The grid has {size:,} points, more than {MOST_POINTS:,}: take fewer `points` from a range.")


def _grid_size(study: Study, name: str) -> int:
    try:
        return study.search_space[name].grid_size()
    except ValueError as error:
        raise SpecError(f"`search_space.{shown(name)}`: {error}.") from None
