"""Whether the methods of a user's trainer, and of its programs, can be called as batchlab calls them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from batchlab.engine.checks.measured import class_name, typed
from batchlab.errors import TrainerError

TRAINER_METHODS = {"metrics": ("study",), "program": ("study", "points", "state=None")}
"""What a trainer must have, with the parameters of each; one with a default is left out of some calls."""

OPTIONAL_METHODS = {
    "check": ("study",),
    "pack_size": ("study",),
    "check_shared": ("study", "num_workers"),
    "join": ("exchange",),
}
"""What a trainer may have; the pack size may be a plain value as well."""

PROGRAM_METHODS: dict[str, tuple[str, ...]] = {"evaluate": (), "advance": ("target",), "state": ()}


def check_trainer_methods(trainer: Any) -> None:
    """Raise TrainerError where a trainer has not the methods of one, or cannot be called as it will be."""
    for method, parameters in TRAINER_METHODS.items():
        if getattr(trainer, method, None) is None:
            raise TrainerError(
                f"The trainer ({class_name(trainer)}) has no method `{method}(study, ...)`: see docs/extending.md."
            )
        _check_method(trainer, method, parameters)
    for method, parameters in OPTIONAL_METHODS.items():
        found = getattr(trainer, method, None)
        if found is not None and (method != "pack_size" or callable(found)):
            _check_method(trainer, method, parameters)


def check_program_methods(program: Any) -> None:
    """Raise TrainerError where what a program has by the name of a method cannot be called as it will be."""
    for method, parameters in PROGRAM_METHODS.items():
        _check_method(program, method, parameters)


def _check_method(owner: Any, method: str, parameters: Sequence[str]) -> None:
    place, found = f"{class_name(owner)}.{method}", getattr(owner, method)
    way_out = f"write `def {method}({', '.join(['self', *parameters])})`"
    if not callable(found):
        raise TrainerError(f"{place} is {typed(found)}, not a method: {way_out}.")
    signature = _signature(found)
    for names in _calls(parameters):
        if signature is not None and not _takes(signature, names):
            raise TrainerError(f"{place}{signature} cannot be called as {method}({', '.join(names)}): {way_out}.")


def _calls(parameters: Sequence[str]) -> list[list[str]]:
    """Return the arguments of each call that is made of a method: of all parameters, and of those without a default."""
    names = [parameter.partition("=")[0] for parameter in parameters]
    return [names, [parameter for parameter in parameters if "=" not in parameter]]


def _signature(method: Callable[..., Any]) -> inspect.Signature | None:
    """Return the parameters of a method without their types; None where Python cannot say them, as of some in C."""
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):
        return None
    parameters = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return inspect.Signature(parameters)


def _takes(signature: inspect.Signature, arguments: Sequence[str]) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True
