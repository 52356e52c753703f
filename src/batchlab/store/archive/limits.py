"""How much an archive may ask for before it is refused: more than any real one, and less than a machine has."""

from __future__ import annotations

from batchlab.core.limits import MOST_TRIALS
from batchlab.errors import InputError, shown
from batchlab.files import MOST_PATH

MOST_BYTES = {"study": 1 << 23, "metadata": 1 << 20, "measurements": 1 << 26}
"""Larger files are refused: the published ones have kilobytes."""

MOST_STUDIES = 10_000
"""The published archive has 454."""

MOST_FILES = 1 + 2 * MOST_TRIALS
"""Of one study: its study.json, and two for each trial."""

MOST_OTHERS = 10_000
"""Files, and folders of a tree, that have no part in the layout."""

MOST_FOLDERS = 50_000
"""Folders of a tar file beyond four for each file that has come by; the published archive has one for two files."""

MOST_TINY = 10_000
"""Files that are too small to be what their names say."""

LEAST_BYTES = {"study": 40, "metadata": 40, "measurements": 4}
"""Smaller ones are broken: they have no room for the fields that must be there."""

MOST_WASTE = 1 << 28
"""Bytes of a tar file that nothing is made of."""

HELD_BYTES = 1 << 25
"""Raw bytes of unfinished studies that are held in memory."""


def check_most(number: int, most: int, what: str) -> None:
    """Raise InputError where there are more of something than an archive of studies has."""
    if number > most:
        raise InputError(f"The archive holds more than {most:,} {what}: it is none of studies. Nothing was imported.")


def check_size(name: str, size: int, most: int) -> None:
    """Raise InputError where a file is larger than any of an archive of studies."""
    if size > most:
        raise InputError(
            f'The archive has a member "{shown(name, MOST_PATH)}" of {size:,} bytes, more than {most:,}. '
            "Nothing was imported."
        )
