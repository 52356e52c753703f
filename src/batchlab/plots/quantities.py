"""What is shown of a point of the search space: its metaparameters, and what is made of two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from batchlab.analysis.answers.tuning import RATES

_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class PointQuantity:
    """A number that every point has which has the metaparameters that it `needs`."""

    name: str
    label: str
    needs: tuple[str, ...]
    value: Callable[[Mapping[str, float]], float]

    def of(self, point: Mapping[str, float]) -> float | None:
        """Return the number; None where the point lacks a metaparameter.

        >>> point_quantity("momentum").of({"momentum": 0.75}), point_quantity("momentum").of({})
        (0.25, None)
        """
        return self.value(point) if set(self.needs) <= point.keys() else None


def point_quantity(name: str) -> PointQuantity:
    """Return a metaparameter as figures show it: all as they are, but 1 - momentum for the momentum.

    >>> point_quantity("lr").label, point_quantity("weight_decay").label
    ('Learning rate', 'Weight decay')
    """
    if name == "momentum":
        return PointQuantity("1 - momentum", f"1 {_MINUS} momentum", (name,), lambda point: 1 - point[name])
    words = "Learning rate" if name in RATES else name.replace("_", " ").capitalize()
    return PointQuantity(name, words, (name,), lambda point: point[name])


def effective_learning_rate(rate: str) -> PointQuantity:
    """Return the learning rate over 1 - momentum, from the learning rate of that name."""
    return PointQuantity(
        "effective_learning_rate",
        f"Learning rate / (1 {_MINUS} momentum)",
        (rate, "momentum"),
        lambda point: point[rate] / (1 - point["momentum"]),
    )
