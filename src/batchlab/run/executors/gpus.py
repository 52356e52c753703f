"""Which worker trains on which GPU: each has one of its own, so that two never meet on the first by accident."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from batchlab.core.sweep import Sweep
from batchlab.engine.device import count_gpus
from batchlab.errors import InputError
from batchlab.loops.resources import DEVICES, visible_gpus

NOTHING = "nothing is trained on one here"
CHOOSES = ("auto", "cuda")
"""Values of engine.device that leave the choice to us; any other names the device of all workers."""


def find_gpus(sweep: Sweep, wanted: int | None) -> tuple[str, ...] | None:
    """Return the GPUs of this machine that a sweep is to train on, one for each worker; None where we choose none."""
    if sweep.workload.is_own_loop or sweep.workload.is_closed_form:
        if wanted is not None:
            reason = "engine.gpus_per_trial says how many a trial of a loop of your own has"
            raise InputError(f"{_gpus(wanted)}: {reason if sweep.workload.is_own_loop else NOTHING}; leave that out.")
        return None
    if wanted is None and "torch" not in sys.modules:  # nothing here can have asked for a GPU
        return None
    # A variable may name GPUs that are not there, or that PyTorch was built without.
    return choose_gpus(sweep.engine.device, visible_gpus() if count_gpus() else [], wanted)


def choose_gpus(device: str, visible: Sequence[str], wanted: int | None) -> tuple[str, ...] | None:
    """Return the GPUs to train on, one for each worker: `wanted` of those that may be used, all where None.

    None where there is nothing to hand out: the spec names another device, or there is no GPU.

    >>> choose_gpus("auto", ["0", "1", "2"], 2), choose_gpus("auto", [], None), choose_gpus("cpu", ["0"], None)
    (('0', '1'), None, None)
    """
    if device not in CHOOSES:
        if wanted is not None:
            raise InputError(f'{_gpus(wanted)}: engine.device = "{device}" is where all workers train; use "auto".')
        return None
    if wanted is not None and wanted > len(visible):
        raise InputError(f"{_gpus(wanted)}: there {_are(len(visible))} here. Use fewer.")
    if wanted == 0 and device == "cuda":
        raise InputError('0 GPUs: engine.device = "cuda" needs one; use "auto" or "cpu".')
    if wanted is None and not visible:
        return None
    return tuple(visible[:wanted])


def count_workers(gpus: Sequence[str] | None, wanted: int | None, default: int) -> int:
    """Return how many workers there are: `wanted`, else one for each GPU, or where none is used the default.

    >>> count_workers(("0", "1"), None, 8), count_workers(None, None, 8), count_workers((), 3, 8)
    (2, 8, 3)
    """
    if not gpus:
        return wanted or default
    if wanted is not None and wanted > len(gpus):
        raise InputError(
            f"{wanted} workers: each has a GPU of its own, and there {_are(len(gpus))}. Use {len(gpus)}, or "
            'engine.device = "cpu".'
        )
    return wanted or len(gpus)


def gpu_variables(gpus: Sequence[str] | None, worker: int) -> dict[str, str]:
    """Return the variables that give a worker, numbered from 0, its GPU, or none.

    >>> gpu_variables(("2", "5"), 1), gpu_variables((), 0), gpu_variables(None, 0)
    ({'CUDA_VISIBLE_DEVICES': '5'}, {'CUDA_VISIBLE_DEVICES': ''}, {})
    """
    if gpus is None:
        return {}
    return {DEVICES: gpus[worker] if gpus else ""}


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"


def _are(count: int) -> str:
    return "is 1" if count == 1 else f"are {count}"
