"""The one door for what comes from outside: an optimizer, a schedule, a model, a figure, a section of the report.

Worker processes import the script that starts a run, or the file of a study of one's own: an entry that is registered
at its top level is known there, too.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from batchlab.errors import InputError

if TYPE_CHECKING:
    from batchlab.models.registry import ModelEntry
    from batchlab.optim.registry import OptimizerEntry
    from batchlab.plots.registry import Figure
    from batchlab.report.sections import SectionEntry

_HOMES = {
    "OptimizerEntry": "batchlab.optim.registry",
    "ScheduleEntry": "batchlab.optim.registry",
    "ModelEntry": "batchlab.models.registry",
    "Figure": "batchlab.plots.registry",
    "SectionEntry": "batchlab.report.sections",
}
"""The registry that an entry belongs in, by its class."""


def register(entry: OptimizerEntry | ModelEntry | Figure | SectionEntry) -> None:
    """Add an entry to its registry, under its name; InputError where that is taken, or it is no entry."""
    home = _HOMES.get(type(entry).__name__)
    if home is None or not type(entry).__module__.startswith("batchlab."):
        raise InputError(f"register({type(entry).__name__}): give one of {', '.join(_HOMES)}.")
    import_module(home).register(entry)
