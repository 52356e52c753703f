"""Optimizers in PyTorch's form, `torch.optim.NAdam` or a class of one's own, over rows of the parameter matrix.

Each row has an optimizer of its own, over views of its parameters in their shapes. Its state lives in tensors of ours,
so that it is stored and gone on with like every other: what PyTorch keeps as a number becomes a tensor, too.
"""

from __future__ import annotations

import inspect
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from batchlab.errors import SpecError, shown, unknown_name
from batchlab.optim.base import Now, NowOfRow, Optimizer, State
from batchlab.optim.layout import Layout
from batchlab.optim.metaparameter import LEARNING_RATE, Bounds, Metaparameter

PREFIX = "torch.optim."
ANY = Bounds(float("-inf"))
REFUSED = {
    "LBFGS": "it evaluates a batch several times for one update",
    "SparseAdam": "it takes sparse gradients only",
    "Optimizer": "it is the class that the others extend",
    "Muon": "it takes matrices only",
}
PAIRS = {"betas": ("beta_1", "beta_2"), "etas": ("eta_minus", "eta_plus"), "step_sizes": ("least_step", "largest_step")}
"""Arguments that are pairs of numbers, and what the two are called here."""

STARTED = "started"
"""Whether a row has made its first update: then PyTorch makes the rest of its state."""


Kind = type[torch.optim.Optimizer]


def torch_class(name: str) -> Kind:
    """Return the class that `torch.optim.NAME` is; SpecError where there is none, or none that can be used here."""
    short = name.removeprefix(PREFIX)
    known = {key: each for key, each in vars(torch.optim).items() if isinstance(each, type)}
    known = {key: each for key, each in known.items() if issubclass(each, torch.optim.Optimizer)}
    if short not in known:
        raise SpecError(unknown_name("optimizer", name, [PREFIX + key for key in known if key not in REFUSED]))
    if short in REFUSED:
        raise SpecError(f"optimizer {shown(name)} cannot be used here: {REFUSED[short]}.")
    return known[short]


def torch_metaparameters(kind: Kind) -> tuple[Metaparameter, ...]:
    """Return the numbers that an optimizer takes, with its defaults."""
    found = [LEARNING_RATE]
    for argument in _arguments(kind):
        if argument.name in PAIRS:
            names = zip(_parts(argument), argument.default, strict=True)
            found += [Metaparameter(part, ANY, float(value)) for part, value in names]
        elif _is_number(argument.default) and argument.name != "lr":
            found.append(Metaparameter(argument.name, ANY, float(argument.default)))
    return tuple(found)


def torch_optimizer(layout: Layout, kind: Kind) -> Optimizer:
    """Return an optimizer of such a class for parameters that lie so."""

    def init(parameters: Tensor) -> State:
        trials = len(parameters)
        zeros, kept = partial(torch.zeros, device=parameters.device), _kept(kind, layout, parameters.dtype)
        state = {key: zeros((trials, *shape), dtype=dtype) for key, (shape, dtype) in kept.items()}
        return {**state, STARTED: zeros(trials, 1)}

    def update_row(parameters: Tensor, gradients: Tensor, state: State, now: NowOfRow) -> None:
        rows, grads = layout.segments(parameters.unsqueeze(0)), layout.segments(gradients.unsqueeze(0))
        leaves = {key: nn.Parameter(segment[0]) for key, segment in rows.items()}
        for key, leaf in leaves.items():
            leaf.grad = grads[key][0]
        optimizer = _made(kind, leaves, now)
        if bool(state[STARTED]):
            _load(optimizer, leaves, state)
        with torch.enable_grad():
            optimizer.step()
        _save(optimizer, leaves, state)
        state[STARTED].fill_(1)

    def update(parameters: Tensor, gradients: Tensor, state: State, now: Now) -> None:
        for row in range(len(parameters)):
            own = {key: tensor[row] for key, tensor in state.items()}
            values = {key: float(column[row]) for key, column in now.values.items()}
            update_row(parameters[row], gradients[row], own, NowOfRow(now.step, values))

    return Optimizer(init, update, update_row)


def _arguments(kind: Kind) -> tuple[inspect.Parameter, ...]:
    return _signature(kind)  # type: ignore[arg-type]  # mypy asks whether its objects can be hashed


@cache
def _signature(kind: Kind) -> tuple[inspect.Parameter, ...]:
    return tuple(each for each in inspect.signature(kind).parameters.values() if each.name != "params")


