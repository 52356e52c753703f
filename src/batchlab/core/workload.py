"""Workload: what is trained. A dataset, a model and an optimizer (with its schedule), by name."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_serializer, model_validator

from batchlab.core.value import Value
from batchlab.errors import shown

_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){2,}$"


class Named(Value):
    """A name with options: written `"digits"`, or `{name = "mnist", train_examples = 10000}`.

    Which options a name takes is told by the registry of its room (`data`, `models`, `optim`).
    """

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1, max_length=200)]

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data

    @model_serializer
    def _to_plain(self) -> str | dict[str, Any]:
        return {"name": self.name, **self.options} if self.options else self.name

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the name."""
        return dict(self.__pydantic_extra__ or {})


class Workload(Value):
    """A dataset, a model, an optimizer and its learning rate schedule.

    Options of the optimizer and of the schedule are fixed metaparameters; those left out must be in
    the search space.
    """

    dataset: Named
    model: Named
    optimizer: Named
    schedule: Named = Named(name="constant")
    alias: Annotated[str, Field(pattern=_NAME, max_length=200)] | None = None
    """The name it goes by where dataset/model/optimizer would be taken for another workload's."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        twice = self.optimizer.options.keys() & self.schedule.options.keys()
        if twice:
            raise ValueError(f"`{shown(min(twice))}` is an option of both optimizer and schedule; drop one")
        return self

    @property
    def name(self) -> str:
        """The name used everywhere: `digits/fc_128/nesterov_momentum`, or the alias where there is one."""
        return self.alias or f"{self.dataset.name}/{self.model.name}/{self.optimizer.name}"

    @property
    def is_closed_form(self) -> bool:
        """Whether its curves are exact expectations, without chance: the noisy quadratic model."""
        return self.dataset.name == "nqm"

    @property
    def fixed_metaparameters(self) -> dict[str, float]:
        """The metaparameters that the spec sets to one value."""
        return {**self.optimizer.options, **self.schedule.options}
