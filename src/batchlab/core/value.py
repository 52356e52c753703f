"""The base of every value in the vocabulary: frozen, checked when made, no unknown fields."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from batchlab.errors import SpecError, unknown_name


class Value(BaseModel):
    """An immutable value whose fields are validated at construction.

    `Value.parse` is the door for data from outside (TOML, JSON): it turns the first thing that is
    wrong into one `SpecError` sentence that names the place and the value.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def parse(cls, data: Any, source: str) -> Self:
        """Build the value from plain data; `source` (a file name) opens the message on failure."""
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise SpecError(f"{source}: {_sentence(cls, _worst(error))}") from None

    def plain(self) -> dict[str, Any]:
        """Return the value as JSON-ready data; `parse` reads it back."""
        return self.model_dump(mode="json", exclude_none=True)


def _worst(error: ValidationError) -> ErrorDetails:
    # A misspelt key is both unknown and missing under its right name: the unknown one explains more.
    return min(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")


def _sentence(cls: type[BaseModel], detail: ErrorDetails) -> str:
    place = _place(detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = _known_keys(cls, detail["loc"][:-1])
        return unknown_name("key", place, [_place((*detail["loc"][:-1], key)) for key in known])
    if detail["type"] == "missing":
        return f"`{place}` is missing."
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "value_error":
        return f"`{place}`: {message}" if place else message
    value = f"`{place}` = {detail['input']!r}" if place else repr(detail["input"])
    return f"{value}: {message}."


def _place(loc: tuple[int | str, ...]) -> str:
    """Return `sweep.batch_sizes[0]` for ("sweep", "batch_sizes", 0); union branches leave no trace."""
    place = ""
    for part in loc:
        if isinstance(part, int):
            place += f"[{part}]"
        elif part.isidentifier() and part[0].islower():
            place += f".{part}" if place else part
    return place


def _known_keys(cls: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Return the fields of the model at `loc`; a union branch appears there as the branch's class name."""
    branches = {branch.__name__: branch for branch in Value.__subclasses__()}
    for part in loc:
        field = cls.model_fields.get(part) if isinstance(part, str) else None
        annotation = field.annotation if field else branches.get(str(part))
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            cls = annotation
    return list(cls.model_fields)
