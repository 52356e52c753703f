"""Workload: what is trained. A dataset, a model and an optimizer (with its schedule), by name."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import ConfigDict, Discriminator, Field, Tag, model_serializer, model_validator

from batchlab.core.value import Value
from batchlab.errors import shown

_WORD = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){2,}$"


class Named(Value):
    """A name with options: written `"digits"`, or `{name = "mnist", train_examples = 10000}`.

    Which options a name takes is told by the registry of its room (`data`, `models`, `optim`).
    """

    model_config = ConfigDict(extra="allow")

    written: ClassVar[str] = 'a name in quotes, or a table with it, such as {name = "digits"}'

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

    written: ClassVar[str] = 'a table, such as {dataset = "digits", model = "fc_128", optimizer = "sgd"}'

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
    def is_own_loop(self) -> bool:
        """Whether it is trained by a loop of the user's own, which reports at steps of its choice."""
        return False

    @property
    def is_closed_form(self) -> bool:
        """Whether its curves are exact expectations, without chance: the noisy quadratic model."""
        return self.dataset.name == "nqm"

    @property
    def has_whole_data(self) -> bool:
        """Whether the dataset is as its name tells, but for the scaling of its inputs; an alias tells its options."""
        return self.alias is not None or self.dataset.options.keys() <= {"scaling"}

    @property
    def schedules_batch_size(self) -> bool:
        """Whether the batch size changes on the way: whichever schedule does that says so by its option `of`."""
        return bool(self.schedule.options.get("of") == "batch_size")

    @property
    def has_one_batch_size(self) -> bool:
        """Whether every update has the batch size of its study."""
        return not self.schedules_batch_size

    @property
    def fixed_metaparameters(self) -> dict[str, float]:
        """The metaparameters that the spec sets to one value."""
        return {**self.optimizer.options, **self.schedule.options}


_OWN = Named(name="own")
_PARTS = ("dataset", "model", "optimizer", "schedule")


class OwnLoop(Workload):
    """A loop of the user's own: a program that is run (`command`), or a function of Python (`loop`).

    What it trains, and with what, is known to it alone; it goes by the name of its sweep.
    """

    dataset: Named = Field(default=_OWN, exclude=True)
    model: Named = Field(default=_OWN, exclude=True)
    optimizer: Named = Field(default=_OWN, exclude=True)
    schedule: Named = Field(default=_OWN, exclude=True)
    alias: Annotated[str, Field(pattern=_WORD, max_length=200)]

    command: Annotated[str, Field(min_length=1, max_length=10_000)] | None = None
    """The program and its arguments, with `{batch_size}`, `{seed}` and `{METAPARAMETER}` where their values go."""

    metrics_file: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    """Where the program writes its reports, if not to stdout; it may hold placeholders, too."""

    pattern: dict[str, str] | None = None
    """How numbers are found in a line, for `step` and each metric: a regular expression with one group each."""

    loop: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """The name of the function."""

    @model_validator(mode="before")
    @classmethod
    def _leave_out(cls, data: Any) -> Any:
        given = [name for name in _PARTS if isinstance(data, dict) and name in data]
        if given:
            raise ValueError(f"`{given[0]}` beside a command: the program knows it alone; leave it out")
        if isinstance(data, dict) and {"command", "loop"} <= data.keys():
            raise ValueError("`loop` is of a file of Python, not of a spec with a `command`; leave it out")
        return data

    @property
    def is_own_loop(self) -> bool:
        """It is."""
        return True


def _kind(data: Any) -> str:
    is_loop = isinstance(data, OwnLoop) or (isinstance(data, dict) and bool({"command", "loop"} & data.keys()))
    return OwnLoop.__name__ if is_loop else Workload.__name__


AnyWorkload = Annotated[Annotated[Workload, Tag("Workload")] | Annotated[OwnLoop, Tag("OwnLoop")], Discriminator(_kind)]
"""What a study trains: a network by the names of its parts, or a loop of the user's own."""
