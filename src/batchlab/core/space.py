"""The search space: for each metaparameter a range with its scale, or a list of values.

Every dimension maps the unit interval to its values and back, so that samplers only ever see the
unit cube and the boundary check only ever sees scaled units.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, RootModel, Tag, model_validator

from batchlab.core.limits import MOST_POINTS
from batchlab.core.units import DECAY, Unit, convert_decay, from_native, to_native
from batchlab.core.value import Items, Value


class Range(Value):
    """All values from `min` to `max`, uniform after the transform that `scale` names.

    `log`: the logarithm is uniform. `reverse_log`: 1 - value is log-uniform, which spends as many
    points between 0.99 and 0.999 as between 0.9 and 0.99. An integer range includes both ends.

    >>> Range(min=0.0, max=0.999, scale="reverse_log").at(0.0)
    0.999
    """

    written: ClassVar[str] = (
        "a table, such as {min = 0.1, max = 1.0} or {values = [0.9]}, or fix it as an option of the optimizer"
    )

    min: float
    max: float
    scale: Literal["linear", "log", "reverse_log"] = "linear"
    type: Literal["double", "integer"] = "double"
    points: Annotated[int, Field(ge=1, le=MOST_POINTS)] | None = None
    """How many values the grid sampler takes from this range."""

    unit: Unit | None = None
    """What the ends are written in, so that one range serves all batch sizes; None is the metaparameter itself."""

    batch_size: Annotated[int, Field(ge=1)] | None = None
    """Where the unit is read: set in a study, not in a spec."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"min = {self.min:g} is greater than max = {self.max:g}; exchange them")
        if self.scale == "log" and self.min <= 0:
            raise ValueError(f'min = {self.min:g} cannot be on a log scale; use a positive min or scale = "linear"')
        if self.scale == "reverse_log" and self.max >= 1:
            raise ValueError(f"max = {self.max:g} cannot be on a reverse_log scale; use a max below 1")
        if not math.isfinite(self._span):
            raise ValueError(f"from min = {self.min:g} to max = {self.max:g} is further than numbers reach")
        if self.unit is not None and (self.min <= 0 or self.type == "integer"):
            raise ValueError(f'a range in unit = "{self.unit}" needs a min above 0 and no type')
        if self.type == "integer":
            if self.scale == "reverse_log":
                raise ValueError("an integer range cannot be on a reverse_log scale")
            if not (self.min.is_integer() and self.max.is_integer()):
                raise ValueError(f"an integer range needs whole ends, not {self.min:g} and {self.max:g}")
        return self

    @property
    def _span(self) -> float:
        """How far it is from one end to the other, as the scale counts."""
        if self.scale == "log":
            return self.max / self.min
        return (1 - self.min) / (1 - self.max) if self.scale == "reverse_log" else self.max - self.min

    def read_at(self, batch_size: int) -> Range:
        """Return the range as a study of this batch size has it."""
        return self if self.unit is None else self.model_copy(update={"batch_size": batch_size})

    @property
    def is_whole(self) -> bool:
        """Whether it has whole numbers alone."""
        return self.type == "integer" and not self._is_converted

    @property
    def ends(self) -> tuple[float, float]:
        """The metaparameter at both ends."""
        return self._native(self.min), self._native(self.max)

    @property
    def _is_converted(self) -> bool:
        """Whether its unit is read by the batch size alone; a time scale of decay needs the whole point."""
        return self.unit not in (None, DECAY) and self.batch_size is not None

    def _native(self, value: float) -> float:
        if not self._is_converted:
            return value
        assert self.unit is not None and self.batch_size is not None
        return to_native(value, self.unit, self.batch_size)

    def at(self, share: float) -> float:
        """Return the metaparameter at a share, 0 to 1, of the range; never outside of it."""
        return self._native(self._at(share))

    def _at(self, share: float) -> float:
        if self.type == "double":
            return self._between(self.min, self.max, share)
        low = self.min - 0.5
        # Every whole number between the ends has the same part of [0, 1] on a linear scale, the outermost included.
        return self._between(max(low, 0.5) if self.scale == "log" else low, self.max + 0.5, share)

    def _between(self, low: float, high: float, share: float) -> float:
        """Return the value at a share of the way from `low` to `high`, as the scale counts; never out of the range."""
        if self.scale == "log":
            value: float = low * (high / low) ** share
        elif self.scale == "reverse_log":
            value = 1 - (1 - high) * ((1 - low) / (1 - high)) ** share
        else:
            value = low + (high - low) * share
        if self.type == "integer":
            value = math.floor(value + 0.5)
        return min(max(value, self.min), self.max)

    def share(self, value: float) -> float:
        """Return where a metaparameter lies in scaled units: 0 at one end of the range, 1 at the other."""
        if self.min == self.max:
            return 0.5
        if self._is_converted:
            assert self.unit is not None and self.batch_size is not None
            # At a large batch size a half-life may round to none at all.
            value = min(max(from_native(value, self.unit, self.batch_size), self.min), self.max)
        if self.scale == "log":
            return math.log(value / self.min) / math.log(self.max / self.min)
        if self.scale == "reverse_log":
            return math.log((1 - value) / (1 - self.max)) / math.log((1 - self.min) / (1 - self.max))
        return (value - self.min) / (self.max - self.min)

    def grid_size(self) -> int:
        """Return how many values the grid has."""
        if self.points is None:
            raise ValueError("the grid sampler needs `points`, the number of values to take from this range")
        return self.points

    def grid(self, *, is_even: bool = True) -> list[float]:
        """Return `points` values, evenly spaced in scaled units, both ends included.

        Not `is_even`: whole numbers as samplers before version 3 took them, by their parts of the unit interval.

        >>> Range(min=1, max=1000, scale="log", type="integer", points=4).grid()
        [1, 10, 100, 1000]
        """
        size = self.grid_size()
        shares = [0.5] if size == 1 else [i / (size - 1) for i in range(size)]
        if is_even:
            return [self._native(self._between(self.min, self.max, share)) for share in shares]
        return [self.at(share) for share in shares]


