"""The base of every value in the vocabulary: frozen, checked when made, no unknown fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, RootModel, Strict, ValidationError
from pydantic_core import ErrorDetails

from batchlab.errors import SpecError, plain, shown, spelled, unknown_name

Item = TypeVar("Item")
Items = Annotated[tuple[Item, ...], Strict(False)]
"""A tuple, written as a list in TOML and JSON."""

TABLE = "a table, such as {name = value}"

_WAY_OUT = {  # by pydantic's type of the error, with its details
    "dict_type": "give {written}",
    "float_parsing": "give a number",
    "float_type": "give a number",
    "greater_than": "give more than {gt}",
    "greater_than_equal": "give at least {ge}",
    "less_than_equal": "give at most {le}",
    "int_from_float": "give a whole number",
    "int_parsing": "give a whole number",
    "int_type": "give a whole number",
    "literal_error": "give {expected}",
    "model_type": "give {written}",
    "string_too_long": "give at most {max_length} characters",
    "string_pattern_mismatch": "begin with a letter or digit; letters, digits, dots, - and _ may follow",
    "string_type": "give text, in quotes",
    "too_long": "give at most {max_length}",
    "too_short": "give at least {min_length}",
    "tuple_type": "give a list, such as [16, 64]",
}


class Value(BaseModel):
    """An immutable value whose fields are validated at construction: no text, flag or fraction is taken for a number.

    `Value.parse` is the door for data from outside (TOML, JSON): it turns the first thing that is
    wrong into one `SpecError` sentence that names the place and the value.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False, serialize_by_alias=True)

    written: ClassVar[str] = TABLE
    """What a spec has in its place, for whoever gave something else."""

    @classmethod
    def parse(cls, data: Any, source: str) -> Self:
        """Build the value from plain data; `source` (a file name) opens the message on failure."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise SpecError(f"{plain(source)}: {_sentence(cls, _worst(error))}") from None

    def plain(self) -> dict[str, Any]:
        """Return the value as JSON-ready data; `parse` reads it back."""
        return self.model_dump(mode="json", exclude_none=True)


def doubled(items: Iterable[Item]) -> list[Item]:
    """Return what stands more than once among some items.

    >>> doubled([8, 16, 8, 8])
    [8]
    """
    return [item for item, count in Counter(items).items() if count > 1]


def known_keys(cls: type[BaseModel]) -> list[str]:
    """Return the keys that the data of a value may have."""
    return [field.alias or name for name, field in cls.model_fields.items()]


def _worst(error: ValidationError) -> ErrorDetails:
    # A misspelt key is both unknown and missing under its right name: the unknown one explains more.
    return min(error.errors(include_url=False), key=lambda detail: detail["type"] != "extra_forbidden")


def _sentence(cls: type[BaseModel], detail: ErrorDetails) -> str:
    place = _place(detail["loc"])
    if detail["type"] == "extra_forbidden":
        *table, key = detail["loc"]
        start = f"{_place(tuple(table))}." if table else ""
        return unknown_name(
            "key", f"{start}{key}", [f"{start}{each}" for each in known_keys(model_at(cls, tuple(table)))]
        )
    if detail["type"] == "missing":
        return f"`{place}` is missing."
    if detail["type"] == "value_error":
        message = detail["msg"].removeprefix("Value error, ")
        return f"`{place}`: {message}" if place else message
    value = f"`{place}` = " * bool(place) + shown(spelled(detail["input"]))
    details = {**detail.get("ctx", {}), "written": _written(cls, detail)}
    way_out = _WAY_OUT.get(detail["type"], detail["msg"]).format(**details)
    return f"{value}: {way_out}."


def _place(loc: tuple[int | str, ...]) -> str:
    """Return `sweep.batch_sizes[0]` for ("sweep", "batch_sizes", 0); union branches leave no trace."""
    place = ""
    for part in loc:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part.isdecimal() or (part.isidentifier() and part[0].islower()):
            place += f".{shown(part)}" if place else shown(part)
    return place


def _written(cls: type[BaseModel], detail: ErrorDetails) -> str:
    """Return what should be in the place of a value that is no table."""
    model = model_at(cls, detail["loc"])
    # A table of values by name has no words of its own, unless it is a model, too.
    is_model = detail["type"] == "model_type" or issubclass(model, RootModel)
    return str(getattr(model, "written", TABLE)) if is_model else TABLE


def model_at(cls: type[BaseModel], loc: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the model at `loc`; a union branch appears there as the branch's class name."""
    branches = {branch.__name__: branch for branch in _descendants(Value)}
    for part in loc:
        field = next((field for name, field in cls.model_fields.items() if part == (field.alias or name)), None)
        annotation = field.annotation if field else branches.get(str(part))
        cls = _model_in(annotation) or cls
    return cls


def _descendants(cls: type[BaseModel]) -> list[type[BaseModel]]:
    return [found for child in cls.__subclasses__() for found in (child, *_descendants(child))]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """Return the model that a field holds: itself, or as the values of a table."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)
