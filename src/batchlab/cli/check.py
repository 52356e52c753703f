"""batchlab check: whether a training loop gives the gradient of the whole batch, however it is cut."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from batchlab.cli.options import JsonOption, print_json, print_text, terminal_width, warn
from batchlab.errors import shown


def check(
    file: Annotated[Path, typer.Argument(help="A file of Python with one `batchlab.equivalence(...)`, or TorchSweep.")],
    allow: Annotated[
        list[str] | None, typer.Option("--allow", help="A cause that you accept: --allow dropout.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check a loop's gradient. Is it that of the whole batch, however the batch is cut, and if not, why?

    One batch is compared with its microbatches, equal and ragged, over workers and padded: norm ratio, relative error,
    cosine, the worst layer, and the cause. Exit code 0: equivalent, 1: not.
    """
    # Before PyTorch is loaded: threads that spin for one without a core take 60 times as long on a busy machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from batchlab.doctor.check_file import check_file

    if file.is_file():
        warn(f"{shown(str(file))} is executed: a file of Python is code")
    verdict = check_file(file).allowing(allow or [])
    if as_json:
        print_json(verdict.plain())
    else:
        first, *others = verdict.sentences()
        print_text(first)
        print(verdict.table(terminal_width()))
        for sentence in others:
            print_text(sentence)
    raise typer.Exit(0 if verdict.is_equivalent else 1)
