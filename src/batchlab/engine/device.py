"""The device that programs run on, found by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlab.errors import SpecError, shown

if TYPE_CHECKING:
    import torch


def find_device(name: str) -> torch.device:
    """Return the device of a name, `auto` being CUDA where there is one; SpecError where nothing can be computed on it.

    A number is sent there and fetched back: some names that PyTorch knows, such as `meta`, hold no numbers.
    """
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        is_usable = torch.ones(1, device=device).item() == 1
    except (RuntimeError, AssertionError, ImportError):
        is_usable = False
    if not is_usable:
        raise SpecError(
            f'engine.device = "{shown(name)}" is no device that PyTorch finds here: use "auto" or "cpu".'
        ) from None
    return device


def device_label(name: str) -> str:
    """Return a device as a record names it: a GPU with its model, because `cuda` is another one on every machine.

    >>> device_label("cpu")
    'cpu'
    """
    if not name.startswith("cuda"):
        return name
    import torch

    return f"{name} ({torch.cuda.get_device_name(name)})"


def count_gpus() -> int:
    """Return how many GPUs PyTorch sees on this machine."""
    import torch

    return torch.cuda.device_count()
