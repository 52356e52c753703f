"""Importing this imports all that the commands of batchlab do, also what they import only when it is needed."""

import importlib
import pkgutil

import batchlab

_LATE = ("torch", "scipy.stats", "scipy.optimize", "sklearn.datasets", "rich.live", "rich.progress", "rich.table")

_NEVER = ("batchlab.__main__", "batchlab.store.query")
"""No command asks in SQL, and DuckDB tells about leaks where a process has ended without tidying up."""

_ours = [module.name for module in pkgutil.walk_packages(batchlab.__path__, "batchlab.")]
for _name in [*_LATE, *(name for name in _ours if name not in _NEVER)]:
    importlib.import_module(_name)
