"""The table of classes in ImageNet's devkit, a MATLAB file.

SciPy's reader may die of a damaged one, so that it is read in a process of its own, by `python -m` of this module.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys


def read_synsets(content: bytes) -> dict[str, str]:
    """Return the wnid of each class by its number; ValueError, with the reason, where the table cannot be read."""
    done = subprocess.run(_command(), input=content, capture_output=True, check=False)
    if done.returncode == 0:
        wnids: dict[str, str] = json.loads(done.stdout)
        return wnids
    told = done.stderr.decode("utf-8", "replace").strip().splitlines()
    raise ValueError(told[-1] if done.returncode > 0 and told else "its reader died of it")


def _command() -> list[str]:
    return [sys.executable, "-P", "-m", __name__]


def _parsed(content: bytes) -> dict[str, str]:
    import numpy as np
    from scipy.io import loadmat

    synsets = np.atleast_1d(loadmat(io.BytesIO(content), squeeze_me=True)["synsets"])
    return {str(int(row["ILSVRC2012_ID"])): str(row["WNID"]) for row in synsets}


if __name__ == "__main__":
    print(json.dumps(_parsed(sys.stdin.buffer.read())))
