"""How much memory a computation may take on this machine."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup/memory.max")
"""What a container may take, where the system says so: a number, or `max`."""


def machine_bytes() -> int:
    """Return the memory of the machine, or of the container where that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        container = CGROUP.read_text().strip()
    except OSError:
        return machine
    return min(machine, int(container)) if container.isdecimal() else machine


def spell_bytes(num_bytes: float) -> str:
    """Return a number of bytes in the unit that one would say it in.

    >>> spell_bytes(3_200_000_000), spell_bytes(1_500), spell_bytes(4e18)
    ('3.2 GB', '2 kB', '4,000,000 TB')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if num_bytes >= size:
            number = num_bytes / size
            return f"{number:,.1f} {unit}" if number < 100 else f"{number:,.0f} {unit}"
    return f"{num_bytes / 1e3:,.0f} kB"
