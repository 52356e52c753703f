"""A gradient as one vector, and how far two of them lie apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

LEAST = 1e-9
"""What a layer's part is taken to be at the least, relative to the whole gradient: what is smaller is rounding."""


@dataclass(frozen=True, eq=False)
class Gradient:
    """The values of all parameters' gradients, in float64, and whose they are."""

    values: Tensor
    """[num_values]"""

    layers: tuple[tuple[str, int], ...]
    """The name of each parameter and how many values it has."""

    precision: torch.dtype
    """The coarsest in which one of them was computed."""

    @classmethod
    def of(cls, gradients: Mapping[str, Tensor]) -> Gradient:
        """Return the gradients of parameters by their names as one; a complex number is two values."""
        parts = {name: _real(each.detach().to_dense()) for name, each in gradients.items()}
        coarsest = max((each.dtype for each in parts.values()), key=lambda dtype: torch.finfo(dtype).eps)
        layers = tuple((name, each.numel()) for name, each in parts.items())
        return cls(torch.cat([each.double().flatten() for each in parts.values()]), layers, coarsest)

    def with_values(self, values: Tensor) -> Gradient:
        """Return another gradient of the same parameters."""
        return replace(self, values=values)

    @property
    def norm(self) -> float:
        """The length of the vector."""
        return float(self.values.norm())

    @property
    def is_finite(self) -> bool:
        """Whether every value is a number."""
        return bool(self.values.isfinite().all())

    def by_layer(self) -> Iterator[tuple[str, Tensor]]:
        """Yield the name and the values of each parameter."""
        parts = self.values.split([size for _, size in self.layers])
        yield from ((name, part) for (name, _), part in zip(self.layers, parts, strict=True))


def _real(values: Tensor) -> Tensor:
    return torch.view_as_real(values.resolve_conj()) if values.is_complex() else values


@dataclass(frozen=True)
class Comparison:
    """How a gradient that was found differs from the one of the whole batch."""

    norm_ratio: float
    """The length of the one found, relative to the whole batch's."""

    relative_error: float
    """The length of the difference, relative to the whole batch's."""

    cosine: float
    worst_layer: str
    """The parameter whose difference is largest, relative to its own gradient."""

    worst_error: float


def compare(found: Gradient, whole: Gradient) -> Comparison:
    """Return how `found` differs from the gradient of the whole batch."""
    difference = whole.with_values(found.values - whole.values)
    product = float(found.values @ whole.values)
    layer, error = _worst(difference, found, whole)
    return Comparison(
        norm_ratio=found.norm / whole.norm,
        relative_error=difference.norm / whole.norm,
        cosine=product / (found.norm * whole.norm) if found.norm else 0.0,
        worst_layer=layer,
        worst_error=error,
    )


def _worst(difference: Gradient, found: Gradient, whole: Gradient) -> tuple[str, float]:
    floor = LEAST * whole.norm
    errors = {}
    for (name, apart), (_, mine), (_, theirs) in zip(
        difference.by_layer(), found.by_layer(), whole.by_layer(), strict=True
    ):
        size = max(float(mine.norm()), float(theirs.norm()), floor)
        errors[name] = float(apart.norm()) / size if math.isfinite(size) else math.inf
    name = max(errors, key=errors.__getitem__)
    return name, errors[name]


def distance(one: Gradient, other: Gradient) -> float:
    """Return how far two gradients lie apart, relative to the longer one."""
    longer = max(one.norm, other.norm)
    return float((one.values - other.values).norm()) / longer if longer else 0.0


def mean(gradients: Sequence[Gradient]) -> Gradient:
    """Return the mean of some gradients, as workers exchange it."""
    return gradients[0].with_values(torch.stack([each.values for each in gradients]).mean(0))


def factor_between(one: Gradient, other: Gradient, tolerance: float) -> float | None:
    """Return the number f for which `one` is f times `other`; None where there is none."""
    length = float(other.values @ other.values)
    if not length or not one.norm:
        return None
    factor = float(one.values @ other.values) / length
    rest = float((one.values - factor * other.values).norm())
    return factor if rest <= tolerance * one.norm else None


@dataclass(frozen=True)
class Combination:
    """A gradient as a sum of others times weights."""

    weights: tuple[float, ...]
    rest: float
    """What is left of it, relative to it."""

    is_unique: bool
    """Whether there are no other weights that do as well."""


def combination(target: Gradient, parts: Sequence[Gradient]) -> Combination:
    """Return the weights with which the sum of `parts` comes closest to `target`."""
    matrix = torch.stack([each.values for each in parts], 1).cpu()  # [num_values, num_parts]
    norms = matrix.norm(dim=0)
    scaled, wanted = matrix / norms.clamp_min(1e-300), target.values.cpu()
    found = torch.linalg.lstsq(scaled, wanted.unsqueeze(1), rcond=1e-10, driver="gelsd")
    solution = found.solution.squeeze(1)
    rest = float((scaled @ solution - wanted).norm()) / target.norm
    weights = (solution / norms.clamp_min(1e-300)).tolist()
    return Combination(tuple(weights), rest, int(found.rank) == len(parts))
