"""How much memory this process used at the most, case by case."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

MOST_MEGABYTES = 500
"""That one case may use beside what the process had before it."""

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> float:
    """Let the peak begin anew and return the megabytes that are in use now; 0 where the system does not tell."""
    with suppress(OSError):
        _CLEAR.write_text("5")
    return _megabytes("VmRSS")


def peak() -> float:
    """Return the megabytes that were in use at the most since `forget_peak`."""
    return _megabytes("VmHWM")


def _megabytes(name: str) -> float:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:")), 0.0)
