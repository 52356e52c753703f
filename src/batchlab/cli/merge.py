"""batchlab merge: labs that were filled on several machines, in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge(
    labs: Annotated[list[Path], typer.Argument(help="The labs to join; they stay as they are.")],
    into: Annotated[Path, typer.Option("--into", help="The lab that takes them in; a new one, or one of the sweep.")],
) -> None:
    """Join labs of one sweep. Other batch sizes, or other points; `batchlab run` then closes the race."""
    from batchlab.run.merge.labs import merge_labs

    for merged in merge_labs(labs, into):
        parts = [
            f"{_sizes(sizes)} {verb}"
            for sizes, verb in (
                (merged.copied, "copied"),
                (merged.confirmed, "confirmed by replicates that were copied"),
                (merged.joined, "joined, still to be closed by `run`"),
            )
            if sizes
        ]
        print(f"{merged.name}: {'; '.join(parts) or 'nothing new'}")
        for line in merged.left_out:
            print(f"{merged.name}: left out {line}")


def _sizes(batch_sizes: tuple[int, ...]) -> str:
    return f"batch size {', '.join(f'{size:,}' for size in batch_sizes)}"
