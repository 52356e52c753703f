"""Importing this imports all of batchlab, and what it imports only when it is needed."""

import importlib
import pkgutil

import batchlab

_LATE = ("torch", "scipy.stats", "scipy.optimize", "sklearn.datasets", "rich.live", "rich.progress", "rich.table")

_ours = [module.name for module in pkgutil.walk_packages(batchlab.__path__, "batchlab.")]
for _name in [*_LATE, *(name for name in _ours if not name.endswith("__main__"))]:
    importlib.import_module(_name)
