"""A study of one's own in a file of Python, and the trainer that workers make from it.

A file of Python is code: it is executed, here and in every worker. A lab stores its digest and never the file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Generator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from batchlab.core.growth import fixed_digest
from batchlab.core.study import Study
from batchlab.engine.base import Point, Program, UpTo
from batchlab.errors import BatchlabError, InputError, TrainerError, shown
from batchlab.loops.base import Started, untold
from batchlab.loops.report import Report
from batchlab.own.raised import raised
from batchlab.own.sweep import OwnSweep

MODULE = "batchlab_own_study"
"""The name that the file is imported by, so that what stands below `if __name__ == "__main__":` is not run."""


def load_own_sweep(path: Path) -> OwnSweep:
    """Execute a file of Python and return the one sweep that it makes."""
    found: list[OwnSweep] = named(imported(path), OwnSweep)
    if len(found) != 1:
        number = "none" if not found else f"{len(found)} of them"
        raise InputError(
            f"{path} must make one batchlab.TorchSweep, or LoopSweep, and give it a name at its top level; "
            f"it has {number}."
        )
    found[0].file = path
    return found[0]


def named(module: ModuleType, kind: type) -> list[Any]:
    """Return the values of a kind that a file gives names to at its top level, each once."""
    return list({id(each): each for each in vars(module).values() if isinstance(each, kind)}.values())


def file_digest(path: Path) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def imported(path: Path) -> ModuleType:
    """Execute a file of Python and return it as a module; files beside it can be imported by it, as when it is run."""
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if not path.exists():
        raise InputError(f"There is no file {path}.")
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path} is no file of Python.")
    module, folder = importlib.util.module_from_spec(spec), str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[MODULE] = module
    try:
        spec.loader.exec_module(module)
    except BatchlabError as error:
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        raise InputError(f"{path} cannot be executed: {raised(error)}") from error
    except SystemExit as error:
        code = "" if error.code is None else shown(error.code)
        raise InputError(
            f"{path} ends itself by sys.exit({code}) before it is read to its end: put "
            'that below `if __name__ == "__main__":`.'
        ) from error
    finally:
        sys.path.remove(folder)
        if folder not in sys.path:
            sys.path.append(folder)  # for what its functions import later; behind all that batchlab may import
    return module


class FileTrainer:
    """The trainer of the sweep in a file.

    What is sent to a worker is the file's place, its digest, and what was changed of its spec.
    """

    remark: str | None = None

    def __init__(self, path: Path, sweep: OwnSweep) -> None:
        self._path, self._digest, self._settings = path.resolve(), file_digest(path), sweep.settings
        self._meant = sweep.spec.name, fixed_digest(sweep.spec)
        self.label = f"{path.name} ({self._digest})"
        """What a lab remembers of who has trained a study."""

        self._own = sweep.trainer

    @cached_property
    def _own(self) -> Any:
        """An `OwnTrainer`, or where the file has a loop, a `LoopTrainer`."""
        if file_digest(self._path) != self._digest:
            raise TrainerError(f"{self._path} was changed while it was run.")
        sweep = load_own_sweep(self._path)
        sweep.change(self._settings)
        if (sweep.spec.name, fixed_digest(sweep.spec)) != self._meant:
            raise TrainerError(
                f"{self._path} makes another sweep, {shown(sweep.spec.name)}, than the one that is run, "
                f"{shown(self._meant[0])}: workers execute the file that calls TorchSweep or LoopSweep, so give each "
                "sweep a file of its own, and a name at its top level."
            )
        return sweep.trainer

    def check(self, study: Study) -> None:
        """Let the trainer check a study."""
        self._own.check(study)

    def check_shared(self, study: Study, num_workers: int) -> None:
        """Let the trainer check whether so many workers can train one trial."""
        self._own.check_shared(study, num_workers)

    def join(self, exchange: Any) -> None:
        """Let the trainer be one of several workers."""
        self._own.join(exchange)

    def pack_size(self, study: Study) -> int | UpTo:
        """Return what the trainer says."""
        size: int | UpTo = self._own.pack_size(study)
        return size

    def metrics(self, study: Study) -> tuple[str, ...]:
        """Return what the trainer says."""
        metrics: tuple[str, ...] = self._own.metrics(study)
        return metrics

    def program(self, study: Study, points: Sequence[Point], state: Mapping[str, np.ndarray] | None = None) -> Program:
        """Return the trainer's program."""
        program: Program = self._own.program(study, points, state)
        return program

    @property
    def resumes(self) -> bool:
        """Return what the trainer of a loop says."""
        return bool(self._own.resumes)

    def example(self, metric: str) -> str:
        """Return what the trainer of a loop says."""
        return str(self._own.example(metric))

    def reports(
        self, study: Study, point: Point, place: Path, worker: int, start: int, started: Started = untold
    ) -> Generator[Report | None]:
        """Yield what a loop reports."""
        yield from self._own.reports(study, point, place, worker, start, started)

    @property
    def device_name(self) -> str:
        """The device that programs run on."""
        return str(self._own.device_name)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_own"}