def _parts(argument: inspect.Parameter) -> tuple[str, ...]:
    """Return what the numbers of an argument are called: of more than two betas `beta_1`, `beta_2`, `beta_3`."""
    names, size = PAIRS[argument.name], len(argument.default)
    return names if len(names) == size else tuple(f"{argument.name[:-1]}_{place}" for place in range(1, size + 1))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _made(kind: Kind, leaves: dict[str, nn.Parameter], now: NowOfRow) -> torch.optim.Optimizer:
    given: dict[str, Any] = {"lr": now["learning_rate"]}
    for argument in _arguments(kind):
        if argument.name in PAIRS:
            given[argument.name] = tuple(now[part] for part in _parts(argument))
        elif argument.name != "lr" and _is_number(argument.default):
            given[argument.name] = now[argument.name]
    try:
        return kind(leaves.values(), **given)
    except (TypeError, ValueError) as error:
        title = f"{PREFIX if kind.__module__.startswith(PREFIX) else ''}{kind.__name__}"
        raise SpecError(f"optimizer {title}: {shown(str(error), 200)}") from None


def _kept(kind: Kind, layout: Layout, dtype: torch.dtype) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Return what the optimizer keeps of one row, by name: shapes and types, from a first update.

    Numbers that are zero by default are none there: with a momentum, say, it keeps a velocity.
    """
    named = zip(layout.names, layout.shapes, strict=True)
    leaves = {key: nn.Parameter(torch.zeros(shape, dtype=dtype)) for key, shape in named}
    for leaf in leaves.values():
        leaf.grad = torch.ones_like(leaf)
    defaults = {each.name: each.default for each in torch_metaparameters(kind)}
    values = {key: value or 0.1 for key, value in defaults.items()}
    optimizer = _made(kind, leaves, NowOfRow(1, values))
    before = _told(optimizer)
    try:
        optimizer.step()
    except TypeError as error:
        raise SpecError(f"optimizer {kind.__name__}: step() cannot be called: {shown(str(error), 200)}.") from None
    _check_state(optimizer, before)
    return {key: (tuple(tensor.shape), tensor.dtype) for key, tensor in _tensors(optimizer, leaves).items()}


def _told(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return the numbers that an optimizer keeps elsewhere than in its state."""
    return {place: value for place, value in _elsewhere(optimizer).items() if _is_number(value)}


def _elsewhere(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return what an optimizer keeps elsewhere than in its state, by where it does."""
    own = {f"self.{key}": value for key, value in vars(optimizer).items() if key not in ("state", "param_groups")}
    group = optimizer.param_groups[0].items()
    return {**own, **{f"param_groups[0][{key!r}]": value for key, value in group if key != "params"}}


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_tensors, value.values()))
    return isinstance(value, Tensor) or (isinstance(value, list | tuple) and any(map(_holds_tensors, value)))


def _check_state(optimizer: torch.optim.Optimizer, before: dict[str, Any]) -> None:
    """Raise SpecError where an update has changed what is not stored: it would be forgotten after each."""
    name, way = type(optimizer).__name__, "keep it in self.state[parameter], as a tensor or a number"
    for place, value in _told(optimizer).items():
        if before.get(place) != value:
            raise SpecError(f"optimizer {name} changes {place} in an update: {way}.")
    for place, value in _elsewhere(optimizer).items():
        if _holds_tensors(value):
            raise SpecError(f"optimizer {name} keeps tensors in {place}, which would be forgotten: {way}.")
    for state in optimizer.state.values():
        for key, value in state.items():
            if not (isinstance(value, Tensor) or _is_number(value) or value is None):
                raise SpecError(f"optimizer {name} keeps {shown(key)}, a {type(value).__name__}: {way}.")


def _tensors(optimizer: torch.optim.Optimizer, leaves: dict[str, nn.Parameter]) -> dict[str, Tensor]:
    """Return the optimizer's state, by parameter and name; numbers as tensors."""
    return {
        f"{key}.{part}": value if isinstance(value, Tensor) else torch.tensor(float(value))
        for key, leaf in leaves.items()
        for part, value in optimizer.state[leaf].items()
        if isinstance(value, Tensor) or _is_number(value)
    }


def _load(optimizer: torch.optim.Optimizer, leaves: dict[str, nn.Parameter], state: State) -> None:
    for key, leaf in leaves.items():
        own = {name.removeprefix(f"{key}."): tensor for name, tensor in state.items() if name.startswith(f"{key}.")}
        optimizer.state[leaf] = {part: tensor.clone() for part, tensor in own.items()}


def _save(optimizer: torch.optim.Optimizer, leaves: dict[str, nn.Parameter], state: State) -> None:
    for name, tensor in _tensors(optimizer, leaves).items():
        if name not in state:
            raise SpecError(f"optimizer {type(optimizer).__name__} keeps {name} from a later update on: begin with it.")
        state[name].copy_(tensor)
