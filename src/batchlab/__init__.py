"""batchlab: how does the batch size change neural-network training, and where does it stop paying?

>>> import batchlab
>>> sweep = batchlab.load_sweep("digits", ["sweep.trials=8"])
>>> [study.batch_size for study in sweep.studies()][:3]
[1, 2, 4]
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "BatchlabError": "batchlab.errors",
    "Curve": "batchlab.core.measurement",
    "Equivalence": "batchlab.doctor.verdict",
    "EquivalenceCallback": "batchlab.doctor.hugging_face",
    "Goal": "batchlab.core.goal",
    "Lab": "batchlab.store.lab",
    "LoopSweep": "batchlab.own.loop_sweep",
    "Measurements": "batchlab.core.measurement",
    "Observer": "batchlab.engine.observer",
    "Point": "batchlab.engine.base",
    "Program": "batchlab.engine.base",
    "Study": "batchlab.core.study",
    "StudyResult": "batchlab.core.result",
    "Sweep": "batchlab.core.sweep",
    "TorchSweep": "batchlab.own.torch_sweep",
    "Trainer": "batchlab.engine.base",
    "Trial": "batchlab.core.trial",
    "UpTo": "batchlab.engine.base",
    "Workload": "batchlab.core.workload",
    "assert_equivalent": "batchlab.doctor.equivalence",
    "check_gradients": "batchlab.doctor.live",
    "check_trainer": "batchlab.run.check_trainer",
    "confirm_sweep": "batchlab.run.confirm",
    "equivalence": "batchlab.doctor.equivalence",
    "load_sweep": "batchlab.spec.load",
    "merge_labs": "batchlab.run.merge.labs",
    "register": "batchlab.registration",
    "run_sweep": "batchlab.run.run_sweep",
    "summarise": "batchlab.report.answers",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import batchlab` costs nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("batchlab")
    if name not in _HOMES:
        raise AttributeError(f"module 'batchlab' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
