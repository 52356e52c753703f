"""The command line. Each command parses its options, calls the library and prints; errors become one line."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from batchlab.cli import curve, figure, report, run, status, workloads
from batchlab.errors import BatchlabError

app = typer.Typer(
    name="batchlab",
    help="How does the batch size change training, and where does it stop paying?",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (run.run, status.status, workloads.workloads, curve.curve, figure.figure, report.report):
    app.command()(command)


@app.callback()
def options(debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False) -> None:
    """How does the batch size change training, and where does it stop paying?"""
    if debug:
        os.environ["BATCHLAB_DEBUG"] = "1"


def main() -> None:
    """Run the command line; the exit code is the error's: 1 failed, 2 bad input, 75 interrupted."""
    try:
        app()
    except BatchlabError as error:
        if os.environ.get("BATCHLAB_DEBUG"):
            raise
        print(f"batchlab: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("batchlab: Interrupted before anything was started.", file=sys.stderr)
        sys.exit(75)
    except BrokenPipeError:  # the reader of our output, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
