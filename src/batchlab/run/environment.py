"""Where results were computed: host, processor and package versions."""

from __future__ import annotations

import importlib.metadata
import platform
import socket
from functools import cache
from pathlib import Path
from typing import Any

from batchlab.processes import usable_cores

PACKAGES = ("batchlab", "torch", "numpy", "scipy", "pyarrow", "scikit-learn")


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on, without importing them."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


@cache
def cpu_name() -> str:
    """Return the processor's name as the system has it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


@cache
def environment() -> dict[str, Any]:
    """Return the facts that are stored with every trial."""
    return {
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": cpu_name(),
        "cores": usable_cores(),
        "python": platform.python_version(),
        "packages": package_versions(),
    }
