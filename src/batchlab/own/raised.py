"""What code of the user's own has raised, in one line."""

from __future__ import annotations

import traceback

from batchlab.errors import shown


def raised(error: Exception) -> str:
    """Return what was raised, and by which line of which file."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{type(error).__name__}: {error.msg} (line {error.lineno} of {error.filename})"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {shown(str(error), 300)} (line {frame.lineno} of {frame.filename})"
