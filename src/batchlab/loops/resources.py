"""The processors and GPUs that a trial of a loop of one's own may use."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from batchlab.errors import InputError
from batchlab.processes import usable_cores

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
DEVICES = "CUDA_VISIBLE_DEVICES"


def trial_variables(engine: Mapping[str, Any], worker: int) -> dict[str, str]:
    """Return the variables by which a trial of a worker, numbered from 0, is told what it may use."""
    variables = dict.fromkeys(THREADS, str(engine.get("cpus_per_trial", 1)))
    gpus = engine.get("gpus_per_trial", 0)
    if gpus:
        mine = visible_gpus()[worker * gpus : (worker + 1) * gpus]
        if len(mine) < gpus:
            raise InputError(
                f"engine.gpus_per_trial = {gpus}: worker {worker + 1} has {len(mine)} left of {len(visible_gpus())} "
                "GPUs; use fewer workers."
            )
        variables[DEVICES] = ",".join(mine)
    return variables


_lent: tuple[str, list[str]] | None = None
"""What this process was last told to use, and all that it may."""


def use_here(engine: Mapping[str, Any], worker: int) -> None:
    """Let this process use what a trial may use, where the spec says so: it may be somebody's notebook."""
    if not engine.get("cpus_per_trial") and not engine.get("gpus_per_trial"):
        return
    global _lent
    all_gpus, variables = visible_gpus() if engine.get("gpus_per_trial") else [], trial_variables(engine, worker)
    os.environ.update(variables)
    _lent = (variables[DEVICES], all_gpus) if all_gpus else _lent
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(engine.get("cpus_per_trial", 1))


def trials_at_once(engine: Mapping[str, Any]) -> int:
    """Return how many trials the machine has processors and GPUs for; InputError where it has none for one."""
    cpus, gpus = int(engine.get("cpus_per_trial", 1)), int(engine.get("gpus_per_trial", 0))
    at_once = max(1, usable_cores() // cpus)
    if not gpus:
        return at_once
    there = len(visible_gpus())
    if there < gpus:
        raise InputError(f"engine.gpus_per_trial = {gpus}, and this machine has {there}: use fewer.")
    return min(at_once, there // gpus)


def visible_gpus() -> list[str]:
    """Return the names of the GPUs that may be used, whichever of them a trial in this process was told to use."""
    if _lent is not None and os.environ.get(DEVICES) == _lent[0]:
        return _lent[1]
    if DEVICES in os.environ:
        return [name for name in os.environ[DEVICES].split(",") if name]
    from batchlab.engine.device import count_gpus  # only here: it takes a while to import

    return [str(number) for number in range(count_gpus())]