class Values(Value):
    """A list of values, each as likely as the others."""

    values: Annotated[Items[float], Field(min_length=1, max_length=MOST_POINTS)]

    @model_validator(mode="before")
    @classmethod
    def _check(cls, data: Any) -> Any:
        of_range = [key for key in data if key in Range.model_fields] if isinstance(data, dict) else []
        if of_range:
            raise ValueError(f"`{of_range[0]}` beside `values`: give `values`, or `min` and `max`, not both")
        return data

    @property
    def is_whole(self) -> bool:
        """Whether all values are whole numbers."""
        return all(float(value).is_integer() for value in self.values)

    def at(self, share: float) -> float:
        """Return the value whose part of [0, 1] holds a share."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]

    def grid_size(self) -> int:
        """Return how many values the grid has."""
        return len(self.values)

    def grid(self, *, is_even: bool = True) -> list[float]:
        """Return the values themselves, by any rule."""
        return list(self.values)


def _kind(data: Any) -> str:
    if isinstance(data, Values) or (isinstance(data, dict) and "values" in data):
        return "Values"
    return "Range"


Dimension = Annotated[
    Annotated[Range, Tag("Range")] | Annotated[Values, Tag("Values")],
    Discriminator(_kind),
]


class SearchSpace(RootModel[dict[str, Dimension]]):
    """The dimensions by metaparameter name, in the order of the spec file."""

    written: ClassVar[str] = "a table, such as {learning_rate = {min = 0.1, max = 1.0}}"

    @property
    def names(self) -> list[str]:
        """The searched metaparameters."""
        return list(self.root)

    def __getitem__(self, name: str) -> Range | Values:
        return self.root[name]

    def read_at(self, batch_size: int) -> SearchSpace:
        """Return the space as a study of this batch size has it."""
        read = {name: each.read_at(batch_size) if isinstance(each, Range) else each for name, each in self.root.items()}
        return SearchSpace(read)

    def point(self, shares: Iterable[float]) -> dict[str, float]:
        """Return the metaparameters at a point of the unit cube."""
        return self.read(
            {name: each.at(float(share)) for (name, each), share in zip(self.root.items(), shares, strict=True)}
        )

    def read(self, values: dict[str, float]) -> dict[str, float]:
        """Return the metaparameters for a value of each dimension; of a point, time scales of decay in their unit."""
        decays = {
            name: convert_decay(values[name], values["learning_rate"], each.batch_size)
            for name, each in self.root.items()
            if isinstance(each, Range) and each.unit == DECAY and each.batch_size is not None and name in values
        }
        return {**values, **decays}
