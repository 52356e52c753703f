"""The command line. Each command parses its options, calls the library and prints; errors become one line.

What is imported here is all that is there when a user presses Ctrl-C while the rest is still being imported.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from batchlab.cli import endings, outputs

if TYPE_CHECKING:
    from batchlab.cli.commands import app as app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; the exit code is the error's: 1 failed, 2 bad input, 75 interrupted."""
    with outputs.prepared(), endings.handled():
        code = endings.exit_code(_run)
    sys.exit(code)


def _run() -> int:
    from batchlab.cli.commands import execute

    return execute(sys.argv[1:] or ["--help"])


def __getattr__(name: str) -> Any:
    """Import the application when it is first asked for."""
    if name != "app":
        raise AttributeError(f"module 'batchlab.cli' has no attribute {name!r}")
    from batchlab.cli.commands import app

    return app
