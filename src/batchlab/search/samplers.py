"""Samplers: the points of a study, all drawn up front, so that they never depend on timing."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from batchlab.core.seeds import Stream, generator
from batchlab.core.study import Study
from batchlab.errors import SpecError, unknown_name

Design = Callable[[int, int, np.random.Generator], np.ndarray]


def draw_points(study: Study) -> list[dict[str, float]]:
    """Return the searched metaparameters of trial 0, 1, ... of a study: `attempts` points, or the whole grid.

    The first N points are the same for any number of attempts. Where nothing is searched the one point is
    repeated: its trials differ by their seeds.
    """
    space = study.search_space
    if not space.names:
        return [{} for _ in range(study.attempts)]
    if study.sampler == "grid":
        return _grid(study)
    if study.sampler not in _DESIGNS:
        raise SpecError(unknown_name("sampler", study.sampler, [*_DESIGNS, "grid"]))
    rng = generator(study.seed, Stream.DESIGN, study.batch_size)
    return [space.point(units) for units in _DESIGNS[study.sampler](study.attempts, len(space.names), rng)]


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


def _grid(study: Study) -> list[dict[str, float]]:
    """Return every combination of the dimensions' grid values, the last dimension changing fastest."""
    names = study.search_space.names
    combinations = itertools.product(*(_grid_values(study, name) for name in names))
    points = [dict(zip(names, values, strict=True)) for values in combinations]
    if len(points) < study.trials:
        raise SpecError(
            f"The grid has {len(points)} points, but sweep.trials = {study.trials}. "
            "Take more `points` from a range, or ask for fewer trials."
        )
    return points


def _grid_values(study: Study, name: str) -> list[float]:
    try:
        return study.search_space[name].grid()
    except ValueError as error:
        raise SpecError(f"`search_space.{name}`: {error}.") from None
